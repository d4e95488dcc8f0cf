//! `admin group progress`: how far a group is.

use anyhow::bail;
use rmq_admin::{AdminClient, GroupProgress, Scope};
use rmq_types::{GroupName, TopicName};
use serde::Serialize;

use super::{
    advice::advise,
    outcome::require_all,
    output::{Output, cell, table},
    scope::ScopeArgs,
    time,
};

#[derive(Debug, clap::Args)]
pub(super) struct ProgressArgs {
    /// Name of the group
    #[arg(value_name = "GROUP")]
    group: GroupName,
    /// Only this topic
    #[arg(short = 't', long, value_name = "TOPIC")]
    topic: Option<TopicName>,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProgressView {
    group: String,
    /// Messages not yet consumed.
    lag: i64,
    /// Messages consumed a second.
    tps: f64,
    members: Vec<MemberView>,
    queues: Vec<QueueView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct MemberView {
    client_id: String,
    address: String,
    language: String,
    version: i32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct QueueView {
    topic: String,
    broker: String,
    queue: u32,
    end: i64,
    committed: i64,
    lag: i64,
    in_flight: i64,
    consumed_at: Option<String>,
}

pub(super) async fn run(
    admin: &AdminClient,
    args: &ProgressArgs,
    out: Output,
) -> anyhow::Result<()> {
    let (group, scope) = (&args.group, args.scope.scope_or(Scope::AllClusters));
    let progress = admin
        .progress(group, args.topic.as_ref(), &scope)
        .await
        .map_err(advise)?;
    let view = view(group, &progress);
    // A group that was never used shows zeros; one that no broker has is an error.
    if view.queues.is_empty()
        && view.members.is_empty()
        && progress.brokers.is_complete()
        && !is_known(admin, group, &scope).await?
    {
        bail!(
            "group {group} does not exist: see `rocketmq admin group list`, or create it with \
             `rocketmq admin group create {group}`"
        );
    }
    out.answer(&view, text)?;
    require_all(&progress.brokers)
}

/// Whether a broker has the group; an error if one of them does not say.
pub(super) async fn is_known(
    admin: &AdminClient,
    group: &GroupName,
    scope: &Scope,
) -> anyhow::Result<bool> {
    let groups = admin.groups(scope).await.map_err(advise)?;
    let mut found = groups.successes();
    if found.any(|(_, groups)| groups.contains_key(group.as_str())) {
        return Ok(true);
    }
    require_all(&groups)?;
    Ok(false)
}

fn view(group: &GroupName, progress: &GroupProgress) -> ProgressView {
    let queues = progress.queues().into_iter().map(|queue| QueueView {
        topic: queue.topic.clone(),
        broker: queue.queue.broker.clone(),
        queue: queue.queue.id,
        end: queue.end,
        committed: queue.committed,
        lag: queue.lag(),
        in_flight: queue.in_flight(),
        consumed_at: queue.consumed_at.map(time::show),
    });
    let members = progress.members().into_iter().map(|member| MemberView {
        client_id: member.client_id.clone(),
        address: member.client_addr.clone(),
        language: member.language.clone(),
        version: member.version,
    });
    ProgressView {
        group: group.to_string(),
        lag: progress.lag(),
        tps: progress.tps(),
        members: members.collect(),
        queues: queues.collect(),
        failures: progress
            .brokers
            .failures()
            .map(|(_, error)| error.to_string())
            .collect(),
    }
}

fn text(view: &ProgressView) -> String {
    let rows = view.queues.iter().map(|queue| {
        [
            queue.topic.clone(),
            queue.broker.clone(),
            queue.queue.to_string(),
            queue.committed.to_string(),
            queue.end.to_string(),
            queue.lag.to_string(),
            queue.in_flight.to_string(),
            cell(queue.consumed_at.clone()),
        ]
    });
    let head = [
        "TOPIC",
        "BROKER",
        "QUEUE",
        "COMMITTED",
        "END",
        "LAG",
        "IN FLIGHT",
        "LAST CONSUMED",
    ];
    let mut text = table(head, rows);
    if !view.members.is_empty() {
        let rows = view.members.iter().map(|member| {
            [
                member.client_id.clone(),
                member.address.clone(),
                member.language.clone(),
                member.version.to_string(),
            ]
        });
        text.push_str("\n\n");
        text.push_str(&table(["MEMBER", "ADDRESS", "LANGUAGE", "VERSION"], rows));
    }
    let online = match view.members.len() {
        0 => "nobody online".to_owned(),
        1 => "1 member online".to_owned(),
        count => format!("{count} members online"),
    };
    format!(
        "{text}\n\nlag {}, {:.2} messages/s, {online}",
        view.lag, view.tps
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::output::json_line;

    #[test]
    fn progress_is_shown_as_documented() {
        let view = ProgressView {
            group: "billing".into(),
            lag: 3,
            tps: 1.5,
            members: vec![MemberView {
                client_id: "10.0.0.1@7".into(),
                address: "10.0.0.1:50000".into(),
                language: "JAVA".into(),
                version: 479,
            }],
            queues: vec![QueueView {
                topic: "orders".into(),
                broker: "broker-0".into(),
                queue: 2,
                end: 10,
                committed: 7,
                lag: 3,
                in_flight: 1,
                consumed_at: Some("2023-11-14T22:13:20.123Z".into()),
            }],
            failures: Vec::new(),
        };
        assert_eq!(text(&view), include_str!("goldens/progress.txt").trim_end());
        assert_eq!(
            json_line(&view).unwrap(),
            include_str!("goldens/progress.json").trim_end()
        );
    }

    #[test]
    fn a_group_without_progress_and_members_is_zeros() {
        let view = ProgressView {
            group: "g".into(),
            lag: 0,
            tps: 0.0,
            members: Vec::new(),
            queues: Vec::new(),
            failures: Vec::new(),
        };
        assert!(text(&view).ends_with("lag 0, 0.00 messages/s, nobody online"));
    }
}
