//! A running cluster: brought up in order, watched, and stopped in the reverse order.
//!
//! **Invariant:** NameServers listen before brokers start, and outlive them; gateways start last and
//! stop first. Dropping the value
//! stops every process, without waiting for it; [`LocalCluster::stop`] waits.

use crate::local::columns::Columns;
use crate::local::external::{self, ExternalError};
use crate::local::folder::{self, ClaimError, ProcessLock};
use crate::local::plan::{LocalPlan, ProcessPlan, Role};
use crate::local::ports::{self, PortProblem};
use crate::local::report::{Report, Row};
use crate::local::reserve;
use crate::local::routes::{self, Expected};
use crate::local::state::{Phase, ProcessState};
use crate::local::status::{self, Facts};
use crate::local::supervise::{Order, StateCell, Supervisor};
use k8s_openapi::jiff::Timestamp;
use rmq_admin::{AdminClient, AdminOptions, Survey, TargetError};
use rmq_types::{Clock as _, ClusterName, SystemClock};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// How long an orderly stop may take.
const STOP_PATIENCE: Duration = Duration::from_secs(30);
/// How long processes of an earlier run may take to end.
const LEFTOVER_PATIENCE: Duration = Duration::from_secs(30);
const LEFTOVER_POLL: Duration = Duration::from_millis(50);
const ROUTES_POLL: Duration = Duration::from_millis(25);

/// How to run a plan.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The program whose sub-commands are the roles: usually this one.
    pub program: PathBuf,
    /// The folder that the plan speaks of.
    pub data_dir: PathBuf,
    /// Longest wait before a process that crashed is started again.
    pub restart_wait_max: Duration,
}

impl RunOptions {
    /// The longest wait of a kubelet.
    pub const RESTART_WAIT_MAX: Duration = Duration::from_mins(5);
}

/// Why a cluster did not come up.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data folder.
    #[error(transparent)]
    Folder(#[from] ClaimError),
    /// Ports that the plan needs cannot be had.
    #[error("{}", told(.0))]
    Ports(PortProblem),
    /// NameServers of somebody else.
    #[error(transparent)]
    External(#[from] ExternalError),
    /// A process of an earlier run did not end.
    #[error("{name} of an earlier run still uses {path}: end it first")]
    Leftover {
        /// Which.
        name: String,
        /// Its folder.
        path: PathBuf,
    },
    /// A process ended before it listened.
    #[error("{name} {reason}")]
    Process {
        /// Which.
        name: String,
        /// How it ended, with its last words.
        reason: String,
    },
}

fn told(problem: &PortProblem) -> String {
    match problem {
        PortProblem::NoSuchAddress(ip) => format!("{ip} is no address of this computer"),
        PortProblem::Taken(taken) => match taken.as_slice() {
            [only] => only.to_string(),
            all => format!("{} ports that are needed cannot be had", all.len()),
        },
    }
}

/// What `kubectl get` would show of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Views {
    /// Of the `RocketMQCluster`.
    pub cluster: Columns,
    /// Of each `BrokerGroup`.
    pub groups: Columns,
}

#[derive(Debug)]
struct Member {
    plan: ProcessPlan,
    state: watch::Receiver<ProcessState>,
}

/// A running cluster.
#[derive(Debug)]
pub struct LocalCluster {
    plan: LocalPlan,
    options: RunOptions,
    name_servers: Vec<Member>,
    brokers: Vec<Member>,
    proxies: Vec<Member>,
    name_server_tasks: JoinSet<()>,
    broker_tasks: JoinSet<()>,
    proxy_tasks: JoinSet<()>,
    name_server_orders: watch::Sender<Order>,
    broker_orders: watch::Sender<Order>,
    proxy_orders: watch::Sender<Order>,
    changes: Arc<watch::Sender<u64>>,
    seen: watch::Receiver<u64>,
    since: Instant,
    _lock: ProcessLock,
}

impl LocalCluster {
    /// Takes the data folder; nothing runs yet.
    pub fn claim(plan: LocalPlan, options: &RunOptions) -> Result<Self, StartError> {
        let lock = ProcessLock::take_run(&options.data_dir)?;
        let (changes, seen) = watch::channel(0);
        Ok(Self {
            plan,
            options: options.clone(),
            name_servers: Vec::new(),
            brokers: Vec::new(),
            proxies: Vec::new(),
            name_server_tasks: JoinSet::new(),
            broker_tasks: JoinSet::new(),
            proxy_tasks: JoinSet::new(),
            name_server_orders: watch::Sender::new(Order::Run),
            broker_orders: watch::Sender::new(Order::Run),
            proxy_orders: watch::Sender::new(Order::Run),
            changes: Arc::new(changes),
            seen,
            since: Instant::now(),
            _lock: lock,
        })
    }

    /// Starts everything and returns when all is ready. `waiting` hears, at most once a second,
    /// what is still missing. After an error, or when dropped half-way, [`LocalCluster::stop`]
    /// stops what runs.
    pub async fn bring_up(&mut self, waiting: &mut dyn FnMut(&str)) -> Result<(), StartError> {
        self.await_leftovers(waiting).await?;
        ports::check(&self.plan).map_err(StartError::Ports)?;
        external::check(&self.plan.external_name_servers, &self.plan.groups()).await?;
        for plan in self.plan.name_servers.clone() {
            let member = self.supervise(plan, String::new());
            self.name_servers.push(member);
        }
        self.until(waiting, |state| state.address.is_some()).await?;
        let addresses = self.name_server_addresses().join(";");
        for plan in self.plan.brokers.clone() {
            let member = self.supervise(plan, addresses.clone());
            self.brokers.push(member);
        }
        let mut said = Instant::now();
        loop {
            self.until(waiting, |state| state.phase == Phase::Ready)
                .await?;
            match routes::complete(&self.name_server_addresses(), &self.expected()).await {
                Ok(()) => break,
                Err(missing) if said.elapsed() >= Duration::from_secs(1) => {
                    waiting(&missing);
                    said = Instant::now();
                }
                Err(_) => {}
            }
            sleep(ROUTES_POLL).await;
        }
        for plan in self.plan.proxies.clone() {
            let member = self.supervise(plan, addresses.clone());
            self.proxies.push(member);
        }
        self.until(waiting, |state| state.phase == Phase::Ready)
            .await
    }

    /// Waits for the next change of any process.
    pub async fn changed(&mut self) {
        // We hold a sender: the channel cannot close.
        let _ = self.seen.changed().await;
    }

    /// All processes: NameServers first.
    pub fn states(&self) -> Vec<(&ProcessPlan, ProcessState)> {
        self.members()
            .map(|member| (&member.plan, member.state.borrow().clone()))
            .collect()
    }

    /// The table of processes, after the NameServers that are not ours.
    pub fn rows(&self) -> Vec<Row> {
        let external = self.plan.external_name_servers.iter();
        external
            .map(|addr| Row::of_external(addr))
            .chain(
                self.states()
                    .iter()
                    .map(|(plan, state)| Row::of(plan, state)),
            )
            .collect()
    }

    /// The JSON line.
    pub fn report(&self) -> Report {
        Report::of(&self.plan, self.states().into_iter())
    }

    /// What `kubectl get` would show, from what NameServers and brokers say now.
    pub async fn views(&self) -> Result<Views, TargetError> {
        let survey = self.survey().await?;
        let states = self.states();
        let not_ready: Vec<String> = states
            .iter()
            .filter(|(_, state)| state.phase != Phase::Ready)
            .map(|(plan, _)| plan.name.clone())
            .collect();
        let millis = SystemClock.now().millis();
        let facts = Facts {
            plan: &self.plan,
            not_ready: &not_ready,
            now: Timestamp::from_millisecond(millis).unwrap_or(Timestamp::UNIX_EPOCH),
        };
        let status = status::cluster_status(&survey, &facts);
        let called = |addr: &str| {
            let is_there =
                |state: &ProcessState| state.address.is_some_and(|a| a.to_string() == addr);
            let named = states.iter().find(|(_, state)| is_there(state));
            named.map(|(plan, _)| plan.name.clone())
        };
        Ok(Views {
            cluster: status::cluster_columns(&self.plan.object, self.since.elapsed(), &status),
            groups: status::group_columns(&survey.groups, facts.now, &called),
        })
    }

    async fn survey(&self) -> Result<Survey, TargetError> {
        let admin = AdminClient::new(&self.name_server_addresses(), AdminOptions::default());
        // A name that is none is no name to look for: then every cluster is asked about.
        let cluster = ClusterName::parse(&self.plan.cluster).ok();
        admin.survey(cluster.as_ref()).await
    }

    /// Stops all processes in order: gateways, brokers, then NameServers; with force after 30 seconds.
    pub async fn stop(&mut self) {
        let deadline = Instant::now() + STOP_PATIENCE;
        self.proxy_orders.send_replace(Order::StopBy(deadline));
        while self.proxy_tasks.join_next().await.is_some() {}
        self.broker_orders.send_replace(Order::StopBy(deadline));
        while self.broker_tasks.join_next().await.is_some() {}
        self.name_server_orders
            .send_replace(Order::StopBy(deadline));
        while self.name_server_tasks.join_next().await.is_some() {}
    }

    /// Ends all processes at once.
    pub async fn kill(&mut self) {
        self.proxy_orders.send_replace(Order::Kill);
        self.broker_orders.send_replace(Order::Kill);
        self.name_server_orders.send_replace(Order::Kill);
        while self.proxy_tasks.join_next().await.is_some() {}
        while self.broker_tasks.join_next().await.is_some() {}
        while self.name_server_tasks.join_next().await.is_some() {}
    }

    fn members(&self) -> impl Iterator<Item = &Member> {
        let kept = self.name_servers.iter().chain(&self.brokers);
        kept.chain(&self.proxies)
    }

    fn supervise(&mut self, plan: ProcessPlan, name_servers: String) -> Member {
        let (orders, tasks) = match plan.role {
            Role::NameServer => (&self.name_server_orders, &mut self.name_server_tasks),
            Role::Broker => (&self.broker_orders, &mut self.broker_tasks),
            Role::Proxy => (&self.proxy_orders, &mut self.proxy_tasks),
        };
        let (state, reader) = watch::channel(ProcessState::new());
        let supervisor = Supervisor {
            program: self.options.program.clone(),
            restart_wait_max: self.options.restart_wait_max,
            reserved: reserve::reserve(&plan).ok().flatten(),
            plan: plan.clone(),
            name_servers,
            orders: orders.subscribe(),
            cell: StateCell {
                state,
                changes: Arc::clone(&self.changes),
            },
        };
        tasks.spawn(supervisor.run());
        Member {
            plan,
            state: reader,
        }
    }

    /// Waits until every process is as wanted; fails when one has ended for good.
    async fn until(
        &mut self,
        waiting: &mut dyn FnMut(&str),
        wanted: fn(&ProcessState) -> bool,
    ) -> Result<(), StartError> {
        loop {
            self.seen.mark_unchanged();
            let mut missing = None;
            for (plan, state) in self.states() {
                if state.phase == Phase::Stopped {
                    let reason = state.reason.unwrap_or_else(|| "ended".to_owned());
                    return Err(StartError::Process {
                        name: plan.name.clone(),
                        reason,
                    });
                }
                if missing.is_none() && !wanted(&state) {
                    let reason = state.reason.unwrap_or_else(|| "is starting".to_owned());
                    missing = Some(format!("{}: {reason}", plan.name));
                }
            }
            let Some(missing) = missing else {
                return Ok(());
            };
            if timeout(Duration::from_secs(1), self.seen.changed())
                .await
                .is_err()
            {
                waiting(&missing);
            }
        }
    }

    /// After a crash of an earlier `up`, its processes are still stopping.
    async fn await_leftovers(&self, waiting: &mut dyn FnMut(&str)) -> Result<(), StartError> {
        let deadline = Instant::now() + LEFTOVER_PATIENCE;
        let processes = self.plan.name_servers.iter().chain(&self.plan.brokers);
        for process in processes.chain(&self.plan.proxies) {
            let mut said = false;
            while folder::is_held(process) {
                if Instant::now() >= deadline {
                    let (name, path) = (process.name.clone(), process.data_dir());
                    return Err(StartError::Leftover { name, path });
                }
                if !said {
                    waiting(&format!(
                        "{} of an earlier run is still stopping",
                        process.name
                    ));
                    said = true;
                }
                sleep(LEFTOVER_POLL).await;
            }
        }
        Ok(())
    }

    fn name_server_addresses(&self) -> Vec<String> {
        let own = self.name_servers.iter();
        let own = own.filter_map(|member| member.state.borrow().address);
        let external = self.plan.external_name_servers.iter().cloned();
        external.chain(own.map(|addr| addr.to_string())).collect()
    }

    fn expected(&self) -> Vec<Expected> {
        self.brokers
            .iter()
            .filter_map(|member| {
                Some(Expected {
                    group: member.plan.group.clone()?,
                    id: member.plan.id?,
                    address: member.state.borrow().address?,
                })
            })
            .collect()
    }
}
