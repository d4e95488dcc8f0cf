//! A broker: its machine, its disk, and the shell between them as the real one must be.
//!
//! **Invariant:** a process that was started anew knows what is on its disk and nothing else; it
//! takes no role before a controller names one, and never goes on as master of an epoch it had.

use std::collections::VecDeque;

use rmq_controller_fsm::{
    AckPolicy, GroupView,
    detector::{ConnectionId, Heartbeat, OurHeartbeat},
};
use rmq_replica::{
    AckRule, EpochStart, LinkId, Master, MasterOptions, Promotion, Replica, ReplicaOptions,
};
use rmq_types::{BrokerId, MasterEpoch, Moment};

use crate::{disk::Disk, link::ToReplica, net::Node, quorum::CONTROLLERS};

#[derive(Clone, Debug)]
pub(crate) enum Role {
    /// Just started.
    Nobody,
    Master(Box<Master>),
    Replica(Box<Replica>),
}

#[derive(Clone, Debug)]
pub(crate) struct Broker {
    pub(crate) id: BrokerId,
    pub(crate) disk: Disk,
    pub(crate) incarnation: u64,
    sequence: u64,
    pub(crate) round: u64,
    pub(crate) role: Role,
    pub(crate) beat_at: u64,
    declined: Option<MasterEpoch>,
    /// Numbers of the connections to the controllers, renewed with each start.
    pub(crate) connections: [u64; CONTROLLERS],
    /// Taken writes that are not acknowledged: place in the log and message.
    pub(crate) pending: VecDeque<(usize, u64)>,
    /// Links of a master.
    pub(crate) links: Vec<LinkId>,
    /// The link of a replica, and when it may dial again.
    pub(crate) link: Option<LinkId>,
    pub(crate) dial_at: u64,
    /// Frames that came while an action was under way.
    pub(crate) inbox: VecDeque<ToReplica>,
}

pub(crate) const MASTER_OPTIONS: MasterOptions = MasterOptions {
    rule: AckRule::Async,
    min_in_sync: 1,
    lag_time_max: 4000,
    link_grace: 1000,
    idle_max: 2500,
    heartbeat: 500,
    batch_bytes_max: 50,
    window_bytes_max: 200,
    sync_flush: false,
};
const REPLICA_OPTIONS: ReplicaOptions = ReplicaOptions {
    idle_max: 2500,
    heartbeat: 500,
    sync_flush: false,
};

impl Broker {
    pub(crate) fn new(id: BrokerId) -> Self {
        Self {
            id,
            disk: Disk::default(),
            incarnation: 0,
            sequence: 0,
            round: 0,
            role: Role::Nobody,
            beat_at: 0,
            declined: None,
            connections: [0; CONTROLLERS],
            pending: VecDeque::new(),
            links: Vec::new(),
            link: None,
            dial_at: 0,
            inbox: VecDeque::new(),
        }
    }

    /// The process starts.
    pub(crate) fn start(&mut self, now: u64, incarnation: u64, connections: [u64; CONTROLLERS]) {
        let mut fresh = Self::new(self.id);
        fresh.disk = std::mem::take(&mut self.disk);
        fresh.incarnation = incarnation;
        fresh.connections = connections;
        fresh.beat_at = now;
        *self = fresh;
    }

    pub(crate) fn stamp(&mut self, now: Moment, group: &rmq_types::BrokerName) -> Heartbeat {
        self.sequence += 1;
        let stamp = match &mut self.role {
            Role::Master(master) => Some(master.heartbeat(now, self.sequence)),
            _ => None,
        };
        if let Role::Replica(replica) = &self.role
            && self.disk.may_lack
            && replica.holds_everything()
        {
            self.disk.may_lack = false;
        }
        Heartbeat {
            group: group.clone(),
            broker: self.id,
            connection: ConnectionId(0),
            epoch: self.disk.epochs.last().map_or(0, |last| last.epoch.get()),
            max_offset: self.disk.end().get() as i64,
            priority: 0,
            timeout_millis: Some(3000),
            ours: Some(OurHeartbeat {
                incarnation: self.incarnation,
                sequence: self.sequence,
                round: self.round,
                fenced: stamp.is_some_and(|stamp| stamp.fenced),
                settled: stamp.and_then(|stamp| stamp.settled),
                declined: self.declined,
                may_lack: self.disk.may_lack,
            }),
        }
    }

    /// The role that a controller's view gives. `true` if this broker just became master.
    pub(crate) fn take_role(&mut self, now: Moment, view: &GroupView) -> bool {
        let known = match &self.role {
            Role::Master(master) => master.epoch(),
            Role::Replica(replica) => replica.following().map_or(MasterEpoch::new(0), |f| f.1),
            Role::Nobody => MasterEpoch::new(0),
        };
        if view.epoch < known {
            return false;
        }
        let master = view.master.as_ref().map(|master| master.broker);
        match master {
            Some(id) if id == self.id => self.become_master(now, view),
            other => {
                self.become_replica(view, other);
                false
            }
        }
    }

    fn become_master(&mut self, now: Moment, view: &GroupView) -> bool {
        let stored = self.disk.epochs.last().map(|last| last.epoch);
        match &self.role {
            Role::Master(master) if master.epoch() == view.epoch => return false,
            Role::Replica(replica) if replica.is_busy() => return false,
            _ if stored >= Some(view.epoch) || self.lacks_what_was_promised(view) => {
                self.declined = Some(view.epoch);
                return false;
            }
            _ => {}
        }
        let confirmed = match &self.role {
            Role::Master(master) => master.acknowledged(),
            Role::Replica(replica) => replica.confirmed(),
            Role::Nobody => self.disk.confirmed,
        };
        let start = self.disk.end();
        let entry = EpochStart {
            epoch: view.epoch,
            start,
        };
        self.disk
            .epochs
            .push(entry)
            .expect("a newer epoch at the end of the log");
        let promotion = Promotion {
            me: self.id,
            registered: view.members.keys().copied().collect(),
            epoch: view.epoch,
            set: view.set.clone(),
            set_epoch: view.set_epoch,
            rule_at_least: rule(view.ack),
        };
        let epochs = self.disk.epochs.clone();
        let master = Master::promote(MASTER_OPTIONS, promotion, epochs, confirmed, now);
        self.role = Role::Master(Box::new(master.expect("the entry was just pushed")));
        self.pending.clear();
        self.inbox.clear();
        true
    }

    /// The leader's facts may be older than the power cut that took bytes from this broker.
    fn lacks_what_was_promised(&self, view: &GroupView) -> bool {
        self.disk.may_lack && !view.unclean && view.ack != AckPolicy::Async
    }

    fn become_replica(&mut self, view: &GroupView, master: Option<BrokerId>) {
        if let Role::Master(machine) = &mut self.role {
            machine.observe_epoch(view.epoch);
            if !machine.is_deposed() {
                return;
            }
        }
        if !matches!(self.role, Role::Replica(_)) {
            let replica = Replica::new(
                REPLICA_OPTIONS,
                self.disk.epochs.clone(),
                self.disk.end(),
                self.disk.confirmed,
            );
            self.role = Role::Replica(Box::new(replica));
            self.pending.clear();
            self.inbox.clear();
        }
        if let (Role::Replica(replica), Some(master)) = (&mut self.role, master) {
            let closes = !replica.follow(master, view.epoch).is_empty();
            if closes {
                self.link = None;
                self.inbox.clear();
            }
        }
    }

    /// The node of the master that is followed, if a link should be made.
    pub(crate) fn dials(&self, now: u64) -> Option<(Node, MasterEpoch)> {
        let Role::Replica(replica) = &self.role else {
            return None;
        };
        let (master, epoch) = replica.following()?;
        (replica.wants_link() && now >= self.dial_at).then(|| (crate::node_of(master), epoch))
    }
}

pub(crate) fn rule(ack: AckPolicy) -> AckRule {
    match ack {
        AckPolicy::Async => AckRule::Async,
        AckPolicy::Quorum(acks) => AckRule::Quorum(acks),
        AckPolicy::AllInSync => AckRule::AllInSync,
    }
}
