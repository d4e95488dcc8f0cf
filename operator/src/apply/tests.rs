//! What is sent to the API server, request by request.

use super::mock::{Server, pair};
use super::*;
use crate::build::{Kind, Object};
use kube::api::PropagationPolicy;
use rmq_operator_api::{RocketMQCluster, RocketMQClusterStatus, parse_manifest};
use serde_json::{Value, json};

fn wanted() -> Object {
    let value = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "a", "namespace": "mq",
            "ownerReferences": [{"uid": "u1", "kind": "X", "name": "x", "controller": true}],
        },
        "data": {"k": "v"},
    });
    Object::new(Kind::ConfigMap, "a".to_owned(), value)
}

/// The object as the server would show it.
fn live(change: impl FnOnce(&mut Value)) -> Value {
    let mut value = wanted().value;
    value["metadata"]["uid"] = json!("o1");
    change(&mut value);
    value
}

const NOT_FOUND: &str = "NotFound";

#[tokio::test]
async fn an_object_that_is_not_there_is_asked_for_and_then_applied_by_its_manager() {
    let (client, mut server) = pair();
    let writer = Writer::new(client);
    let object = wanted();
    let serve = async {
        let asked = server.refuse(404, NOT_FOUND).await;
        assert_eq!(asked.method, "GET");
        assert_eq!(asked.path, "/api/v1/namespaces/mq/configmaps/a");
        let asked = server.answer(201, live(|_| {})).await;
        assert_eq!(
            (asked.method.as_str(), asked.path.as_str()),
            ("PATCH", "/api/v1/namespaces/mq/configmaps/a")
        );
        assert!(asked.query.contains("force=true"), "{}", asked.query);
        assert!(
            asked.query.contains("fieldManager=rmq-operator"),
            "{}",
            asked.query
        );
        assert_eq!(asked.content_type, "application/apply-patch+yaml");
        assert_eq!(asked.body, object.value);
    };
    let (applied, ()) = tokio::join!(writer.apply("mq", &object, None), serve);
    assert_eq!(applied.unwrap(), Applied::Created);
}

#[tokio::test]
async fn an_object_that_says_what_is_wanted_costs_no_request() {
    let (client, server) = pair();
    let writer = Writer::new(client);
    let seen = live(|object| object["data"]["more"] = json!("of somebody else"));
    let applied = writer.apply("mq", &wanted(), Some(&seen)).await.unwrap();
    assert_eq!(applied, Applied::Unchanged);
    drop(server);
}

#[tokio::test]
async fn drift_is_put_right_and_named_and_an_edit_is_an_update() {
    let (client, mut server) = pair();
    let writer = Writer::new(client);
    let drifted = live(|object| object["data"]["k"] = json!("x"));
    let object = wanted();
    let (applied, _) = tokio::join!(
        writer.apply("mq", &object, Some(&drifted)),
        server.answer(200, live(|_| {}))
    );
    let field = "data.k".to_owned();
    assert_eq!(applied.unwrap(), Applied::Corrected { field });
    let older = live(|object| {
        object["data"]["k"] = json!("x");
        object["metadata"]["annotations"]["rocketmq.rs/applied-hash"] = json!("0");
    });
    let (applied, _) = tokio::join!(
        writer.apply("mq", &object, Some(&older)),
        server.answer(200, live(|_| {}))
    );
    assert_eq!(applied.unwrap(), Applied::Updated);
}

#[tokio::test]
async fn what_the_server_writes_in_its_own_way_is_written_once() {
    let (client, mut server) = pair();
    let writer = Writer::new(client);
    let object = wanted();
    let normalised = live(|object| object["data"]["k"] = json!("V"));
    let missing = live(|object| object["data"] = json!({}));
    let (applied, _) = tokio::join!(
        writer.apply("mq", &object, Some(&missing)),
        server.answer(200, normalised.clone())
    );
    applied.unwrap();
    let again = writer.apply("mq", &object, Some(&normalised)).await;
    assert_eq!(again.unwrap(), Applied::Unchanged);
}

#[tokio::test]
async fn an_object_of_somebody_else_is_never_taken() {
    let (client, server) = pair();
    let writer = Writer::new(client);
    let theirs = live(|object| object["metadata"]["ownerReferences"][0]["uid"] = json!("u2"));
    let error = writer
        .apply("mq", &wanted(), Some(&theirs))
        .await
        .unwrap_err();
    assert!(matches!(error, ApplyError::NotOurs { .. }), "{error}");
    assert_eq!(error.class(), Class::Permanent);
    let nobodys = live(|object| object["metadata"]["ownerReferences"] = json!([]));
    let error = writer
        .apply("mq", &wanted(), Some(&nobodys))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("belongs to nobody"), "{error}");
    let orphan = live(|object| {
        object["metadata"]["ownerReferences"] = json!([]);
        object["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "rmq-operator"});
    });
    drop(server);
    let error = writer
        .apply("mq", &wanted(), Some(&orphan))
        .await
        .unwrap_err();
    assert!(
        matches!(error, ApplyError::Api { .. }),
        "adopted, so it is written: {error}"
    );
}

#[tokio::test]
async fn answers_of_the_server_have_their_class() {
    for (code, reason, class) in [
        (409, "Conflict", Class::Conflict),
        (429, "TooManyRequests", Class::Transient),
        (500, "InternalError", Class::Transient),
        (410, "Expired", Class::Transient),
        (422, "Invalid", Class::Permanent),
        (403, "Forbidden", Class::Permanent),
    ] {
        let (client, mut server) = pair();
        let writer = Writer::new(client);
        let object = wanted();
        let missing = live(|object| object["data"] = json!({}));
        let (applied, _) = tokio::join!(
            writer.apply("mq", &object, Some(&missing)),
            server.refuse(code, reason)
        );
        let error = applied.unwrap_err();
        assert_eq!(error.class(), class, "{code}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[tokio::test]
async fn a_deletion_names_the_uid_and_something_gone_is_no_error() {
    let (client, mut server) = pair();
    let writer = Writer::new(client);
    let delete = async |server: &mut Server, gone: bool| {
        let call = writer.delete(
            "mq",
            Kind::StatefulSet,
            "s",
            "u9",
            PropagationPolicy::Orphan,
        );
        let serve = async {
            if gone {
                server.refuse(404, NOT_FOUND).await
            } else {
                server.answer(200, live(|_| {})).await
            }
        };
        tokio::join!(call, serve)
    };
    let (done, asked) = delete(&mut server, false).await;
    done.unwrap();
    assert_eq!(asked.method, "DELETE");
    assert_eq!(asked.path, "/apis/apps/v1/namespaces/mq/statefulsets/s");
    assert_eq!(asked.body["preconditions"]["uid"], "u9");
    assert_eq!(asked.body["propagationPolicy"], "Orphan");
    delete(&mut server, true).await.0.unwrap();
}

#[tokio::test]
async fn claims_of_a_stateful_set_are_sent_as_they_are() {
    let (client, mut server) = pair();
    let writer = Writer::new(client);
    let set = |size: &str, replicas: i32| {
        json!({
            "metadata": {"name": "s"},
            "spec": {"replicas": replicas, "volumeClaimTemplates": [
                {"spec": {"resources": {"requests": {"storage": size}}}}
            ]},
        })
    };
    let object = Object::new(Kind::StatefulSet, "s".to_owned(), set("2Gi", 2));
    let seen = set("1Gi", 1);
    let (applied, asked) = tokio::join!(
        writer.apply("mq", &object, Some(&seen)),
        server.answer(200, seen.clone())
    );
    applied.unwrap();
    assert_eq!(asked.body["spec"]["replicas"], 2);
    let claims = &asked.body["spec"]["volumeClaimTemplates"];
    assert_eq!(*claims, seen["spec"]["volumeClaimTemplates"]);
}

fn cluster() -> RocketMQCluster {
    let text = "apiVersion: rocketmq.rs/v1alpha1\nkind: RocketMQCluster\nmetadata:\n  name: a\n\
                spec:\n  version: 0.1.0\n";
    let mut cluster = parse_manifest(text).unwrap();
    cluster.metadata.namespace = Some("mq".to_owned());
    cluster.metadata.uid = Some("u1".to_owned());
    cluster
}

#[tokio::test]
async fn a_status_is_written_only_on_change_and_by_its_own_manager() {
    let (client, mut server) = pair();
    let writer = StatusWriter::new(client);
    let cluster = cluster();
    let status = RocketMQClusterStatus {
        observed_generation: Some(3),
        ..RocketMQClusterStatus::default()
    };
    let shown = serde_json::to_value(&cluster).unwrap();
    let (written, asked) = tokio::join!(
        writer.write(&cluster, None, &status),
        server.answer(200, shown)
    );
    assert!(written.unwrap());
    assert_eq!(
        asked.path,
        "/apis/rocketmq.rs/v1alpha1/namespaces/mq/rocketmqclusters/a/status"
    );
    assert!(asked.query.contains("fieldManager=rmq-operator-status"));
    assert_eq!(asked.body["status"]["observedGeneration"], 3);
    assert_eq!(asked.body["metadata"], json!({"name": "a", "uid": "u1"}));
    assert!(asked.body.get("spec").is_none());
    let again = writer.write(&cluster, Some(&status), &status).await;
    assert!(!again.unwrap());
}
