//! `admin topic`: list, create, alter, delete, route, status.

use std::{collections::BTreeSet, str::FromStr, time::Duration};

use anyhow::{anyhow, bail, ensure};
use clap::{Subcommand, builder::RangedU64ValueParser};
use rmq_admin::{
    AdminClient, Answer, Answers, NameServerError, Scope, TargetError, TopicChange, TopicDeletion,
    TopicOutcome, TopicSettings,
};
use rmq_protocol::body::{ClusterInfo, TopicConfig};
use rmq_types::{ClusterName, NameError, TopicName, limits, system};
use serde::Serialize;

use super::{
    advice::advise,
    outcome::{ChangeView, Row, require_all},
    output::{Output, table},
    route::{self, StatusArgs},
    scope::ScopeArgs,
};

/// How long `create` waits for the route.
const ROUTE_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug, Subcommand)]
pub(super) enum TopicVerb {
    /// Topic names; those of the system are left out unless --all
    List(ListArgs),
    /// Create a topic; one that exists with other settings is left alone
    Create(CreateArgs),
    /// Change settings of a topic; what is not named stays
    Alter(AlterArgs),
    /// Delete a topic with its messages, and its route
    Delete(DeleteArgs),
    /// Which brokers have a topic, and how many queues
    Route(StatusArgs),
    /// First and last offset of every queue of a topic
    Status(StatusArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Only topics of this cluster
    #[arg(short = 'c', long, value_name = "NAME")]
    cluster: Option<ClusterName>,
    /// System topics, retry and dead-letter topics as well
    #[arg(short = 'a', long)]
    all: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct CreateArgs {
    /// Name of the topic
    #[arg(value_name = "TOPIC", value_parser = new_topic)]
    topic: TopicName,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Queues on each broker
    #[arg(short = 'q', long, value_name = "N", default_value_t = 8, value_parser = queue_count())]
    queues: u32,
    /// Queues producers see, if not all
    #[arg(long, value_name = "N", value_parser = queue_count())]
    write_queues: Option<u32>,
    /// Who may: r, w or rw
    #[arg(long, value_name = "PERM", default_value = "rw")]
    perm: Perm,
    /// Ordered across brokers: the queues are fixed at the NameServers
    #[arg(long)]
    ordered: bool,
    /// An attribute, as message.type=FIFO; may be given several times
    #[arg(short = 'a', long = "attribute", value_name = "NAME=VALUE", value_parser = pair)]
    attributes: Vec<(String, String)>,
}

#[derive(Debug, clap::Args)]
pub(super) struct AlterArgs {
    /// Name of the topic
    #[arg(value_name = "TOPIC")]
    topic: TopicName,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Queues on each broker, both for reading and writing
    #[arg(short = 'q', long, value_name = "N", conflicts_with_all = ["read_queues", "write_queues"])]
    queues: Option<u32>,
    /// Queues consumers see
    #[arg(long, value_name = "N")]
    read_queues: Option<u32>,
    /// Queues producers see
    #[arg(long, value_name = "N")]
    write_queues: Option<u32>,
    /// Who may: r, w or rw
    #[arg(long, value_name = "PERM")]
    perm: Option<Perm>,
    /// Whether the topic is ordered
    #[arg(long, value_name = "true|false")]
    ordered: Option<bool>,
    /// Set an attribute; may be given several times
    #[arg(short = 'a', long = "attribute", value_name = "NAME=VALUE", value_parser = pair)]
    attributes: Vec<(String, String)>,
    /// Take an attribute away; may be given several times
    #[arg(long, value_name = "NAME")]
    remove_attribute: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct DeleteArgs {
    /// Name of the topic
    #[arg(value_name = "TOPIC")]
    topic: TopicName,
    /// Only in this cluster [default: wherever its route says it is]
    #[arg(short = 'c', long, value_name = "NAME")]
    cluster: Option<ClusterName>,
}

/// A permission as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Perm(u8);

impl FromStr for Perm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "r" | "4" => Ok(Self(4)),
            "w" | "2" => Ok(Self(2)),
            "rw" | "wr" | "6" => Ok(Self(6)),
            _ => Err("expected r, w or rw (or 4, 2, 6)".to_owned()),
        }
    }
}

/// `rw`, `r`, `w`, `rwx` where x lets new topics inherit.
pub(super) fn show_perm(perm: i32) -> String {
    let bits = [(4, 'r'), (2, 'w'), (1, 'x')];
    let text: String = bits
        .iter()
        .filter(|(bit, _)| perm & bit != 0)
        .map(|(_, c)| *c)
        .collect();
    if text.is_empty() {
        "none".to_owned()
    } else {
        text
    }
}

/// What a new topic may have; altering may also take all queues away.
fn queue_count() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=u64::from(limits::QUEUES_MAX))
}

fn new_topic(text: &str) -> Result<TopicName, NameError> {
    TopicName::parse_for_client(text)
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

pub(super) async fn run(admin: &AdminClient, verb: &TopicVerb, out: Output) -> anyhow::Result<()> {
    match verb {
        TopicVerb::List(args) => list(admin, args, out).await,
        TopicVerb::Create(args) => create(admin, args, out).await,
        TopicVerb::Alter(args) => alter(admin, args, out).await,
        TopicVerb::Delete(args) => delete(admin, args, out).await,
        TopicVerb::Route(args) => route::show(admin, args, out).await,
        TopicVerb::Status(args) => route::status(admin, args, out).await,
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListView {
    topics: BTreeSet<String>,
}

async fn list(admin: &AdminClient, args: &ListArgs, out: Output) -> anyhow::Result<()> {
    let (_, info) = admin.cluster_info().await.map_err(advise)?;
    let mut topics = match &args.cluster {
        Some(cluster) => {
            require_cluster(&info, cluster)?;
            admin.topics_of(cluster).await.map_err(advise)?
        }
        None => admin.topics().await.map_err(advise)?,
    };
    if !args.all {
        let (clusters, brokers) = (&info.cluster_addr_table, &info.broker_addr_table);
        topics.retain(|topic| {
            !is_of_system(topic) && !clusters.contains_key(topic) && !brokers.contains_key(topic)
        });
    }
    let view = ListView { topics };
    out.answer(&view, |view| {
        table(["TOPIC"], view.topics.iter().map(|topic| [topic.clone()]))
    })?;
    if view.topics.is_empty() {
        out.remark("no topic yet: create one with `rocketmq admin topic create NAME`");
    }
    Ok(())
}

/// A NameServer gives an empty list for a cluster that it does not know.
fn require_cluster(info: &ClusterInfo, cluster: &ClusterName) -> anyhow::Result<()> {
    if info.cluster_addr_table.contains_key(cluster.as_str()) {
        return Ok(());
    }
    Err(advise(TargetError::NoSuchCluster {
        name: cluster.to_string(),
        known: info.cluster_addr_table.keys().cloned().collect(),
    }))
}

fn is_of_system(topic: &str) -> bool {
    system::is_system_topic(topic)
        || topic.starts_with("RMQ_SYS_")
        || topic.starts_with(system::RETRY_PREFIX)
        || topic.starts_with(system::DLQ_PREFIX)
        || topic.ends_with(system::REPLY_TOPIC_SUFFIX)
}

async fn create(admin: &AdminClient, args: &CreateArgs, out: Output) -> anyhow::Result<()> {
    let settings = TopicSettings {
        read_queues: args.queues,
        write_queues: args.write_queues.unwrap_or(args.queues),
        perm: args.perm.0,
        ordered: args.ordered,
        attributes: args.attributes.iter().cloned().collect(),
    };
    let (topic, scope) = (&args.topic, args.scope.scope_or(Scope::OnlyCluster));
    let answers = admin
        .create_topic(topic, &settings, &scope)
        .await
        .map_err(advise)?;
    change(topic, &answers).print(out)?;
    require_all(&answers)?;
    if answers
        .successes()
        .any(|(_, outcome)| matches!(outcome, TopicOutcome::Differs(_)))
    {
        bail!(
            "topic {topic} exists with other settings and was left as it is there: change it with \
             `rocketmq admin topic alter {topic}`"
        );
    }
    let brokers: Vec<_> = answers
        .successes()
        .filter_map(|(target, _)| target.broker.clone())
        .collect();
    // Brokers given by address alone are not looked for: nobody may know them.
    if !brokers.is_empty()
        && !admin
            .await_route(topic, &brokers, ROUTE_WAIT)
            .await
            .map_err(advise)?
    {
        bail!(
            "topic {topic} was created, but not every broker has registered it with the \
             NameServer yet: see `rocketmq admin topic route {topic}`"
        );
    }
    Ok(())
}

async fn alter(admin: &AdminClient, args: &AlterArgs, out: Output) -> anyhow::Result<()> {
    let change_of = TopicChange {
        read_queues: args.queues.or(args.read_queues),
        write_queues: args.queues.or(args.write_queues),
        perm: args.perm.map(|perm| perm.0),
        ordered: args.ordered,
        set: args.attributes.iter().cloned().collect(),
        remove: args.remove_attribute.iter().cloned().collect(),
    };
    ensure!(
        change_of != TopicChange::default(),
        "nothing to change: name a setting (see --help)"
    );
    let (topic, scope) = (
        &args.topic,
        args.scope.scope_or(Scope::Having(args.topic.clone())),
    );
    let answers = admin
        .alter_topic(topic, &change_of, &scope)
        .await
        .map_err(|error| nothing_to("alter", error))?;
    change(topic, &answers).print(out)?;
    require_all(&answers)?;
    if answers
        .successes()
        .all(|(_, outcome)| *outcome == TopicOutcome::Absent)
    {
        bail!(
            "topic {topic} is on none of these brokers: there is nothing to alter; see \
             `rocketmq admin topic route {topic}`"
        );
    }
    Ok(())
}

/// As [`advise`], for verbs that a topic must be there for: nobody wants to create it first.
fn nothing_to(verb: &str, error: TargetError) -> anyhow::Error {
    match error {
        TargetError::NameServer(absent @ NameServerError::NoSuchTopic { .. }) => anyhow!(
            "{absent}: there is nothing to {verb}; see `rocketmq admin topic list` for what there is"
        ),
        other => advise(other),
    }
}

fn change(topic: &TopicName, answers: &Answers<TopicOutcome>) -> ChangeView {
    let row = |answer: &Answer<TopicOutcome>| {
        Row::of(answer, |outcome| match outcome {
            TopicOutcome::Created => ("created", None),
            TopicOutcome::Unchanged => ("unchanged", None),
            TopicOutcome::Changed(before) => ("changed", Some(format!("it was {}", brief(before)))),
            TopicOutcome::Differs(found) => ("differs", Some(format!("it is {}", brief(found)))),
            TopicOutcome::Absent => ("absent", None),
        })
    };
    ChangeView {
        subject: format!("topic {topic}"),
        servers: answers.iter().map(row).collect(),
    }
}

/// Settings in one line.
fn brief(config: &TopicConfig) -> String {
    let mut text = format!(
        "{} read and {} write queues, {}",
        config.read_queue_nums,
        config.write_queue_nums,
        show_perm(config.perm)
    );
    if config.order {
        text.push_str(", ordered");
    }
    for (name, value) in &config.attributes {
        text = format!("{text}, {name}={value}");
    }
    text
}

async fn delete(admin: &AdminClient, args: &DeleteArgs, out: Output) -> anyhow::Result<()> {
    let topic = &args.topic;
    let deletion = admin
        .delete_topic(topic, args.cluster.as_ref())
        .await
        .map_err(|error| nothing_to("delete", error))?;
    let servers = deletion_rows(&deletion);
    ChangeView {
        subject: format!("topic {topic}"),
        servers,
    }
    .print(out)?;
    require_deleted(topic, &deletion)
}

pub(super) fn deletion_rows(deletion: &TopicDeletion) -> Vec<Row> {
    let brokers = deletion
        .brokers
        .iter()
        .map(|answer| Row::of(answer, |()| ("deleted", None)));
    let names = deletion.name_servers.iter();
    brokers
        .chain(names.map(|answer| Row::of_name_server(answer, "route removed")))
        .collect()
}

pub(super) fn require_deleted(topic: &TopicName, deletion: &TopicDeletion) -> anyhow::Result<()> {
    if let Err(error) = require_all(&deletion.brokers) {
        return Err(error.context(format!(
            "topic {topic} is still on a broker, so its route was left alone"
        )));
    }
    let failed = deletion
        .name_servers
        .iter()
        .find_map(|answer| answer.outcome.as_ref().err());
    match failed {
        Some(error) => bail!("the route of topic {topic} is still at a NameServer: {error}"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_written_with_letters_or_as_java_numbers() {
        for (text, perm) in [("r", 4), ("w", 2), ("rw", 6), ("6", 6)] {
            assert_eq!(text.parse(), Ok(Perm(perm)));
        }
        assert!("x".parse::<Perm>().is_err() && "7".parse::<Perm>().is_err());
        assert_eq!(
            [show_perm(7), show_perm(4), show_perm(0)],
            ["rwx", "r", "none"]
        );
    }

    #[test]
    fn topics_of_the_system_are_known_by_their_names() {
        for topic in [
            "%RETRY%g",
            "%DLQ%g",
            "TBW102",
            "rmq_sys_x",
            "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC",
            "DefaultCluster_REPLY_TOPIC",
        ] {
            assert!(is_of_system(topic), "{topic}");
        }
        assert!(!is_of_system("orders"));
    }

    #[test]
    fn nobody_is_told_to_create_a_topic_that_is_to_be_deleted() {
        let absent = TargetError::NameServer(NameServerError::NoSuchTopic {
            topic: "nosuch".parse().unwrap(),
            addr: "ns:9876".to_owned(),
        });
        let said = nothing_to("delete", absent).to_string();
        assert!(
            said.contains("nothing to delete") && said.contains("topic list"),
            "{said}"
        );
        assert!(!said.contains("topic create"), "{said}");
        let other = TargetError::NoBroker {
            addr: "ns:9876".to_owned(),
        };
        let wanted = "no broker is registered at NameServer ns:9876";
        assert!(nothing_to("alter", other).to_string().starts_with(wanted));
    }

    #[test]
    fn settings_are_told_in_one_line() {
        let mut config = TopicConfig {
            order: true,
            ..TopicConfig::named("T")
        };
        config
            .attributes
            .insert("message.type".into(), "FIFO".into());
        assert_eq!(
            brief(&config),
            "16 read and 16 write queues, rw, ordered, message.type=FIFO"
        );
    }
}
