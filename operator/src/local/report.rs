//! What runs and where: as table rows for people, as one JSON line for scripts.
//!
//! **Invariant:** both come from the same states; the JSON names and the columns are a promise to
//! users' scripts and only grow.

use crate::local::plan::{LocalPlan, ProcessPlan, Role};
use crate::local::state::ProcessState;
use serde::Serialize;

/// One line of the table, in the order of [`Row::HEAD`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row(pub [String; 8]);

impl Row {
    /// A NameServer that somebody else runs.
    pub(crate) fn of_external(addr: &str) -> Self {
        let dash = || "-".to_owned();
        let role = Role::NameServer.as_str().to_owned();
        let status = "External".to_owned();
        Self([
            role,
            dash(),
            dash(),
            dash(),
            addr.to_owned(),
            dash(),
            dash(),
            status,
        ])
    }

    /// The columns.
    pub const HEAD: [&'static str; 8] = [
        "ROLE", "NAME", "GROUP", "ID", "ADDRESS", "PID", "HEALTH", "STATUS",
    ];

    pub(crate) fn of(plan: &ProcessPlan, state: &ProcessState) -> Self {
        let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let mut status = state.phase.as_str().to_owned();
        if state.restarts > 0 {
            status = format!("{status} (restarts: {})", state.restarts);
        }
        Self([
            plan.role.as_str().to_owned(),
            plan.name.clone(),
            text(plan.group.clone()),
            text(plan.id.map(|id| id.to_string())),
            text(state.address.map(|address| address.to_string())),
            text(state.pid.map(|pid| pid.to_string())),
            text(state.health.map(|health| health.to_string())),
            status,
        ])
    }
}

/// What runs and where, for scripts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The cluster's name as clients know it.
    pub cluster: String,
    /// The NameServers.
    pub name_servers: Vec<NameServerReport>,
    /// The brokers.
    pub brokers: Vec<BrokerReport>,
    /// None yet.
    pub controllers: [(); 0],
    /// The gateways of 5.x clients.
    pub proxies: Vec<ProxyReport>,
}

/// A NameServer. Of one that somebody else runs only the address is known; it stands for its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NameServerReport {
    /// Its name in the cluster.
    pub name: String,
    /// Where clients connect.
    pub address: String,
    /// The process.
    pub pid: Option<u32>,
    /// Where `/metrics` is.
    pub metrics: Option<String>,
    /// Where `/livez`, `/readyz` and `/startupz` are.
    pub health: Option<String>,
}

/// A gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProxyReport {
    /// Its name in the cluster.
    pub name: String,
    /// Where clients connect, over gRPC.
    pub address: String,
    /// The process.
    pub pid: u32,
    /// Where `/metrics` is.
    pub metrics: String,
    /// Where `/livez`, `/readyz` and `/startupz` are.
    pub health: String,
}

/// A broker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BrokerReport {
    /// Its name in the cluster.
    pub name: String,
    /// Its group: the broker name in routes.
    pub group: String,
    /// Its id in the group.
    pub id: u64,
    /// `master`, or `replica` once there are any.
    pub role: &'static str,
    /// Where clients connect.
    pub address: String,
    /// The process.
    pub pid: u32,
    /// Where `/metrics` is.
    pub metrics: String,
    /// Where `/livez`, `/readyz` and `/startupz` are.
    pub health: String,
}

impl Report {
    pub(crate) fn of<'a>(
        run: &LocalPlan,
        members: impl Iterator<Item = (&'a ProcessPlan, ProcessState)>,
    ) -> Self {
        let mut report = Self {
            cluster: run.cluster.clone(),
            name_servers: external(run),
            brokers: Vec::new(),
            controllers: [],
            proxies: Vec::new(),
        };
        for (plan, state) in members {
            let address = state.address.unwrap_or(plan.listen).to_string();
            let health = state.health.unwrap_or(plan.health).to_string();
            let pid = state.pid.unwrap_or_default();
            let name = plan.name.clone();
            let metrics = health.clone();
            match plan.role {
                Role::NameServer => {
                    report.name_servers.push(NameServerReport {
                        name,
                        address,
                        pid: Some(pid),
                        metrics: Some(metrics),
                        health: Some(health),
                    });
                }
                Role::Proxy => report.proxies.push(ProxyReport {
                    name,
                    address,
                    pid,
                    metrics,
                    health,
                }),
                Role::Broker => report.brokers.push(BrokerReport {
                    name,
                    group: plan.group.clone().unwrap_or_default(),
                    id: plan.id.unwrap_or_default(),
                    role: if plan.id == Some(0) {
                        "master"
                    } else {
                        "replica"
                    },
                    address,
                    pid,
                    metrics,
                    health,
                }),
            }
        }
        report
    }
}

fn external(run: &LocalPlan) -> Vec<NameServerReport> {
    let external = run.external_name_servers.iter();
    external
        .map(|addr| NameServerReport {
            name: addr.clone(),
            address: addr.clone(),
            pid: None,
            metrics: None,
            health: None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::state::Phase;
    use std::path::PathBuf;

    fn process(role: Role) -> ProcessPlan {
        let broker = role == Role::Broker;
        ProcessPlan {
            role,
            name: format!("{}-0", role.as_str()),
            group: broker.then(|| "broker-0".to_owned()),
            id: broker.then_some(0),
            listen: "127.0.0.1:0".parse().unwrap(),
            health: "127.0.0.1:0".parse().unwrap(),
            dir: PathBuf::from("/d"),
            config: String::new(),
        }
    }

    fn running() -> ProcessState {
        ProcessState {
            phase: Phase::Ready,
            pid: Some(7),
            address: Some("127.0.0.1:10911".parse().unwrap()),
            health: Some("127.0.0.1:10910".parse().unwrap()),
            restarts: 0,
            reason: None,
        }
    }

    #[test]
    fn the_json_is_one_line_with_the_promised_names() {
        let (namesrv, broker) = (process(Role::NameServer), process(Role::Broker));
        let run = LocalPlan {
            cluster: "c".to_owned(),
            ..LocalPlan::default()
        };
        let report = Report::of(
            &run,
            [(&namesrv, running()), (&broker, running())].into_iter(),
        );
        assert_eq!(
            serde_json::to_string(&report).unwrap(),
            "{\"cluster\":\"c\",\
             \"nameServers\":[{\"name\":\"namesrv-0\",\"address\":\"127.0.0.1:10911\",\"pid\":7,\
             \"metrics\":\"127.0.0.1:10910\",\"health\":\"127.0.0.1:10910\"}],\
             \"brokers\":[{\"name\":\"broker-0\",\"group\":\"broker-0\",\"id\":0,\
             \"role\":\"master\",\"address\":\"127.0.0.1:10911\",\"pid\":7,\
             \"metrics\":\"127.0.0.1:10910\",\"health\":\"127.0.0.1:10910\"}],\
             \"controllers\":[],\"proxies\":[]}"
        );
    }

    #[test]
    fn a_name_server_of_somebody_else_is_an_address_and_nothing_more() {
        let run = LocalPlan {
            external_name_servers: vec!["ns:9876".to_owned()],
            ..LocalPlan::default()
        };
        let report = Report::of(&run, std::iter::empty());
        assert_eq!(
            serde_json::to_string(&report.name_servers).unwrap(),
            "[{\"name\":\"ns:9876\",\"address\":\"ns:9876\",\"pid\":null,\"metrics\":null,\
             \"health\":null}]"
        );
        let row = Row::of_external("ns:9876").0.join(" ");
        assert_eq!(row, "namesrv - - - ns:9876 - - External");
    }

    #[test]
    fn a_row_shows_restarts_and_dashes_for_what_is_not_known() {
        let mut state = ProcessState {
            restarts: 2,
            ..ProcessState::new()
        };
        let row = Row::of(&process(Role::NameServer), &state);
        assert_eq!(
            row.0.join(" "),
            "namesrv namesrv-0 - - - - - Starting (restarts: 2)"
        );
        state = running();
        let row = Row::of(&process(Role::Broker), &state);
        assert_eq!(
            row.0.join(" "),
            "broker broker-0 broker-0 0 127.0.0.1:10911 7 127.0.0.1:10910 Ready"
        );
    }
}
