//! Plans as text, compared with files; and what holds for every plan.

use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

fn cluster(spec: &str) -> RocketMQCluster {
    let text = format!(
        "apiVersion: rocketmq.rs/v1alpha1\nkind: RocketMQCluster\nmetadata:\n  name: a\n\
         spec: {{version: 0.1.0, {spec}}}\n"
    );
    rmq_operator_api::parse_manifest(&text).unwrap()
}

fn placement(ports: PortChoice) -> Placement {
    Placement {
        host: "127.0.0.1".parse().unwrap(),
        ports,
        data_dir: PathBuf::from("/d"),
        program_version: "0.1.0".to_owned(),
    }
}

fn render(plan: &LocalPlan) -> String {
    let mut text = format!("cluster {}\n", plan.cluster);
    let processes = plan.name_servers.iter().chain(&plan.brokers);
    for process in processes.chain(&plan.proxies) {
        let args = process.args(process.listen, process.health, "127.0.0.1:9876");
        let _ = write!(
            text,
            "\n{} group={} id={}\n{}\n{}",
            process.name,
            process.group.as_deref().unwrap_or("-"),
            process.id.map_or("-".to_owned(), |id| id.to_string()),
            args.join(" "),
            process.config
        );
    }
    for Note(note) in &plan.notes {
        let _ = write!(text, "\nnote: {note}\n");
    }
    text
}

#[test]
fn the_quickstart_is_one_name_server_and_one_master() {
    let text = include_str!("../../../../examples/quickstart.yaml");
    let quickstart = rmq_operator_api::parse_manifest(text).unwrap();
    assert_eq!(rmq_operator_api::validate(&quickstart), []);
    let plan = plan(&quickstart, &placement(PortChoice::Usual));
    assert_eq!(render(&plan), include_str!("golden/quickstart.txt"));
}

#[test]
fn several_of_each_get_ports_beside_each_other_and_what_is_not_supported_is_said() {
    let cluster = cluster(
        "nameServer: {replicas: 2, config: {orderMessageEnable: \"true\"}}, controller: {}, proxy: {}, \
         brokers: {groups: 2, namePrefix: mq, flush: Sync, replicasPerGroup: 2, \
         storage: {size: 1Gi}, config: {fileReservedTime: \"48\"}}",
    );
    let mut placement = placement(PortChoice::Usual);
    placement.program_version = "0.2.0".to_owned();
    assert_eq!(
        render(&plan(&cluster, &placement)),
        include_str!("golden/larger.txt")
    );
}

#[test]
fn free_ports_are_asked_of_the_kernel() {
    let plan = plan(
        &cluster("brokers: {groups: 3}"),
        &placement(PortChoice::Free),
    );
    let processes = plan.name_servers.iter().chain(&plan.brokers);
    assert!(
        processes
            .into_iter()
            .all(|p| p.listen.port() == 0 && p.health.port() == 0)
    );
}

#[test]
fn data_goes_to_a_folder_named_after_the_object() {
    assert_eq!(
        default_data_dir(&cluster("clusterName: Other")),
        Path::new("data/a")
    );
}

#[test]
fn a_backslash_in_a_value_survives_the_properties_file() {
    let cluster = cluster("brokers: {config: {regionId: 'a\\b'}}");
    let plan = plan(&cluster, &placement(PortChoice::Usual));
    assert!(
        plan.brokers
            .iter()
            .all(|b| b.config.contains("regionId=a\\\\b\n"))
    );
}

proptest! {
    #[test]
    fn no_two_ports_names_or_folders_of_a_plan_meet(name_servers in 1..=9, groups in 1..=128) {
        let cluster = cluster(&format!(
            "nameServer: {{replicas: {name_servers}}}, brokers: {{groups: {groups}}}"
        ));
        let plan = plan(&cluster, &placement(PortChoice::Usual));
        let mut ports = HashSet::new();
        let mut folders = HashSet::new();
        for process in plan.name_servers.iter().chain(&plan.brokers) {
            let port = process.listen.port();
            prop_assert!(ports.insert(port) && ports.insert(process.health.port()));
            if process.role == Role::Broker {
                prop_assert!(ports.insert(port - 2) && ports.insert(port + 1));
            }
            prop_assert!(folders.insert(process.dir.clone()));
        }
        prop_assert_eq!(folders.len(), (name_servers + groups) as usize);
    }
}
