//! One controller: opens its file, joins its group, leads or follows.
//!
//! **Invariant:** [`Node::leadership`] names a term only while this controller believes that it leads
//! *and* has applied an entry of that term, so everything that earlier leaders committed is in the
//! state. Belief is not proof: [`Node::confirm`] is.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use openraft::{
    BasicNode, Config, ServerState, SnapshotPolicy,
    error::{ClientWriteError, Fatal, RaftError},
};
use rmq_controller_fsm::{Command, Outcome, State};
use rmq_net::Client;
use rmq_protocol::remoting::ExtFields;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
    time::sleep,
};

use crate::{
    disk::{Disk, DiskError, OWNER, STANDING, VOTE, encode},
    log::{Log, last_log_id},
    machine::{Machine, SharedState},
    network::Network,
    rounds::{NotConfirmed, Rounds},
    standing::{Rights, begin, is_first},
    types::{NodeId, Raft},
    wire::{
        Address, RAFT_APPEND, RAFT_SNAPSHOT, RAFT_STANDING, RAFT_VOTE, SNAPSHOT_PART_BYTES,
        Standing, WireError, from_body, snapshot_from_body, to_body,
    },
};

/// Proposals under way.
const PROPOSALS_MAX: usize = 1024;
/// Between two questions to a peer that has not told how far it is.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// How a controller runs.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Name of the group of controllers.
    pub group: String,
    /// Its own number.
    pub id: NodeId,
    /// `host:port` of every controller, its own too.
    pub peers: BTreeMap<NodeId, String>,
    /// Its folder, which exists.
    pub dir: PathBuf,
    /// Time between two signs of life of a leader. A follower stands for election after two to four
    /// times [`NodeOptions::election`] of silence.
    pub heartbeat: Duration,
    /// Shortest election timeout; the longest is twice it.
    pub election: Duration,
    /// Entries after which a snapshot is made.
    pub snapshot_after: u64,
    /// Entries that are kept after a snapshot has them.
    pub entries_kept: u64,
}

impl NodeOptions {
    /// With times for one network: a leader that dies is replaced within 1.5 s, before the lease of
    /// a master (3 s) is over.
    #[must_use]
    pub fn new(group: String, id: NodeId, peers: BTreeMap<NodeId, String>, dir: PathBuf) -> Self {
        Self {
            group,
            id,
            peers,
            dir,
            heartbeat: Duration::from_millis(100),
            election: Duration::from_millis(300),
            snapshot_after: 2000,
            entries_kept: 500,
        }
    }
}

/// Why a controller's file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Reading failed, or the content is broken.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The snapshot in it is broken or a newer program's.
    #[error("{path}: {problem}")]
    Snapshot {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// It is another controller's.
    #[error("{path} belongs to controller {found} of {found_group}, this is {id} of {group}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        found: NodeId,
        /// Of which group.
        found_group: String,
        /// Who wanted it.
        id: NodeId,
        /// Of which group.
        group: String,
    },
    /// The controller's own number is not in the list of peers.
    #[error("controller {id} is not among the peers")]
    NotAPeer {
        /// The number.
        id: NodeId,
    },
}

/// Why a controller does not run, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its file failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The consensus stopped; the text is openraft's.
    #[error("the consensus of the controllers stopped: {0}")]
    Fatal(String),
    /// It runs already, or did.
    #[error("the controller runs already")]
    Twice,
}

/// Why a command was not decided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// Another controller leads, or none.
    #[error("this controller does not lead")]
    NotLeader,
    /// It may or may not be applied.
    #[error("it is not known whether the command was applied")]
    Unknown,
    /// Too many commands are under way; this one was not proposed.
    #[error("{PROPOSALS_MAX} commands are under way")]
    Busy,
}

/// That this controller leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leadership {
    /// Rises with every leader of the group, and is never the same for two.
    pub term: u64,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    group: String,
    id: NodeId,
}

/// One controller.
pub struct Node {
    options: NodeOptions,
    disk: Arc<Disk>,
    machine: Mutex<Option<Machine>>,
    state: SharedState,
    network: Network,
    raft: OnceLock<Raft>,
    votes: AtomicBool,
    rounds: Rounds,
    proposals: Semaphore,
    leadership: watch::Sender<Option<Leadership>>,
    leader: watch::Sender<Option<NodeId>>,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node")
            .field("id", &self.options.id)
            .field("leadership", &self.leadership())
            .finish_non_exhaustive()
    }
}

impl Node {
    /// Opens the file. The controller answers how far it is from now on, and takes part with
    /// [`Node::run`].
    pub fn open(options: NodeOptions, client: Client) -> Result<Self, OpenError> {
        let id = options.id;
        if !options.peers.contains_key(&id) {
            return Err(OpenError::NotAPeer { id });
        }
        let path = options.dir.join("raft.redb");
        let disk = Arc::new(Disk::open(&path)?);
        let me = Owner {
            group: options.group.clone(),
            id,
        };
        let found: Option<Owner> = disk.get(OWNER)?;
        if let Some(found) = found.filter(|found| *found != me) {
            return Err(OpenError::Foreign {
                path,
                found: found.id,
                found_group: found.group,
                id,
                group: me.group,
            });
        }
        disk.put(OWNER, &me)?;
        let rights: Option<Rights> = disk.get(STANDING)?;
        let machine = Machine::open(Arc::clone(&disk));
        let machine = machine.map_err(|error| OpenError::Snapshot {
            path,
            problem: error.to_string(),
        })?;
        let network = Network {
            group: options.group.as_str().into(),
            client,
            peers: Arc::new(options.peers.clone()),
        };
        Ok(Self {
            state: machine.state(),
            machine: Mutex::new(Some(machine)),
            votes: AtomicBool::new(rights == Some(Rights::Full)),
            options,
            disk,
            network,
            raft: OnceLock::new(),
            rounds: Rounds::default(),
            proposals: Semaphore::new(PROPOSALS_MAX),
            leadership: watch::Sender::new(None),
            leader: watch::Sender::new(None),
        })
    }

    /// Joins the group and takes part until it fails or is dropped. Call [`Node::stop`] for an orderly
    /// end.
    pub async fn run(&self) -> Result<(), StartError> {
        let (rights, founds) = self.join().await?;
        let machine = self
            .machine
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let machine = machine.ok_or(StartError::Twice)?;
        let log = Log::new(Arc::clone(&self.disk));
        let config = Arc::new(self.config(rights));
        let raft = Raft::new(self.options.id, config, self.network.clone(), log, machine).await;
        let raft = raft.map_err(|error| StartError::Fatal(error.to_string()))?;
        if founds {
            self.ask_all(|peer| peer.votes).await;
            let members: BTreeMap<NodeId, BasicNode> = self
                .options
                .peers
                .iter()
                .map(|(id, address)| (*id, BasicNode::new(address.clone())))
                .collect();
            // An error says that it was done before.
            if let Err(error) = raft.initialize(members).await {
                tracing::debug!(%error, "the group is there already");
            }
        }
        let raft = self.raft.get_or_init(|| raft);
        tokio::select! {
            result = self.follow(raft, rights) => result,
            () = self.rounds.hold(raft) => Ok(()),
        }
    }

    fn config(&self, rights: Rights) -> Config {
        let options = &self.options;
        let election = options.election.as_millis() as u64;
        Config {
            cluster_name: options.group.clone(),
            heartbeat_interval: options.heartbeat.as_millis() as u64,
            election_timeout_min: election,
            election_timeout_max: election * 2,
            install_snapshot_timeout: 5000,
            max_payload_entries: 64,
            snapshot_policy: SnapshotPolicy::LogsSinceLast(options.snapshot_after),
            snapshot_max_chunk_size: SNAPSHOT_PART_BYTES,
            max_in_snapshot_log_to_keep: options.entries_kept,
            replication_lag_threshold: options.snapshot_after.saturating_mul(2),
            enable_elect: rights == Rights::Full,
            ..Config::default()
        }
    }

    /// What this controller may do, and whether it founds the group.
    async fn join(&self) -> Result<(Rights, bool), StartError> {
        if let Some(rights) = self.disk.get(STANDING)? {
            // A founder that ended before it wrote the list of members does it now.
            let empty = last_log_id(&self.disk)?.is_none() && rights == Rights::Full;
            let vote: Option<crate::types::Vote> = self.disk.get(VOTE)?;
            let founds = empty && vote.is_none() && self.is_first();
            return Ok((rights, founds));
        }
        let standings = self.ask_all(|_| true).await;
        let beginning = begin(standings.values(), self.is_first());
        let mut values = vec![(STANDING, encode(STANDING, &beginning.rights)?)];
        if let Some(vote) = beginning.vote {
            values.push((VOTE, encode(VOTE, &vote)?));
        }
        self.disk.put_all(&values)?;
        match beginning.rights {
            Rights::Full => self.votes.store(true, Ordering::Release),
            Rights::Following(target) => {
                tracing::warn!(%target, "the disk is empty: no vote before this entry is here");
            }
        }
        Ok((beginning.rights, beginning.founds))
    }

    fn is_first(&self) -> bool {
        is_first(self.options.id, self.options.peers.keys())
    }

    /// How far every other controller is; waits until all of them gave a `wanted` answer.
    async fn ask_all(&self, wanted: fn(&Standing) -> bool) -> BTreeMap<NodeId, Standing> {
        let mut asked = JoinSet::new();
        for peer in self
            .options
            .peers
            .keys()
            .filter(|peer| **peer != self.options.id)
        {
            let (peer, network) = (*peer, self.network.clone());
            asked.spawn(async move {
                loop {
                    match network.standing(peer, Duration::from_secs(1)).await {
                        Ok(standing) if wanted(&standing) => return (peer, standing),
                        Ok(_) => {}
                        Err(error) => tracing::debug!(peer, %error, "asks again how far it is"),
                    }
                    sleep(ASK_EVERY).await;
                }
            });
        }
        asked.join_all().await.into_iter().collect()
    }

    /// Keeps leader and leadership up to date, and gives a controller that has caught up its vote.
    async fn follow(&self, raft: &Raft, mut rights: Rights) -> Result<(), StartError> {
        let mut metrics = raft.metrics();
        loop {
            let now = metrics.borrow_and_update().clone();
            if let Err(error) = &now.running_state {
                self.leadership.send_replace(None);
                return match error {
                    Fatal::Stopped => Ok(()),
                    _ => Err(StartError::Fatal(error.to_string())),
                };
            }
            let led_by = now.vote.leader_id;
            let applied = now.last_applied.map(|id| id.leader_id);
            let leads = now.state == ServerState::Leader
                && applied.is_some_and(|id| (id.term, id.node_id) == (led_by.term, led_by.node_id));
            let leadership = leads.then_some(Leadership {
                term: (led_by.term << 8) | (led_by.node_id & 0xff),
            });
            replace(&self.leadership, leadership);
            replace(&self.leader, now.current_leader);
            if let Rights::Following(target) = rights
                && now.last_applied >= Some(target)
            {
                rights = Rights::Full;
                self.disk.put(STANDING, &rights)?;
                self.votes.store(true, Ordering::Release);
                raft.runtime_config().elect(true);
                tracing::info!(%target, "caught up after the loss of the disk: votes again");
            }
            if metrics.changed().await.is_err() {
                self.leadership.send_replace(None);
                return Ok(());
            }
        }
    }

    /// Answers a message of another controller ([`crate::is_raft_code`]). The error is for the remark.
    pub async fn serve(
        &self,
        code: i32,
        ext: &ExtFields<'_>,
        body: &[u8],
    ) -> Result<Vec<u8>, String> {
        self.answer(code, ext, body)
            .await
            .map_err(|error| error.to_string())
    }

    async fn answer(
        &self,
        code: i32,
        ext: &ExtFields<'_>,
        body: &[u8],
    ) -> Result<Vec<u8>, ServeError> {
        let address = Address {
            group: &self.options.group,
            to: self.options.id,
        };
        address.check(ext)?;
        if code == RAFT_STANDING {
            let standing = Standing {
                vote: self.disk.get(VOTE)?,
                last: last_log_id(&self.disk)?,
                votes: self.votes(),
            };
            return Ok(to_body(&standing)?);
        }
        let raft = self.raft.get().ok_or(ServeError::NotStarted)?;
        Ok(match code {
            RAFT_APPEND => to_body(&raft.append_entries(from_body(body)?).await)?,
            RAFT_SNAPSHOT => to_body(&raft.install_snapshot(snapshot_from_body(body)?).await)?,
            RAFT_VOTE if self.votes.load(Ordering::Acquire) => {
                to_body(&raft.vote(from_body(body)?).await)?
            }
            RAFT_VOTE => return Err(ServeError::NoVote),
            _ => return Err(ServeError::Code(code)),
        })
    }

    /// Has a command decided by the group. Returns once its fate is known, or this controller's
    /// leadership is over.
    pub async fn propose(&self, command: Command) -> Result<Outcome, ProposeError> {
        let raft = self.raft.get().ok_or(ProposeError::NotLeader)?;
        let mut leaderships = self.leadership.subscribe();
        let led = *leaderships.borrow_and_update();
        if led.is_none() {
            return Err(ProposeError::NotLeader);
        }
        let _permit = self
            .proposals
            .try_acquire()
            .map_err(|_| ProposeError::Busy)?;
        tokio::select! {
            written = raft.client_write(command) => match written {
                Ok(written) => written.data.0.ok_or(ProposeError::Unknown),
                Err(RaftError::APIError(ClientWriteError::ForwardToLeader(_))) => {
                    Err(ProposeError::NotLeader)
                }
                Err(_) => Err(ProposeError::Unknown),
            },
            _ = leaderships.wait_for(|now| *now != led) => Err(ProposeError::Unknown),
        }
    }

    /// Waits for a round of messages, begun from now on, in which a majority shows that this
    /// controller leads; everything that was decided before it is applied then.
    pub async fn confirm(&self) -> Result<(), NotConfirmed> {
        if self.leadership().is_none() {
            return Err(NotConfirmed::NotLeader);
        }
        self.rounds.next().await
    }

    /// The replicated state as this controller has it.
    pub fn state<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.read())
    }

    /// Whether this controller leads, as it believes.
    #[must_use]
    pub fn leadership(&self) -> Option<Leadership> {
        *self.leadership.borrow()
    }

    /// Tells of every change of [`Node::leadership`].
    #[must_use]
    pub fn leaderships(&self) -> watch::Receiver<Option<Leadership>> {
        self.leadership.subscribe()
    }

    /// Who leads, as far as this controller knows.
    #[must_use]
    pub fn leader(&self) -> Option<NodeId> {
        *self.leader.borrow()
    }

    /// Whether it votes: false after the loss of its disk, until it has caught up.
    #[must_use]
    pub fn votes(&self) -> bool {
        self.votes.load(Ordering::Acquire)
    }

    /// How it runs.
    #[must_use]
    pub fn options(&self) -> &NodeOptions {
        &self.options
    }

    /// Index of the last applied entry, and of the first one that is still in the log.
    #[must_use]
    pub fn log_range(&self) -> (u64, u64) {
        let Some(raft) = self.raft.get() else {
            return (0, 0);
        };
        let metrics = raft.metrics();
        let now = metrics.borrow();
        let purged = now.purged.map_or(0, |id| id.index + 1);
        (now.last_applied.map_or(0, |id| id.index), purged)
    }

    /// Stops taking part; [`Node::run`] returns.
    pub async fn stop(&self) {
        self.leadership.send_replace(None);
        if let Some(raft) = self.raft.get()
            && let Err(error) = raft.shutdown().await
        {
            tracing::warn!(%error, "the consensus ended badly");
        }
    }
}

fn replace<T: PartialEq>(sender: &watch::Sender<T>, value: T) {
    sender.send_if_modified(|old| {
        let news = *old != value;
        if news {
            *old = value;
        }
        news
    });
}

#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error("the controller has not started")]
    NotStarted,
    #[error("the controller lost its disk and does not vote yet")]
    NoVote,
    #[error("{0} is no message between controllers")]
    Code(i32),
}
