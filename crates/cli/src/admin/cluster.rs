//! `admin cluster`: every broker and how it is doing.

use rmq_admin::{AdminClient, Answer, Answers, BrokerRuntime};
use rmq_types::{ClusterName, MASTER_ID};
use serde::Serialize;

use super::{
    advice::advise,
    outcome::require_all,
    output::{Output, cell, table},
};

#[derive(Debug, clap::Args)]
pub(super) struct ClusterArgs {
    /// `list`, which is also the default
    #[arg(value_name = "list", value_parser = ["list"])]
    verb: Option<String>,
    /// Only this cluster
    #[arg(short = 'c', long, value_name = "NAME")]
    cluster: Option<ClusterName>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClusterView {
    brokers: Vec<BrokerView>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct BrokerView {
    cluster: Option<String>,
    broker: String,
    id: u64,
    role: &'static str,
    address: Option<String>,
    version: Option<String>,
    in_tps: Option<f64>,
    out_tps: Option<f64>,
    in_today: Option<i64>,
    out_today: Option<i64>,
    disk_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) async fn run(
    admin: &AdminClient,
    args: &ClusterArgs,
    out: Output,
) -> anyhow::Result<()> {
    let brokers = admin.brokers(args.cluster.as_ref()).await.map_err(advise)?;
    out.answer(&view(&brokers), text)?;
    require_all(&brokers)
}

fn view(brokers: &Answers<BrokerRuntime>) -> ClusterView {
    ClusterView {
        brokers: brokers.iter().map(broker).collect(),
    }
}

fn broker(answer: &Answer<BrokerRuntime>) -> BrokerView {
    let target = &answer.target;
    let runtime = answer.outcome.as_ref().ok();
    BrokerView {
        cluster: target.cluster.clone(),
        broker: target.label().to_owned(),
        id: target.id.get(),
        role: if target.id == MASTER_ID {
            "master"
        } else {
            "replica"
        },
        address: target.addr.clone(),
        version: runtime.and_then(BrokerRuntime::version).map(str::to_owned),
        in_tps: runtime.and_then(BrokerRuntime::in_tps),
        out_tps: runtime.and_then(BrokerRuntime::out_tps),
        in_today: runtime.and_then(BrokerRuntime::in_today),
        out_today: runtime.and_then(BrokerRuntime::out_today),
        disk_ratio: runtime.and_then(BrokerRuntime::disk_ratio),
        error: answer.outcome.as_ref().err().map(ToString::to_string),
    }
}

fn text(view: &ClusterView) -> String {
    let head = [
        "CLUSTER", "BROKER", "ID", "ROLE", "ADDRESS", "VERSION", "IN/S", "OUT/S", "DISK", "STATE",
    ];
    table(
        head,
        view.brokers.iter().map(|broker| {
            [
                cell(broker.cluster.clone()),
                broker.broker.clone(),
                broker.id.to_string(),
                broker.role.to_owned(),
                cell(broker.address.clone()),
                cell(broker.version.clone()),
                cell(broker.in_tps.map(|tps| format!("{tps:.2}"))),
                cell(broker.out_tps.map(|tps| format!("{tps:.2}"))),
                cell(
                    broker
                        .disk_ratio
                        .map(|ratio| format!("{:.1}%", ratio * 100.0)),
                ),
                broker.error.clone().unwrap_or_else(|| "ok".to_owned()),
            ]
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::output::json_line;

    fn example() -> ClusterView {
        let up = BrokerView {
            cluster: Some("DefaultCluster".into()),
            broker: "broker-0".into(),
            id: 0,
            role: "master",
            address: Some("127.0.0.1:10911".into()),
            version: Some("V5_3_3".into()),
            in_tps: Some(12.5),
            out_tps: Some(0.0),
            in_today: Some(100),
            out_today: None,
            disk_ratio: Some(0.423),
            error: None,
        };
        let down = BrokerView {
            cluster: Some("DefaultCluster".into()),
            broker: "broker-1".into(),
            id: 1,
            role: "replica",
            address: Some("127.0.0.1:10921".into()),
            version: None,
            in_tps: None,
            out_tps: None,
            in_today: None,
            out_today: None,
            disk_ratio: None,
            error: Some("cannot connect to 127.0.0.1:10921".into()),
        };
        ClusterView {
            brokers: vec![up, down],
        }
    }

    #[test]
    fn the_table_and_the_json_are_as_documented() {
        assert_eq!(
            text(&example()),
            include_str!("goldens/cluster.txt").trim_end()
        );
        assert_eq!(
            json_line(&example()).unwrap(),
            include_str!("goldens/cluster.json").trim_end()
        );
    }
}
