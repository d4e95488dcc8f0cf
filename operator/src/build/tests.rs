//! Every object that is built, compared with a file a person has read. `RMQ_GOLDEN=write` writes
//! the files anew.

use super::*;
use rmq_operator_api::parse_manifest;
use std::path::PathBuf;

const PLAIN: &str = "
apiVersion: rocketmq.rs/v1alpha1
kind: RocketMQCluster
metadata:
  name: shop
spec:
  version: 0.1.0
  brokers:
    groups: 1
    replicasPerGroup: 0
    config:
      fileReservedTime: \"48\"
      maxHashSlotNum: \"1000\"
";

const FULL: &str = "
apiVersion: rocketmq.rs/v1alpha1
kind: RocketMQCluster
metadata:
  name: shop
  annotations:
    rocketmq.rs/restart: \"2\"
spec:
  version: 0.1.0
  clusterName: Shop%DC
  image:
    repository: registry.example.com/mq/rocketmq
    pullPolicy: Always
    pullSecrets: [registry]
  nameServer:
    replicas: 1
    config:
      enableTopicList: \"true\"
    resources:
      limits: {memory: 128Mi}
  brokers:
    groups: 2
    namePrefix: b
    replicasPerGroup: 0
    flush: Sync
    storage: {class: fast, size: 1Ti}
    config:
      regionId: 'a\\b #c=d'
    terminationGracePeriod: 2m
    placement: {antiAffinity: Preferred, spreadZones: false}
    podTemplate:
      labels: {team: shop, rocketmq.rs/cluster: other}
      nodeSelector: {disk: ssd}
      tolerations: [{key: mq, operator: Exists}]
      env: [{name: RUST_LOG, value: debug}, {name: POD_NAME, value: other}]
      identity: {user: 1000, group: 2000}
      volumes: [{name: ca, mountPath: /ca, secret: ca}]
    groupOverrides:
      - groups: [1]
        zone: east
        resources: {requests: {cpu: '2', memory: 4Gi}, limits: {memory: 8Gi}}
  listeners:
    - name: outside
      type: NodePort
      port: 30100
      annotations: {example.com/a: b}
  networkPolicy:
    allowFrom: [{cidr: 10.0.0.0/8}, {namespaces: {team: shop}}]
";

fn manifest(text: &str) -> RocketMQCluster {
    let mut cluster = parse_manifest(text).unwrap();
    assert_eq!(rmq_operator_api::validate(&cluster), []);
    cluster.metadata.namespace = Some("mq".to_owned());
    cluster
}

fn site() -> Site {
    let class = |(key, class): (&str, KeyClass)| (key.to_owned(), class);
    let broker = [
        ("fileReservedTime", KeyClass::Live),
        ("namesrvAddr", KeyClass::Live),
        ("maxHashSlotNum", KeyClass::Restart),
        ("flushDiskType", KeyClass::Restart),
        ("brokerIP1", KeyClass::Restart),
        ("regionId", KeyClass::Restart),
    ];
    Site {
        image_repository: "rocketmq".to_owned(),
        operator_namespace: "rocketmq-system".to_owned(),
        keys: KeyTable::new(broker.map(class).into(), BTreeMap::new(), BTreeMap::new()),
    }
}

fn owner(kind: &str, name: &str) -> OwnerReference {
    OwnerReference {
        api_version: rmq_operator_api::API_VERSION.to_owned(),
        block_owner_deletion: Some(true),
        controller: Some(true),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: "0f0f0f0f-0000-0000-0000-000000000001".to_owned(),
    }
}

fn all(text: &str, facts: &GroupFacts) -> Vec<Object> {
    let (cluster, site) = (manifest(text), site());
    let build = Build {
        cluster: &cluster,
        site: &site,
    };
    let of_cluster = owner("RocketMQCluster", "shop");
    let mut objects = build.shared_objects(&of_cluster);
    objects.extend(build.name_server_objects(&of_cluster));
    for index in 0..cluster.spec.brokers.groups {
        objects.push(build.broker_group(index, false, &of_cluster));
        let owner = owner("BrokerGroup", &build.names().group(index));
        objects.extend(build.group_services(index, &owner));
        objects.extend(build.group_workload(index, &owner, facts));
    }
    objects
}

fn facts(addresses: &[(&str, &str)]) -> GroupFacts {
    let text_of = |(pod, ip): &(&str, &str)| ((*pod).to_owned(), (*ip).to_owned());
    GroupFacts {
        addresses: addresses.iter().map(text_of).collect(),
    }
}

fn compare(name: &str, objects: &[Object]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("build/golden")
        .join(format!("{name}.yaml"));
    let text: Vec<_> = objects
        .iter()
        .map(|object| serde_saphyr::to_string(&object.value).unwrap())
        .collect();
    let text = text.join("---\n");
    if std::env::var_os("RMQ_GOLDEN").is_some_and(|value| value == "write") {
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == text,
        "{} differs; RMQ_GOLDEN=write writes it anew. Now:\n{text}",
        path.display()
    );
}

#[test]
fn a_plain_cluster_has_the_objects_of_its_golden_file() {
    compare(
        "plain",
        &all(PLAIN, &facts(&[("shop-broker-0-0", "10.96.1.2")])),
    );
}

#[test]
fn every_field_of_a_manifest_has_its_place_in_the_golden_file() {
    compare("full", &all(FULL, &GroupFacts::default()));
}

#[test]
fn what_is_built_twice_is_the_same() {
    let facts = GroupFacts::default();
    assert_eq!(all(FULL, &facts), all(FULL, &facts));
}

#[test]
fn no_two_objects_of_a_cluster_have_one_name() {
    let objects = all(FULL, &GroupFacts::default());
    let mut names: Vec<_> = objects.iter().map(|o| (o.kind, o.name.clone())).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

fn template_of(text: &str, addresses: &[(&str, &str)]) -> serde_json::Value {
    let objects = all(text, &facts(addresses));
    let is_set = |o: &&Object| o.kind == Kind::StatefulSet;
    let broker = objects.iter().rfind(is_set).unwrap();
    broker.value["spec"]["template"].clone()
}

#[test]
fn only_a_key_that_needs_a_restart_changes_the_pods() {
    let plain = template_of(PLAIN, &[]);
    let live = PLAIN.replace("\"48\"", "\"72\"");
    assert_eq!(template_of(&live, &[]), plain);
    let more_name_servers = PLAIN.replace("  brokers:", "  nameServer: {replicas: 5}\n  brokers:");
    assert_eq!(template_of(&more_name_servers, &[]), plain);
    let restart = PLAIN.replace("\"1000\"", "\"2000\"");
    assert_ne!(template_of(&restart, &[]), plain);
    assert_ne!(
        template_of(PLAIN, &[("shop-broker-0-0", "10.0.0.1")]),
        plain
    );
}

#[test]
fn every_broker_starts_without_the_permission_to_write() {
    let objects = all(PLAIN, &GroupFacts::default());
    let is_file = |o: &&Object| o.kind == Kind::ConfigMap && o.name == "shop-broker-0";
    let config = objects.iter().find(is_file).unwrap();
    let file = config.value["data"]["shop-broker-0-0.conf"]
        .as_str()
        .unwrap();
    assert!(file.contains("brokerPermission=4\n"), "{file}");
}

#[test]
fn a_cluster_that_hibernates_keeps_everything_but_its_pods() {
    let asleep = format!("{PLAIN}  operation: {{hibernated: true}}\n");
    let (awake, asleep) = (
        all(PLAIN, &GroupFacts::default()),
        all(&asleep, &GroupFacts::default()),
    );
    assert_eq!(awake.len(), asleep.len());
    for set in asleep.iter().filter(|o| o.kind == Kind::StatefulSet) {
        assert_eq!(set.value["spec"]["replicas"], 0, "{}", set.name);
    }
}

#[test]
fn name_servers_of_somebody_else_are_told_to_brokers_and_none_is_run() {
    let text = PLAIN.replace(
        "  brokers:",
        "  nameServer: {externalRef: ['ns.example.com:9876', '10.1.1.1:9876']}\n  brokers:",
    );
    let objects = all(&text, &GroupFacts::default());
    assert!(
        !objects
            .iter()
            .any(|o| o.name == "shop-namesrv" && o.kind == Kind::StatefulSet)
    );
    let config = objects.iter().find(|o| o.kind == Kind::ConfigMap).unwrap();
    let file = config.value["data"]["shop-broker-0-0.conf"]
        .as_str()
        .unwrap();
    assert!(
        file.contains("namesrvAddr=ns.example.com:9876;10.1.1.1:9876\n"),
        "{file}"
    );
}
