//! `Topic`: made and kept as it is written on every broker group of its cluster.
//!
//! **Invariant:** queues are never taken away behind a user's back: a topic that exists is changed
//! only with `managed: Full`, and its messages go only with `deletionPolicy: Delete`.

use super::broker_object::{self, AT_REST, BUSY, Master, Outcome};
use super::context::{Context, ReconcileError, key};
use super::control::Reconcile;
use crate::build::{Kind, Names};
use kube::ResourceExt as _;
use kube::runtime::controller::Action;
use rmq_admin::{AdminClient, AskError};
use rmq_operator_api::{
    ConditionReason, ManagedMode, ObjectDeletionPolicy, RocketMQCluster, Topic, TopicStatus,
};
use rmq_protocol::body::TopicConfig;
use rmq_types::{ClusterName, TopicName};

/// Attribute of a topic that says what its messages are.
const MESSAGE_TYPE: &str = "message.type";

impl Reconcile for Topic {
    async fn reconcile(&self, context: &Context) -> Result<Action, ReconcileError> {
        let cluster = broker_object::cluster_of(context, self, &self.spec.cluster);
        let deletes = self.spec.deletion_policy == ObjectDeletionPolicy::Delete;
        if self.metadata.deletion_timestamp.is_some() {
            return remove(self, context, cluster.as_ref(), deletes).await;
        }
        broker_object::hold(context, Kind::Topic, self, deletes).await?;
        let outcome = match &cluster {
            None => {
                let text = format!("there is no RocketMQCluster {}", self.spec.cluster);
                return finish(self, context, Err((ConditionReason::ClusterNotFound, text))).await;
            }
            Some(_) if let Some(other) = rival(self, context) => {
                let text = format!("Topic {other} is older and means the same topic");
                return finish(self, context, Err((ConditionReason::NameConflict, text))).await;
            }
            Some(cluster) => everywhere(self, context, cluster).await,
        };
        finish(self, context, outcome).await
    }
}

/// An older object of the same namespace that means the same topic of the same cluster.
fn rival(topic: &Topic, context: &Context) -> Option<String> {
    let age = |topic: &Topic| {
        let created = topic.metadata.creation_timestamp.as_ref();
        (created.map(|time| time.0), topic.uid())
    };
    let all = context.stores.topics.state();
    let others = all.iter().filter_map(|other| other.0.as_ref().ok());
    others
        .filter(|other| {
            other.namespace() == topic.namespace()
                && other.spec.cluster == topic.spec.cluster
                && other.topic_name() == topic.topic_name()
                && other.uid() != topic.uid()
        })
        .filter(|other| age(other) < age(topic))
        .map(kube::ResourceExt::name_any)
        .next()
}

async fn everywhere(
    topic: &Topic,
    context: &Context,
    cluster: &RocketMQCluster,
) -> Result<Outcome, (ConditionReason, String)> {
    let name = TopicName::parse(topic.topic_name())
        .map_err(|error| (ConditionReason::InvalidSpec, error.to_string()))?;
    let addresses = Names::of(cluster).name_server_addresses();
    let admin = context.admin.of(&key(cluster), &addresses);
    let mut outcome = Outcome::default();
    for Master { broker, address } in broker_object::masters(context, cluster) {
        let address = match address {
            Ok(address) => address,
            Err(reason) => {
                outcome.failed.push(format!("{broker}: {reason}"));
                continue;
            }
        };
        match at_broker(topic, &admin, &address, &name).await {
            Ok(true) => outcome.applied.push(broker),
            Ok(false) => outcome.differs.push(broker),
            Err(error) => {
                outcome.refused |= error.code().is_some();
                outcome.failed.push(format!("{broker}: {error}"));
            }
        }
    }
    Ok(outcome)
}

/// Whether the broker has the topic as it is written, afterwards.
async fn at_broker(
    topic: &Topic,
    admin: &AdminClient,
    address: &str,
    name: &TopicName,
) -> Result<bool, AskError> {
    let has = admin.topic_config(address, name).await?;
    let wanted = wanted(topic, has.as_ref());
    match &has {
        Some(has) if *has == wanted => return Ok(true),
        Some(_) if topic.spec.managed == ManagedMode::AdoptOnly => return Ok(false),
        _ => {}
    }
    admin.put_topic_config(address, &wanted).await?;
    Ok(admin.topic_config(address, name).await?.as_ref() == Some(&wanted))
}

/// Pure: the topic as it is written, over what a broker has.
fn wanted(topic: &Topic, has: Option<&TopicConfig>) -> TopicConfig {
    let mut wanted = has
        .cloned()
        .unwrap_or_else(|| TopicConfig::named(topic.topic_name()));
    wanted.read_queue_nums = topic.spec.read_queues;
    wanted.write_queue_nums = topic.spec.write_queues;
    wanted.perm = topic.spec.permission.bits();
    let kind = topic.spec.kind.attribute();
    // Java writes nothing for plain messages; both mean the same.
    if has.is_none() || wanted.attributes.contains_key(MESSAGE_TYPE) || kind != "NORMAL" {
        wanted
            .attributes
            .insert(MESSAGE_TYPE.to_owned(), kind.to_owned());
    }
    wanted
}

async fn remove(
    topic: &Topic,
    context: &Context,
    cluster: Option<&RocketMQCluster>,
    deletes: bool,
) -> Result<Action, ReconcileError> {
    if let (true, Some(cluster)) = (deletes, cluster)
        && cluster.metadata.deletion_timestamp.is_none()
        && let (Ok(name), Ok(cluster_name)) = (
            TopicName::parse(topic.topic_name()),
            ClusterName::parse(cluster.cluster_name()),
        )
    {
        let addresses = Names::of(cluster).name_server_addresses();
        let admin = context.admin.of(&key(cluster), &addresses);
        let gone = admin
            .delete_topic(&name, Some(&cluster_name))
            .await
            .map(|deletion| deletion.is_complete());
        match gone {
            Ok(true) => tracing::info!(topic = topic.topic_name(), "deleted"),
            Ok(false) => return Ok(context.succeeded(topic, Some(BUSY))),
            Err(error) => {
                tracing::warn!(topic = topic.topic_name(), %error, "not deleted yet");
                return Ok(context.succeeded(topic, Some(BUSY)));
            }
        }
    }
    broker_object::hold(context, Kind::Topic, topic, false).await?;
    Ok(context.succeeded(topic, None))
}

async fn finish(
    topic: &Topic,
    context: &Context,
    outcome: Result<Outcome, (ConditionReason, String)>,
) -> Result<Action, ReconcileError> {
    let old = topic.status.clone().unwrap_or_default();
    let (verdict, outcome) = match outcome {
        Ok(outcome) => (outcome.verdict(), outcome),
        Err((reason, text)) => ((false, reason, text), Outcome::default()),
    };
    let done = verdict.0;
    let generation = topic.metadata.generation;
    let status = TopicStatus {
        observed_generation: generation,
        topic: Some(topic.topic_name().to_owned()),
        summary: outcome.summary(),
        applied: outcome.applied,
        conditions: vec![broker_object::ready(&old.conditions, generation, verdict)],
    };
    context
        .write_status(topic, topic.status.as_ref(), &status)
        .await?;
    Ok(context.succeeded(topic, Some(if done { AT_REST } else { BUSY })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmq_operator_api::TopicSpec;
    use serde_json::json;

    fn topic(spec: serde_json::Value) -> Topic {
        let spec: TopicSpec = serde_json::from_value(spec).unwrap();
        Topic::new("orders", spec)
    }

    #[test]
    fn what_the_object_does_not_say_keeps_its_value() {
        let topic = topic(json!({"cluster": "c", "writeQueues": 4, "readQueues": 8}));
        let mut has = TopicConfig::named("orders");
        has.topic_sys_flag = 3;
        has.attributes.insert("x".to_owned(), "y".to_owned());
        let wanted = wanted(&topic, Some(&has));
        assert_eq!((wanted.write_queue_nums, wanted.read_queue_nums), (4, 8));
        assert_eq!(wanted.topic_sys_flag, 3);
        assert_eq!(wanted.attributes, has.attributes);
    }

    #[test]
    fn a_new_topic_says_what_its_messages_are() {
        let topic = topic(json!({"cluster": "c", "type": "Fifo", "permission": "ReadOnly"}));
        let wanted = wanted(&topic, None);
        assert_eq!(wanted.topic_name, "orders");
        assert_eq!(wanted.attributes[MESSAGE_TYPE], "FIFO");
        assert_eq!(wanted.perm, 4);
    }
}
