//! Controllers on free ports and brokers that are made of requests.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use rmq_net::{Client, ClientOptions, IoThreads, ReservedPort};
use rmq_protocol::{
    body::SyncStateSet,
    header::{
        AlterSyncStateSet, ApplyBrokerId, ControllerHeartbeat, ControllerHeartbeatResponse,
        DecodeHeader, ElectMaster, RegisterBrokerToController,
    },
    remoting::{Command, request_code, response_code},
};
use rmq_types::SystemClock;
use tempfile::TempDir;

use crate::{Controller, ControllerOptions, Peer};

pub(super) const WITHIN: Duration = Duration::from_secs(10);
/// Far more than anything takes; a failure, not a measurement.
const PATIENCE: Duration = Duration::from_mins(1);

pub(super) struct Rig {
    ports: Vec<ReservedPort>,
    dirs: Vec<TempDir>,
    pub(super) controllers: Vec<Option<Controller>>,
    pub(super) client: Client,
    seeds: BTreeMap<String, String>,
    io: IoThreads,
}

impl Rig {
    /// Started controllers with keys of the replicated configuration.
    pub(super) fn start(count: usize, seeds: &[(&str, &str)]) -> Self {
        let free: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let seeds = seeds
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        let mut rig = Self {
            ports: (0..count)
                .map(|_| ReservedPort::take(free).unwrap())
                .collect(),
            dirs: (0..count).map(|_| TempDir::new().unwrap()).collect(),
            controllers: (0..count).map(|_| None).collect(),
            client: Client::new(ClientOptions::default()),
            seeds: seeds.collect(),
            io: IoThreads::start(1, "controller-test").unwrap(),
        };
        for id in 0..count {
            rig.start_one(id);
        }
        rig
    }

    pub(super) fn start_one(&mut self, id: usize) {
        let peers = (0u64..).zip(&self.ports).map(|(id, port)| {
            let peer = Peer {
                name: format!("n{id}"),
                address: port.addr().to_string(),
            };
            (id, peer)
        });
        let options = ControllerOptions {
            peers: peers.collect(),
            id: id as u64,
            listen: Some(self.ports[id].addr()),
            seeds: self.seeds.clone(),
            ..ControllerOptions::new(self.dirs[id].path())
        };
        let controller = Controller::start(&self.io, options, Arc::new(SystemClock)).unwrap();
        self.controllers[id] = Some(controller);
    }

    pub(super) fn address(&self, id: usize) -> String {
        self.ports[id].addr().to_string()
    }

    /// The controller that leads, once one does.
    pub(super) async fn leader(&self) -> usize {
        let mut found = None;
        eventually("a controller leads", || {
            let leads =
                |c: &Option<Controller>| c.as_ref().is_some_and(|c| c.probe().figures().leads);
            found = self.controllers.iter().position(leads);
            found.is_some()
        })
        .await;
        found.unwrap()
    }

    /// Asks whoever leads, until somebody does.
    pub(super) async fn ask(&self, command: Command) -> Command {
        let ask = async {
            loop {
                let leader = self.leader().await;
                let answer = self
                    .client
                    .call(&self.address(leader), command.clone(), WITHIN)
                    .await;
                match answer {
                    Ok(answer)
                        if answer.code != response_code::CONTROLLER_NOT_LEADER
                            && answer.code != response_code::SYSTEM_BUSY =>
                    {
                        return answer;
                    }
                    _ => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, ask)
            .await
            .expect("no answer")
    }
}

pub(super) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let poll = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(
        tokio::time::timeout(PATIENCE, poll).await.is_ok(),
        "never: {what}"
    );
}

/// A broker as the controllers see one. Its connections are its own, as a process' are.
pub(super) struct FakeBroker {
    pub(super) id: i64,
    pub(super) client: Client,
    sequence: AtomicI64,
    round: AtomicI64,
}

pub(super) const GROUP: &str = "broker-a";

impl FakeBroker {
    pub(super) fn new(id: i64) -> Self {
        Self {
            id,
            client: Client::new(ClientOptions::default()),
            sequence: AtomicI64::new(0),
            round: AtomicI64::new(0),
        }
    }

    /// A broker with its id taken and its address told.
    pub(super) async fn register(rig: &Rig, id: i64) -> Self {
        let broker = Self::new(id);
        let applied = rig
            .ask(apply_id(id, &format!("127.0.0.1:{};1", 20_000 + id)))
            .await;
        assert_eq!(applied.code, 0, "{:?}", applied.remark);
        let registered = rig.ask(register(id)).await;
        assert_eq!(registered.code, 0, "{:?}", registered.remark);
        broker
    }

    pub(super) fn heartbeat(&self, max_offset: i64) -> Command {
        let header = ControllerHeartbeat {
            cluster_name: Some("c".into()),
            broker_addr: Some(format!("127.0.0.1:{}", 20_000 + self.id).into()),
            broker_name: Some(GROUP.into()),
            broker_id: Some(self.id),
            epoch: Some(1),
            max_offset: Some(max_offset),
            confirm_offset: Some(0),
            heartbeat_timeout_mills: None,
            election_priority: None,
            incarnation: Some(self.id),
            sequence: Some(self.sequence.fetch_add(1, Ordering::Relaxed) + 1),
            round: Some(self.round.load(Ordering::Relaxed)),
            fenced: None,
            settled_master_epoch: None,
            settled_set_epoch: None,
            declined_master_epoch: None,
            may_lack: None,
        };
        Command::request(request_code::BROKER_HEARTBEAT).with_header(&header)
    }

    /// Beats once at a controller; whether it has a lease.
    pub(super) async fn beat(&self, address: &str, max_offset: i64) -> Option<bool> {
        let answer = self
            .client
            .call(address, self.heartbeat(max_offset), WITHIN)
            .await
            .ok()?;
        if answer.code != 0 {
            return None;
        }
        let header = ControllerHeartbeatResponse::decode(&answer.ext).unwrap();
        self.round
            .store(header.round.unwrap_or(0), Ordering::Relaxed);
        header.lease
    }

    /// Beats until the lease is as wanted.
    pub(super) async fn beat_until(&self, rig: &Rig, lease: bool) {
        let beat = async {
            loop {
                let leader = rig.leader().await;
                if self.beat(&rig.address(leader), 0).await == Some(lease) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, beat)
            .await
            .expect("no such lease");
    }
}

pub(super) fn apply_id(id: i64, check_code: &str) -> Command {
    let header = ApplyBrokerId {
        cluster_name: "c".into(),
        broker_name: GROUP.into(),
        applied_broker_id: id,
        register_check_code: check_code.to_owned().into(),
    };
    Command::request(request_code::CONTROLLER_APPLY_BROKER_ID).with_header(&header)
}

pub(super) fn register(id: i64) -> Command {
    let header = RegisterBrokerToController {
        cluster_name: "c".into(),
        broker_name: GROUP.into(),
        broker_id: id,
        broker_address: format!("127.0.0.1:{}", 20_000 + id).into(),
        invoke_time: 0,
    };
    Command::request(request_code::CONTROLLER_REGISTER_BROKER).with_header(&header)
}

pub(super) fn elect(id: i64, designate: bool, expected: Option<i32>) -> Command {
    let header = ElectMaster {
        cluster_name: "c".into(),
        broker_name: GROUP.into(),
        broker_id: id,
        designate_elect: designate,
        invoke_time: 0,
        expected_master_epoch: expected,
        acknowledge_data_loss: None,
    };
    Command::request(request_code::CONTROLLER_ELECT_MASTER).with_header(&header)
}

pub(super) fn alter(master: i64, epoch: i32, set: &[i64], set_epoch: i32) -> Command {
    let header = AlterSyncStateSet {
        broker_name: GROUP.into(),
        master_broker_id: master,
        master_epoch: epoch,
        invoke_time: 0,
        renew: None,
    };
    let body = SyncStateSet {
        sync_state_set: set.iter().copied().collect::<BTreeSet<_>>(),
        sync_state_set_epoch: set_epoch,
    };
    Command::request(request_code::CONTROLLER_ALTER_SYNC_STATE_SET)
        .with_header(&header)
        .with_body(body.to_json())
}
