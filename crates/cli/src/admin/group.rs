//! `admin group`: list, create, delete; progress is in its own file.

use std::collections::BTreeMap;

use anyhow::bail;
use clap::Subcommand;
use rmq_admin::{AdminClient, Answers, GroupChange, GroupOutcome, Groups, Scope};
use rmq_protocol::body::SubscriptionGroupConfig;
use rmq_types::{GroupName, TopicName, system};
use serde::Serialize;

use super::{
    advice::advise,
    outcome::{ChangeView, Row, require_all},
    output::{Output, table},
    progress::{self, ProgressArgs, is_known},
    scope::ScopeArgs,
    topic::{deletion_rows, require_deleted},
};

#[derive(Debug, Subcommand)]
pub(super) enum GroupVerb {
    /// Groups and their settings; those of the system are left out unless --all
    List(ListArgs),
    /// Create a group, or change the named settings of one that exists
    Create(CreateArgs),
    /// How far a group is on every queue, and who of it is online
    Progress(ProgressArgs),
    /// Delete a group, its retry topic and its dead letters
    Delete(DeleteArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Groups of the system as well
    #[arg(short = 'a', long)]
    all: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct CreateArgs {
    /// Name of the group
    #[arg(value_name = "GROUP")]
    group: GroupName,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Deliveries before a message goes to the dead letters [default: 16]
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
    /// Queues of the retry topic [default: 1]
    #[arg(long, value_name = "N")]
    retry_queues: Option<u32>,
    /// Whether it may consume at all [default: true]
    #[arg(long, value_name = "true|false")]
    enabled: Option<bool>,
    /// Whether it may consume as broadcast [default: true]
    #[arg(long, value_name = "true|false")]
    broadcast: Option<bool>,
    /// Whether its pops are in order [default: false]
    #[arg(long, value_name = "true|false")]
    ordered: Option<bool>,
}

#[derive(Debug, clap::Args)]
pub(super) struct DeleteArgs {
    /// Name of the group
    #[arg(value_name = "GROUP")]
    group: GroupName,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Forget its offsets too: a new group of that name begins anew
    #[arg(long)]
    clean_offsets: bool,
    /// Keep its dead-letter topic
    #[arg(long)]
    keep_dead_letters: bool,
}

pub(super) async fn run(admin: &AdminClient, verb: &GroupVerb, out: Output) -> anyhow::Result<()> {
    match verb {
        GroupVerb::List(args) => list(admin, args, out).await,
        GroupVerb::Create(args) => create(admin, args, out).await,
        GroupVerb::Progress(args) => progress::run(admin, args, out).await,
        GroupVerb::Delete(args) => delete(admin, args, out).await,
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListView {
    groups: Vec<GroupView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<String>,
}

/// Settings as the first broker has them; brokers may differ, which `differs` says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupView {
    group: String,
    brokers: Vec<String>,
    differs: bool,
    enabled: bool,
    broadcast: bool,
    ordered: bool,
    retries: i32,
    retry_queues: i32,
}

async fn list(admin: &AdminClient, args: &ListArgs, out: Output) -> anyhow::Result<()> {
    let answers = admin
        .groups(&args.scope.scope_or(Scope::AllClusters))
        .await
        .map_err(advise)?;
    let view = list_view(&answers, args.all);
    out.answer(&view, list_text)?;
    require_all(&answers)?;
    if view.groups.is_empty() {
        out.remark(
            "no group yet: consumers make theirs, or create one with `rocketmq admin group create NAME`",
        );
    }
    Ok(())
}

fn list_view(answers: &Answers<Groups>, all: bool) -> ListView {
    let mut found: BTreeMap<&str, Vec<(&str, &SubscriptionGroupConfig)>> = BTreeMap::new();
    for (target, groups) in answers.successes() {
        for (name, config) in groups {
            if all || !system::is_system_group(name) {
                found
                    .entry(name)
                    .or_default()
                    .push((target.label(), config));
            }
        }
    }
    let view = |(name, places): (&str, Vec<(&str, &SubscriptionGroupConfig)>)| {
        let config = places.first().map(|(_, config)| *config)?;
        Some(GroupView {
            group: name.to_owned(),
            brokers: places
                .iter()
                .map(|(broker, _)| (*broker).to_owned())
                .collect(),
            differs: places.iter().any(|(_, other)| *other != config),
            enabled: config.consume_enable,
            broadcast: config.consume_broadcast_enable,
            ordered: config.consume_message_orderly,
            retries: config.retry_max_times,
            retry_queues: config.retry_queue_nums,
        })
    };
    ListView {
        groups: found.into_iter().filter_map(view).collect(),
        failures: answers
            .failures()
            .map(|(_, error)| error.to_string())
            .collect(),
    }
}

fn list_text(view: &ListView) -> String {
    let yes = |flag: bool| if flag { "yes" } else { "no" }.to_owned();
    let rows = view.groups.iter().map(|group| {
        let differs = if group.differs { " (differ)" } else { "" };
        [
            group.group.clone(),
            format!("{}{differs}", group.brokers.join(",")),
            yes(group.enabled),
            yes(group.broadcast),
            yes(group.ordered),
            group.retries.to_string(),
            group.retry_queues.to_string(),
        ]
    });
    let head = [
        "GROUP",
        "BROKERS",
        "ENABLED",
        "BROADCAST",
        "ORDERED",
        "RETRIES",
        "RETRY QUEUES",
    ];
    table(head, rows)
}

async fn create(admin: &AdminClient, args: &CreateArgs, out: Output) -> anyhow::Result<()> {
    let change = GroupChange {
        consume_enable: args.enabled,
        broadcast_enable: args.broadcast,
        ordered: args.ordered,
        retry_max: args.retries,
        retry_queues: args.retry_queues,
    };
    let scope = args.scope.scope_or(Scope::OnlyCluster);
    let answers = admin
        .put_group(&args.group, &change, &scope)
        .await
        .map_err(advise)?;
    let row = |answer| {
        Row::of(answer, |outcome| match outcome {
            GroupOutcome::Created => ("created", None),
            GroupOutcome::Unchanged => ("unchanged", None),
            GroupOutcome::Changed(_) => ("changed", None),
        })
    };
    let servers = answers.iter().map(row).collect();
    ChangeView {
        subject: format!("group {}", args.group),
        servers,
    }
    .print(out)?;
    require_all(&answers)
}

async fn delete(admin: &AdminClient, args: &DeleteArgs, out: Output) -> anyhow::Result<()> {
    let scope = args.scope.scope_or(Scope::OnlyCluster);
    let (group, keep) = (&args.group, args.keep_dead_letters);
    // What is left of a group that is gone can still be forgotten.
    if !args.clean_offsets && !is_known(admin, group, &scope).await? {
        bail!(
            "group {group} does not exist: there is nothing to delete; see `rocketmq admin group list`"
        );
    }
    let deletion = admin
        .delete_group(group, args.clean_offsets, keep, &scope)
        .await
        .map_err(advise)?;
    let own = deletion
        .brokers
        .iter()
        .map(|answer| Row::of(answer, |()| ("deleted", None)));
    ChangeView {
        subject: format!("group {group}"),
        servers: own.collect(),
    }
    .print(out)?;
    require_all(&deletion.brokers)?;
    let topics = [
        (system::retry_topic(group.as_str()), &deletion.retry_topic),
        (system::dlq_topic(group.as_str()), &deletion.dead_letters),
    ];
    for (name, deletion) in topics {
        if let Some(deletion) = deletion {
            let subject = format!("topic {name}");
            ChangeView {
                subject,
                servers: deletion_rows(deletion),
            }
            .print(out)?;
            require_deleted(&TopicName::parse(&name)?, deletion)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::output::json_line;

    #[test]
    fn the_list_is_shown_as_documented() {
        let group = |group: &str, differs, ordered| GroupView {
            group: group.into(),
            brokers: vec!["a".into(), "b".into()],
            differs,
            enabled: true,
            broadcast: true,
            ordered,
            retries: 16,
            retry_queues: 1,
        };
        let view = ListView {
            groups: vec![group("billing", false, true), group("mail", true, false)],
            failures: Vec::new(),
        };
        assert_eq!(
            list_text(&view),
            include_str!("goldens/groups.txt").trim_end()
        );
        assert_eq!(
            json_line(&view).unwrap(),
            include_str!("goldens/groups.json").trim_end()
        );
    }
}
