//! Events of Kubernetes for what changes.
//!
//! **Invariant:** an event that cannot be written stops nothing; one that is told again within
//! minutes is counted on the first one instead of written anew.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use rmq_operator_api::{EventKind, EventReason};
use std::time::Duration;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(5);
/// What the API server takes of a text.
const NOTE_BYTES_MAX: usize = 1024;

/// Writes events.
pub(crate) struct Events {
    recorder: Recorder,
}

impl Events {
    pub(crate) fn new(client: Client, identity: &str) -> Self {
        let reporter = Reporter {
            controller: "rocketmq-operator".to_owned(),
            instance: Some(identity.to_owned()),
        };
        Self {
            recorder: Recorder::new(client, reporter),
        }
    }

    /// Tells of `about`.
    pub(crate) async fn tell(&self, about: &ObjectReference, reason: EventReason, note: &str) {
        let event = Event {
            type_: match reason.kind() {
                EventKind::Normal => EventType::Normal,
                EventKind::Warning => EventType::Warning,
            },
            reason: reason.to_string(),
            note: Some(cut(note)),
            action: reason.to_string(),
            secondary: None,
        };
        let name = about.name.as_deref().unwrap_or_default();
        match timeout(DEADLINE, self.recorder.publish(&event, about)).await {
            Ok(Ok(())) => tracing::info!(name, %reason, note, "event"),
            Ok(Err(error)) => tracing::warn!(name, %reason, note, %error, "event not written"),
            Err(_) => tracing::warn!(name, %reason, note, "event not written in time"),
        }
    }
}

fn cut(note: &str) -> String {
    let mut end = note.len().min(NOTE_BYTES_MAX);
    while !note.is_char_boundary(end) {
        end -= 1;
    }
    note.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::mock::pair;
    use serde_json::json;

    #[test]
    fn a_long_note_is_cut_between_letters() {
        assert_eq!(cut("short"), "short");
        let long = "ü".repeat(NOTE_BYTES_MAX);
        assert!(cut(&long).len() <= NOTE_BYTES_MAX);
    }

    #[tokio::test]
    async fn an_event_told_twice_is_one_object_with_a_count() {
        let (client, mut server) = pair();
        let events = Events::new(client, "pod-1");
        let about = ObjectReference {
            api_version: Some("rocketmq.rs/v1alpha1".to_owned()),
            kind: Some("RocketMQCluster".to_owned()),
            name: Some("a".to_owned()),
            namespace: Some("mq".to_owned()),
            uid: Some("u".to_owned()),
            ..ObjectReference::default()
        };
        let shown = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "eventTime": null,
            "metadata": {"name": "e", "namespace": "mq"},
        });
        let tell = async || {
            events
                .tell(&about, EventReason::DriftCorrected, "Service a")
                .await;
        };
        let ((), first) = tokio::join!(tell(), server.answer(201, shown.clone()));
        assert_eq!(first.method, "POST");
        assert_eq!(first.body["reason"], "DriftCorrected");
        assert_eq!(first.body["type"], "Normal");
        let ((), second) = tokio::join!(tell(), server.answer(200, shown));
        assert_eq!(second.method, "PATCH");
    }

    #[tokio::test]
    async fn an_event_that_is_refused_stops_nothing() {
        let (client, mut server) = pair();
        let events = Events::new(client, "pod-1");
        let about = ObjectReference::default();
        let ((), _) = tokio::join!(
            events.tell(&about, EventReason::PodStuck, "no node"),
            server.refuse(403, "Forbidden")
        );
    }
}
