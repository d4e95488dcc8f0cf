//! What brokers do with messages and time: the shell of the replication machines.
//!
//! **Invariant:** a frame is handed to a replica's machine only when the last action was reported; a
//! write is answered only once the master's machine acknowledges its place.

use rmq_controller_fsm::AlterSyncStateSet;
use rmq_replica::{LinkId, Master, MasterAction, Replica, ReplicaAction, ReplicaHandshake};
use rmq_types::{CommitLogOffset, SyncStateSetEpoch};

use crate::{
    broker::Role,
    bug::Bug,
    controller::{FromController, SetAnswer},
    disk::{RECORD_BYTES, Record},
    link::{Link, ToMaster, ToReplica},
    net::Node,
    quorum::CONTROLLERS,
    world::{DiskWork, Event, World},
};

const BEAT_EVERY: u64 = 500;

impl World {
    pub(crate) fn broker_tick(&mut self, node: Node) {
        if self.now >= self.broker(node).beat_at {
            self.beat(node);
        }
        let synced = self.rng.one_in(8);
        if synced {
            self.broker(node).disk.sync();
        }
        let is_master = matches!(self.broker(node).role, Role::Master(_));
        if is_master {
            self.master_tick(node);
        } else {
            self.replica_tick(node);
        }
    }

    fn beat(&mut self, node: Node) {
        let (now, group) = (self.moment(node), self.group.clone());
        let at = self.now;
        let broker = self.broker(node);
        broker.beat_at = at + BEAT_EVERY;
        let heartbeat = broker.stamp(now, &group);
        let connections = broker.connections;
        for (controller, connection) in connections.into_iter().enumerate() {
            let mut heartbeat = heartbeat.clone();
            heartbeat.connection = rmq_controller_fsm::detector::ConnectionId(connection);
            self.send(node, controller, Event::Heartbeat(node, heartbeat));
        }
    }

    /// Runs `act` on the master's machine of a broker, if it is one.
    fn with_master<T>(&mut self, node: Node, act: impl FnOnce(&mut Master) -> T) -> Option<T> {
        match &mut self.broker(node).role {
            Role::Master(master) => Some(act(master)),
            _ => None,
        }
    }

    fn with_replica<T>(&mut self, node: Node, act: impl FnOnce(&mut Replica) -> T) -> Option<T> {
        match &mut self.broker(node).role {
            Role::Replica(replica) => Some(act(replica)),
            _ => None,
        }
    }

    fn master_tick(&mut self, node: Node) {
        let now = self.moment(node);
        self.take_writes(node);
        let actions = self
            .with_master(node, |master| master.tick(now))
            .unwrap_or_default();
        for action in actions {
            match action {
                MasterAction::Close(link) => self.break_link(node, link),
                MasterAction::LearnSet => {}
                MasterAction::ProposeSet {
                    set,
                    set_epoch,
                    renew,
                } => {
                    let Some(master_epoch) = self.with_master(node, |master| master.epoch()) else {
                        continue;
                    };
                    let command = AlterSyncStateSet {
                        group: self.group.clone(),
                        master: self.broker(node).id,
                        master_epoch,
                        set: set.clone(),
                        set_epoch,
                        renew,
                        alive: set.clone(),
                    };
                    // It does not know who leads; whoever does not, refuses: ask one at a time.
                    let leader = (0..CONTROLLERS).find(|c| self.controllers[*c].quorum.leads());
                    let to = leader.unwrap_or(0);
                    self.send(node, to, Event::Alter(node, command));
                    if self.plan.bug == Some(Bug::AckBeforeSetChange) {
                        let next = SyncStateSetEpoch::new(set_epoch.get() + 1);
                        self.with_master(node, |master| master.set_altered(set, next));
                    }
                }
            }
        }
        let links = self.broker(node).links.clone();
        for link in links {
            self.pump(node, link);
        }
        self.acknowledge(node);
    }

    /// Clients write to whoever lets them.
    fn take_writes(&mut self, node: Node) {
        let now = self.moment(node);
        let admitted = self.with_master(node, |master| (master.admit(now), master.epoch()));
        let Some((admitted, epoch)) = admitted else {
            return;
        };
        if admitted.is_err() || self.broker(node).pending.len() > 400 {
            return;
        }
        self.checker.taken(self.now, epoch.get());
        for _ in 0..self.rng.between(0, 3) {
            let message = self.number();
            let broker = self.broker(node);
            let place = broker.disk.log().len();
            broker.disk.append(Record {
                message,
                epoch: epoch.get(),
            });
            broker.pending.push_back((place, message));
        }
        let end = self.broker(node).disk.end();
        let zero = CommitLogOffset::default();
        self.with_master(node, |master| master.log(zero, zero, end));
    }

    fn acknowledge(&mut self, node: Node) {
        let now = self.moment(node);
        let Some(upto) = self.with_master(node, |master| master.acknowledge(now)) else {
            return;
        };
        let at = self.now;
        let broker = self.broker(node);
        broker.disk.confirmed = upto;
        let mut done = Vec::new();
        while let Some((place, message)) = broker.pending.front().copied()
            && (place as u64 + 1) * RECORD_BYTES <= upto.get()
        {
            broker.pending.pop_front();
            done.push((place, message));
        }
        for (place, message) in done {
            self.checker.acknowledged(at, node, place, message);
        }
    }

    fn pump(&mut self, node: Node, link: LinkId) {
        let now = self.moment(node);
        for _ in 0..16 {
            let next = self.with_master(node, |master| master.next_transfer(now, link));
            match next {
                Some(Ok(Some(transfer))) => {
                    let records = self.broker(node).disk.read(transfer.offset, transfer.bytes);
                    self.send_to_replica(link, ToReplica::Transfer(transfer, records));
                    if transfer.bytes == 0 {
                        return;
                    }
                }
                Some(Ok(None)) => return,
                Some(Err(_)) | None => {
                    self.break_link(node, link);
                    return;
                }
            }
        }
    }

    pub(crate) fn controller_says(&mut self, node: Node, message: FromController) {
        let now = self.moment(node);
        match message {
            FromController::ReportNow(round) => {
                let broker = self.broker(node);
                broker.round = broker.round.max(round);
                self.beat(node);
            }
            FromController::Set(SetAnswer::Refused) => {
                self.with_master(node, |master| master.set_refused(now));
            }
            // What is in force comes with the next heartbeat's answer; the real answer brings it.
            FromController::Set(SetAnswer::Altered) => {}
            FromController::Heartbeat(answer) => {
                let broker = self.broker(node);
                broker.round = broker.round.max(answer.round);
                let became_master = broker.take_role(now, &answer.view);
                if became_master {
                    self.close_links(node);
                    let log = self.broker(node).disk.log().to_vec();
                    let epoch = answer.view.epoch.get();
                    self.checker.promoted(self.now, node, epoch, &log);
                    self.beat(node);
                }
                let never_ends = self.plan.bug == Some(Bug::NoLeaseCheck);
                let lease = answer.lease_millis.or(never_ends.then_some(0));
                let lease = lease.map(|millis| if never_ends { 1_000_000 } else { millis });
                let view = answer.view;
                self.with_master(node, |master| {
                    master.heartbeat_answered(answer.sequence, view.epoch, lease);
                    master.set_learned(view.epoch, view.set, view.set_epoch);
                });
                let deposed = self.with_master(node, |master| master.is_deposed());
                if deposed == Some(true) {
                    self.close_links(node);
                }
            }
        }
    }

    fn close_links(&mut self, node: Node) {
        let links = std::mem::take(&mut self.broker(node).links);
        for link in links {
            self.break_link(node, link);
        }
        if let Some(link) = self.broker(node).link.take() {
            self.break_link(node, link);
        }
    }

    /// One end closes a link; the other learns it if it can be reached.
    pub(crate) fn break_link(&mut self, by: Node, link: LinkId) {
        let Some(ends) = self.links.get_mut(&link) else {
            return;
        };
        let was_broken = std::mem::replace(&mut ends.broken, true);
        let (master, replica) = (ends.master, ends.replica);
        let now = self.moment(by);
        if by == master {
            self.broker(master).links.retain(|own| *own != link);
            self.with_master(master, |machine| machine.unlinked(now, link));
        } else {
            self.forget_link(replica, link);
        }
        let to = if by == master { replica } else { master };
        if was_broken || !self.nodes[to].up {
            return;
        }
        if by == master {
            self.send(by, to, Event::ToReplica(link, ToReplica::Closed));
        } else {
            self.send(by, to, Event::ToMaster(link, ToMaster::Closed));
        }
    }

    fn forget_link(&mut self, node: Node, link: LinkId) {
        let now = self.now;
        let broker = self.broker(node);
        if broker.link == Some(link) {
            broker.link = None;
            broker.inbox.clear();
            broker.dial_at = now + 100;
        }
        self.with_replica(node, |replica| replica.unlinked(link));
    }

    fn send_on_link(&mut self, link: LinkId, to_master: bool, event: Event) {
        let Some(ends) = self.links.get(&link) else {
            return;
        };
        if ends.broken {
            return;
        }
        let (from, to) = if to_master {
            (ends.replica, ends.master)
        } else {
            (ends.master, ends.replica)
        };
        let delay = self.net.delay(from, to, &mut self.rng);
        let now = self.now;
        let Some(ends) = self.links.get_mut(&link) else {
            return;
        };
        let Some(delay) = delay else {
            ends.broken = true;
            return;
        };
        let busy = &mut ends.busy_until[usize::from(to_master)];
        *busy = (now + delay).max(*busy);
        let at = *busy;
        self.at(at, to, event);
    }

    fn send_to_replica(&mut self, link: LinkId, message: ToReplica) {
        self.send_on_link(link, false, Event::ToReplica(link, message));
    }

    fn send_to_master(&mut self, link: LinkId, message: ToMaster) {
        self.send_on_link(link, true, Event::ToMaster(link, message));
    }

    pub(crate) fn master_receives(&mut self, node: Node, link: LinkId, message: &ToMaster) {
        let now = self.moment(node);
        match message {
            ToMaster::Closed => {
                self.broker(node).links.retain(|own| *own != link);
                self.with_master(node, |master| master.unlinked(now, link));
            }
            ToMaster::Handshake(handshake) => {
                let linked = self.with_master(node, |master| {
                    let earlier = master.linked(now, link, *handshake);
                    (earlier, master.epochs().clone(), master.log_end())
                });
                let Some((Ok(earlier), epochs, end)) = linked else {
                    self.break_link(node, link);
                    return;
                };
                if let Some(earlier) = earlier {
                    self.break_link(node, earlier);
                }
                self.broker(node).links.push(link);
                self.send_to_replica(link, ToReplica::Handshake(epochs, end));
            }
            ToMaster::Ack(offset) => {
                let acked = self.with_master(node, |master| master.acked(now, link, *offset));
                if !matches!(acked, Some(Ok(()))) {
                    self.break_link(node, link);
                    return;
                }
                self.acknowledge(node);
                self.pump(node, link);
            }
        }
    }

    fn replica_tick(&mut self, node: Node) {
        let (now, at) = (self.moment(node), self.now);
        if let Some((master, epoch)) = self.broker(node).dials(at) {
            let link = LinkId(self.number());
            self.links.insert(
                link,
                Link {
                    replica: node,
                    master,
                    broken: false,
                    busy_until: [0; 2],
                },
            );
            self.broker(node).link = Some(link);
            self.with_replica(node, |replica| replica.linked(now, link));
            let handshake = ReplicaHandshake {
                broker: self.broker(node).id,
                epoch: Some(epoch),
                learner: false,
                from_last_file: false,
            };
            self.send_to_master(link, ToMaster::Handshake(handshake));
        }
        let action = self
            .with_replica(node, |replica| replica.tick(now))
            .flatten();
        self.perform(node, action, &[]);
    }

    pub(crate) fn replica_receives(&mut self, node: Node, link: LinkId, message: ToReplica) {
        if self.broker(node).link != Some(link) {
            return;
        }
        if let ToReplica::Closed = message {
            self.forget_link(node, link);
            return;
        }
        self.broker(node).inbox.push_back(message);
        self.drain(node);
    }

    /// Hands in frames as long as the machine takes them.
    fn drain(&mut self, node: Node) {
        let now = self.moment(node);
        loop {
            let busy = self.with_replica(node, |replica| replica.is_busy());
            let broker = self.broker(node);
            let Some(link) = broker.link.filter(|_| busy == Some(false)) else {
                return;
            };
            let Some(message) = broker.inbox.pop_front() else {
                return;
            };
            let mut bytes = Vec::new();
            let result = self.with_replica(node, |replica| match message {
                ToReplica::Handshake(epochs, end) => {
                    replica.handshake(now, link, epochs, end).map(Some)
                }
                ToReplica::Transfer(transfer, records) => {
                    bytes = records;
                    replica.transfer(now, link, transfer)
                }
                ToReplica::Closed => Ok(None),
            });
            let Some(Ok(action)) = result else {
                self.break_link(node, link);
                return;
            };
            self.perform(node, action, &bytes);
        }
    }

    /// Performs an action and what follows from it.
    fn perform(&mut self, node: Node, action: Option<ReplicaAction>, records: &[Record]) {
        let now = self.moment(node);
        let mut next = action;
        while let Some(action) = next.take() {
            match action {
                ReplicaAction::Acknowledge(offset) => {
                    if let Some(link) = self.broker(node).link {
                        self.send_to_master(link, ToMaster::Ack(offset));
                    }
                }
                ReplicaAction::Append { .. } => {
                    for record in records {
                        self.broker(node).disk.append(*record);
                    }
                    let done = self.with_replica(node, |replica| replica.appended(now));
                    next = done.and_then(Result::ok).flatten();
                }
                ReplicaAction::Close => {
                    if let Some(link) = self.broker(node).link {
                        self.break_link(node, link);
                    }
                }
                ReplicaAction::Cut { to, epochs, .. } => {
                    self.work(node, DiskWork::Cut(to, epochs));
                }
                ReplicaAction::StoreEpochs(epochs) if records.is_empty() => {
                    self.work(node, DiskWork::StoreEpochs(epochs));
                }
                ReplicaAction::StoreEpochs(epochs) => {
                    self.broker(node).disk.epochs = epochs.clone();
                    let stored = self.with_replica(node, |r| r.epochs_stored(now, epochs));
                    next = stored.and_then(Result::ok).flatten();
                }
            }
        }
        let confirmed = self.with_replica(node, |replica| replica.confirmed());
        if let Some(confirmed) = confirmed {
            self.broker(node).disk.confirmed = confirmed;
        }
    }

    fn work(&mut self, node: Node, work: DiskWork) {
        let incarnation = self.broker(node).incarnation;
        let at = self.now + self.rng.between(0, 60);
        self.at(at, node, Event::Disk(incarnation, work));
    }

    pub(crate) fn disk_done(&mut self, node: Node, incarnation: u64, work: DiskWork) {
        if self.broker(node).incarnation != incarnation {
            return;
        }
        let now = self.moment(node);
        let durably = self.plan.bug != Some(Bug::CutInMemoryOnly);
        let next = match work {
            DiskWork::Cut(to, epochs) => {
                let disk = &mut self.broker(node).disk;
                disk.cut(to, durably);
                disk.epochs = epochs.clone();
                if let Some(millis) = self.kill_after_cut.take() {
                    self.at(self.now + millis, node, Event::Kill);
                }
                self.with_replica(node, |replica| replica.cut_done(now, epochs))
            }
            DiskWork::StoreEpochs(epochs) => {
                self.broker(node).disk.epochs = epochs.clone();
                self.with_replica(node, |replica| replica.epochs_stored(now, epochs))
            }
        };
        let next = next.and_then(Result::ok).flatten();
        self.perform(node, next, &[]);
        self.drain(node);
    }
}
