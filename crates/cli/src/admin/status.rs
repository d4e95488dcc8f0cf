//! `admin status`: the whole cluster on one screen.
//!
//! **Invariant:** what does not answer stays on the screen, and makes the exit code 1. Figures come
//! from the servers alone.

use std::collections::BTreeMap;

use anyhow::bail;
use jiff::Timestamp;
use rmq_admin::{
    AdminClient, Answers, GroupLag, GroupLags, GroupSight, Scope, Survey, TOOLS_GROUP,
};
use rmq_operator::local::{Columns, group_columns};
use rmq_types::{ClusterName, system};
use serde::Serialize;

use super::{
    advice::{Advice, advise},
    output::{Output, cell, table},
};
use crate::text_table;

/// Consumer groups on the screen; the ones furthest behind come first.
const GROUPS_SHOWN_MAX: usize = 15;

#[derive(Debug, clap::Args)]
pub(super) struct StatusArgs {
    /// Only this cluster
    #[arg(short = 'c', long, value_name = "NAME")]
    cluster: Option<ClusterName>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusView {
    name_servers: Vec<NameServerView>,
    broker_groups: Vec<BrokerGroupView>,
    consumer_groups: Vec<ConsumerGroupView>,
    /// Messages not yet consumed, all groups; none if a broker does not say.
    lag: Option<i64>,
    /// What did not answer, a line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<String>,
    #[serde(skip)]
    columns: Columns,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NameServerView {
    address: String,
    /// Brokers registered there.
    brokers: Option<usize>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct BrokerGroupView {
    cluster: String,
    broker: String,
    /// Address of the master.
    master: Option<String>,
    epoch: Option<i32>,
    members: usize,
    in_sync: Option<usize>,
    readable: Option<bool>,
    writable: Option<bool>,
    lag_bytes: Option<i64>,
    /// NameServers that do not know every member.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing_on: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ConsumerGroupView {
    group: String,
    topics: usize,
    lag: i64,
    in_flight: i64,
    tps: f64,
}

pub(super) async fn run(admin: &AdminClient, args: &StatusArgs, out: Output) -> anyhow::Result<()> {
    let survey = admin.survey(args.cluster.as_ref()).await.map_err(advise)?;
    let scope = match &args.cluster {
        Some(cluster) => Scope::Cluster(cluster.clone()),
        None => Scope::AllClusters,
    };
    let lags = if survey.groups.is_empty() {
        None
    } else {
        Some(admin.group_lags(&scope).await.map_err(advise)?)
    };
    let view = view(&survey, lags.as_ref());
    out.answer(&view, text)?;
    match view.failures.as_slice() {
        [] => Ok(()),
        [only] => bail!("{only}"),
        [first, rest @ ..] => bail!("{first}; and {} more", rest.len()),
    }
}

fn view(survey: &Survey, lags: Option<&Answers<GroupLags>>) -> StatusView {
    let mut failures = failures(survey);
    // A broker that did not answer before is not told of again.
    if failures.is_empty() {
        let failed = lags.into_iter().flat_map(Answers::failures);
        failures.extend(failed.map(|(_, error)| error.advised()));
    }
    let is_complete = lags.is_none_or(Answers::is_complete);
    let consumer_groups = consumers(lags);
    let lag = consumer_groups
        .iter()
        .fold(0_i64, |sum, group| sum.saturating_add(group.lag));
    StatusView {
        name_servers: survey
            .name_servers
            .iter()
            .map(|server| NameServerView {
                address: server.addr.clone(),
                brokers: server.brokers.as_ref().ok().copied(),
            })
            .collect(),
        broker_groups: survey.groups.iter().map(broker_group).collect(),
        lag: is_complete.then_some(lag),
        consumer_groups,
        failures,
        columns: group_columns(&survey.groups, Timestamp::UNIX_EPOCH, &|_| None),
    }
}

fn failures(survey: &Survey) -> Vec<String> {
    let servers = survey.name_servers.iter();
    let silent = servers.filter_map(|server| server.brokers.as_ref().err());
    let mut failures: Vec<_> = silent
        .map(|error| format!("a NameServer does not answer: {error}"))
        .collect();
    for group in &survey.groups {
        let name = &group.broker;
        if group.master().is_none() {
            failures.push(format!("broker group {name} has no master"));
        }
        for (id, error) in group
            .members
            .iter()
            .filter_map(|member| Some((member.id, member.runtime.as_ref().err()?)))
        {
            failures.push(format!("broker {name} (id {id}) does not answer: {error}"));
        }
        if !group.missing_on.is_empty() {
            let servers = group.missing_on.join(", ");
            failures.push(format!(
                "broker group {name} is not known, or not completely, at NameServer {servers}"
            ));
        }
    }
    failures
}

fn broker_group(group: &GroupSight) -> BrokerGroupView {
    BrokerGroupView {
        cluster: group.cluster.clone(),
        broker: group.broker.clone(),
        master: group.master().map(|master| master.addr.clone()),
        epoch: group.epoch,
        members: group.members.len(),
        in_sync: group.in_sync().map(|(now, _)| now),
        readable: group.is_readable(),
        writable: group.is_writable(),
        lag_bytes: group.lag_bytes(),
        missing_on: group.missing_on.clone(),
    }
}

/// All groups, the ones furthest behind first; those of the system only if they are behind.
fn consumers(lags: Option<&Answers<GroupLags>>) -> Vec<ConsumerGroupView> {
    let mut sums: BTreeMap<&str, GroupLag> = BTreeMap::new();
    for (_, groups) in lags.into_iter().flat_map(Answers::successes) {
        for (group, lag) in groups {
            let sum = sums.entry(group).or_default();
            *sum = sum.plus(*lag);
        }
    }
    let mut groups: Vec<_> = sums
        .into_iter()
        // Reads of `admin consume` and of Java's tools keep no progress: they lag for ever.
        .filter(|(group, _)| *group != TOOLS_GROUP)
        .filter(|(group, lag)| lag.lag > 0 || !system::is_system_group(group))
        .map(|(group, lag)| ConsumerGroupView {
            group: group.to_owned(),
            topics: lag.topics,
            lag: lag.lag,
            in_flight: lag.in_flight,
            tps: lag.tps,
        })
        .collect();
    groups.sort_by(|a, b| b.lag.cmp(&a.lag).then_with(|| a.group.cmp(&b.group)));
    groups
}

fn text(view: &StatusView) -> String {
    let servers = view.name_servers.iter().map(|server| {
        let state = if server.brokers.is_some() {
            "ok"
        } else {
            "no answer"
        };
        [
            server.address.clone(),
            cell(server.brokers),
            state.to_owned(),
        ]
    });
    let mut parts = vec![table(["NAMESERVER", "BROKERS", "STATE"], servers)];
    if !view.broker_groups.is_empty() {
        parts.push(text_table::of_columns(&view.columns));
    }
    if !view.consumer_groups.is_empty() {
        let shown = view.consumer_groups.iter().take(GROUPS_SHOWN_MAX);
        let rows = shown.map(|group| {
            [
                group.group.clone(),
                group.topics.to_string(),
                group.lag.to_string(),
                group.in_flight.to_string(),
                format!("{:.2}", group.tps),
            ]
        });
        let head = ["GROUP", "TOPICS", "LAG", "IN FLIGHT", "MESSAGES/S"];
        parts.push(table(head, rows));
        let more = view.consumer_groups.len().saturating_sub(GROUPS_SHOWN_MAX);
        if more > 0 {
            parts.push(format!(
                "and {more} groups more, less far behind: -o json has them all"
            ));
        }
    }
    parts.push(summary(view));
    parts.join("\n\n")
}

fn summary(view: &StatusView) -> String {
    let all = view.broker_groups.len();
    if all == 0 {
        return "no broker is registered: start one and give it a NameServer (`rocketmq broker --help`)"
            .to_owned();
    }
    let writable = view
        .broker_groups
        .iter()
        .filter(|group| group.writable == Some(true))
        .count();
    let lag = match view.lag {
        Some(lag) => lag.to_string(),
        None => "not known".to_owned(),
    };
    let plural = if all == 1 { "" } else { "s" };
    format!("{writable} of {all} broker group{plural} writable, consumer lag {lag}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::output::json_line;
    use rmq_admin::{BrokerRuntime, MemberSight, NameServerSight};

    fn survey() -> Survey {
        let group = |broker: &str, members| GroupSight {
            cluster: "DefaultCluster".to_owned(),
            broker: broker.to_owned(),
            members,
            perm: Some(6),
            replication: None,
            epoch: None,
            missing_on: Vec::new(),
        };
        let master = MemberSight {
            id: 0,
            addr: "127.0.0.1:10911".to_owned(),
            runtime: Ok(BrokerRuntime::default()),
        };
        Survey {
            name_servers: vec![NameServerSight {
                addr: "127.0.0.1:9876".to_owned(),
                brokers: Ok(1),
            }],
            groups: vec![group("broker-0", vec![master]), group("broker-1", vec![])],
        }
    }

    fn example() -> StatusView {
        let consumer = |group: &str, lag| ConsumerGroupView {
            group: group.to_owned(),
            topics: 1,
            lag,
            in_flight: 0,
            tps: 0.5,
        };
        StatusView {
            consumer_groups: vec![consumer("billing", 12), consumer("mail", 0)],
            lag: Some(12),
            ..view(&survey(), None)
        }
    }

    #[test]
    fn the_screen_and_the_json_are_as_documented() {
        assert_eq!(
            text(&example()),
            include_str!("goldens/overview.txt").trim_end()
        );
        assert_eq!(
            json_line(&example()).unwrap(),
            include_str!("goldens/overview.json").trim_end()
        );
    }

    #[test]
    fn a_group_without_master_is_a_failure_and_so_is_what_does_not_answer() {
        assert_eq!(failures(&survey()), ["broker group broker-1 has no master"]);
        let mut survey = survey();
        survey.groups.truncate(1);
        assert!(failures(&survey).is_empty());
        survey.groups[0]
            .missing_on
            .push("127.0.0.1:9877".to_owned());
        assert!(failures(&survey)[0].ends_with("at NameServer 127.0.0.1:9877"));
    }

    #[test]
    fn without_a_broker_the_screen_says_what_to_do() {
        let empty = Survey {
            groups: Vec::new(),
            ..survey()
        };
        let said = text(&view(&empty, None));
        assert!(
            said.contains("no broker is registered: start one"),
            "{said}"
        );
    }
}
