//! Starting and stopping a broker: every part in order, and in reverse at the end.

use std::{
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rmq_net::{BindError, Client, ClientOptions, IoThreads, ListenOptions, Listener, ReservedPort};
use rmq_protocol::message::UniqueIds;
use rmq_store::{FlushMode, MessageStore, OpenError, StoreOptions};
use rmq_types::{BrokerId, BrokerName, Clock, ClusterName, system};
use tokio::{sync::mpsc, task::JoinSet};

use crate::{
    arrival::Arrivals,
    config::{self, BrokerRole, FlushDiskType, LiveSettings, Settings},
    core::{Core, lock},
    hold::Holds,
    identity::{Identity, local_ip},
    metadata::{ConfigTable, LoadError, OffsetTable, PersistError, RequestModes, system_topics},
    metrics::{CreateTimes, RpcLatency, parse_labels},
    pop::{self, Pops},
    pulse::Pulse,
    register::{self, Registrar},
    routes::Routes,
    schedule::{self, DelayTable},
    server::Server,
    starting::Starting,
    stats::Stats,
    tuning, upkeep,
    work::Workers,
};

/// Why a broker does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting that is legal alone but not here.
    #[error("{0}")]
    Setting(String),
    /// The store.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// Topics, groups or offsets.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// System topics could not be written.
    #[error(transparent)]
    Persist(#[from] PersistError),
    /// The port.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The file system or a thread.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried.
        action: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

/// Where a running broker can be reached.
#[derive(Clone, Debug)]
pub struct Endpoints {
    /// Address that clients are told.
    pub advertised: SocketAddr,
    /// Address that is listened on.
    pub listening: SocketAddr,
    /// The fast channel, two ports below.
    pub fast: Option<SocketAddr>,
}

/// A running broker.
#[derive(Debug)]
pub struct Broker {
    core: Arc<Core>,
    endpoints: Endpoints,
    listeners: Vec<Listener>,
    client: Client,
    tasks: JoinSet<()>,
    scheduler: Option<std::thread::JoinHandle<()>>,
    popper: Option<std::thread::JoinHandle<()>>,
    // Dropped last: the connections' tasks run here.
    _io: IoThreads,
}

impl Broker {
    /// Opens the store, binds the ports, registers. Must be called inside a tokio runtime, whose
    /// blocking threads serve slow requests. `starting` is told how far recovery has come.
    pub async fn start(
        settings: Settings,
        clock: Arc<dyn Clock>,
        starting: Arc<Starting>,
    ) -> Result<Self, StartError> {
        let mut settings = settings;
        apply_earlier_changes(&mut settings)?;
        check(&mut settings)?;
        let io = IoThreads::start(io_threads(&settings), "broker-io").map_err(|source| {
            StartError::Io {
                action: "start io threads".into(),
                source,
            }
        })?;
        // Held until the listeners are bound: nobody takes the port while the log is read.
        let reservation = reserve_port(&settings)?;
        let reserved = reservation.addr();
        // Whoever asks for the settings wants the port that was found.
        settings.listen_port = reserved.port().into();
        let identity = identity(&settings, reserved)?;
        let (core, asks) = build(settings, identity, clock, starting).await?;
        let client = core.registrar.client();
        let mut listeners = vec![listen(&io, &core, reserved, false)?];
        drop(reservation);
        // The fast channel is an extra: a taken port below is no reason not to start.
        match fast_port(reserved).map(|addr| listen(&io, &core, addr, true)) {
            Some(Ok(listener)) => listeners.push(listener),
            Some(Err(error)) => tracing::warn!(%error, "no fast channel on the port two below"),
            None => {}
        }
        let endpoints = Endpoints {
            advertised: core.identity.address,
            listening: reserved,
            fast: listeners.get(1).map(Listener::local_addr),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(register::run(Arc::clone(&core), client.clone(), asks));
        tasks.spawn(upkeep::run(Arc::clone(&core)));
        let scheduler = start_thread(&core, "schedule", schedule::run)?;
        let popper = start_thread(&core, "pop", |core| pop::run(core))?;
        tracing::info!(
            broker = %core.identity.name, cluster = %core.identity.cluster,
            address = %endpoints.advertised, "broker is up"
        );
        Ok(Self {
            core,
            endpoints,
            listeners,
            client,
            tasks,
            scheduler: Some(scheduler),
            popper: Some(popper),
            _io: io,
        })
    }

    /// Where it can be reached.
    #[must_use]
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// Address that is listened on.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.endpoints.listening
    }

    /// The settings in force, as properties text.
    #[must_use]
    pub fn settings_text(&self) -> String {
        rmq_protocol::java_properties::write(self.core.settings.get().entries())
    }

    /// Whether clients can use it: the store takes messages and NameServers know it.
    pub fn ready(&self) -> Result<(), String> {
        ready(&self.core)
    }

    /// Whether the process does its work: the store is not poisoned, and waiting requests are served.
    pub fn live(&self) -> Result<(), String> {
        live(&self.core)
    }

    /// A handle for health pages that outlives this call.
    #[must_use]
    pub fn probe(&self) -> Probe {
        Probe {
            core: Arc::clone(&self.core),
        }
    }

    /// The metrics page.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        crate::metrics::render(&self.core)
    }

    /// Stops in order: no new sends, unregister, answer who waits, write everything, close.
    pub async fn shutdown(mut self) -> Result<(), StartError> {
        self.core.stopping.store(true, Ordering::Release);
        for listener in &self.listeners {
            listener.pause();
        }
        register::unregister_all(&self.core, &self.client).await;
        self.core.workers.drain(Duration::from_secs(10)).await;
        self.core.delays.stop();
        self.core.pops.alarms.stop();
        for thread in [self.scheduler.take(), self.popper.take()]
            .into_iter()
            .flatten()
        {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
        let core = Arc::clone(&self.core);
        let flushed = tokio::task::spawn_blocking(move || core.store.flush()).await;
        if let Ok(Err(error)) = flushed {
            tracing::error!(%error, "the last flush failed");
        }
        upkeep::answer_everybody(&self.core);
        for listener in std::mem::take(&mut self.listeners) {
            listener.shutdown().await;
        }
        self.tasks.shutdown().await;
        let core = Arc::clone(&self.core);
        let closed = tokio::task::spawn_blocking(move || upkeep::close(&core)).await;
        match closed {
            Ok(Err(source)) => Err(StartError::Io {
                action: "close the store".into(),
                source,
            }),
            Ok(Ok(())) => Ok(()),
            Err(error) => Err(StartError::Setting(format!(
                "the store's close panicked: {error}"
            ))),
        }
    }
}

/// Answers health questions about a running broker.
#[derive(Clone, Debug)]
pub struct Probe {
    core: Arc<Core>,
}

impl Probe {
    /// See [`Broker::ready`].
    pub fn ready(&self) -> Result<(), String> {
        ready(&self.core)
    }

    /// See [`Broker::live`].
    pub fn live(&self) -> Result<(), String> {
        live(&self.core)
    }

    /// The metrics page.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        crate::metrics::render(&self.core)
    }
}

fn ready(core: &Core) -> Result<(), String> {
    if core.is_stopping() {
        return Err("shutting down".to_owned());
    }
    live(core)?;
    if !core.registrar.is_registered() {
        let (reached, known) = core.registrar.reach();
        return Err(format!(
            "registered with {reached} of {known} NameServers, a majority is needed"
        ));
    }
    Ok(())
}

fn live(core: &Core) -> Result<(), String> {
    if let Some(reason) = core.store.poison() {
        return Err(format!("the store is broken: {reason}"));
    }
    // The loop takes the locks of waiting pulls and sends: one that nobody gives back stops it. While
    // the broker stops it has ended on purpose.
    match core.pulse.silence(Instant::now()) {
        Some(silent) if !core.is_stopping() => Err(format!(
            "waiting requests have not been looked at for {} s",
            silent.as_secs()
        )),
        _ => Ok(()),
    }
}

/// Keys changed over the wire count over the user's own file.
fn apply_earlier_changes(settings: &mut Settings) -> Result<(), StartError> {
    if settings.store_path_root_dir.is_empty() {
        return Ok(());
    }
    let folder = Path::new(&settings.store_path_root_dir).join("config");
    Ok(config::apply_overrides(
        settings,
        &folder.join(config::OVERRIDES_FILE),
    )?)
}

fn check(settings: &mut Settings) -> Result<(), StartError> {
    let wrong = |text: String| Err(StartError::Setting(text));
    if settings.broker_role == BrokerRole::Slave || settings.broker_id.get() != 0 {
        return wrong("brokerRole=SLAVE and brokerId other than 0 are not supported yet".into());
    }
    register::parse_addresses(&settings.namesrv_addr).map_err(StartError::Setting)?;
    schedule::parse_levels(&settings.message_delay_level).map_err(StartError::Setting)?;
    parse_labels(&settings.metrics_label).map_err(StartError::Setting)?;
    delete_hours(&settings.delete_when).map_err(StartError::Setting)?;
    if settings.broker_name.is_empty() {
        settings.broker_name = host_name();
    }
    if settings.store_path_root_dir.is_empty() {
        return wrong(
            "storePathRootDir is not set: give it in the configuration, or use --data".into(),
        );
    }
    Ok(())
}

/// What a broker that starts with `settings` would have in force: changes made over the wire
/// earlier, and what is found out when nobody says it. Port 0 stays, it is chosen at the start.
pub fn in_force(mut settings: Settings) -> Result<Settings, StartError> {
    apply_earlier_changes(&mut settings)?;
    check(&mut settings)?;
    let identity = identity(&settings, wanted_address(&settings)?)?;
    settings.broker_ip1 = identity.address.ip().to_string();
    settings.broker_ip2 = identity.ha_address.ip().to_string();
    if settings.listen_port.get() != 0 {
        settings.ha_listen_port = identity.ha_address.port().into();
    }
    Ok(settings)
}

/// `04` or `04;16`.
pub(crate) fn delete_hours(text: &str) -> Result<Vec<u8>, String> {
    text.split(';')
        .map(str::trim)
        .filter(|hour| !hour.is_empty())
        .map(|hour| match hour.parse::<u8>() {
            Ok(number) if number < 24 => Ok(number),
            _ => Err(format!("deleteWhen: {hour:?} is no hour of the day")),
        })
        .collect()
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match BrokerName::parse(name.trim()) {
        Ok(name) => name.to_string(),
        Err(_) => "DEFAULT_BROKER".to_owned(),
    }
}

fn io_threads(settings: &Settings) -> usize {
    match usize::try_from(settings.server_selector_threads.get()) {
        Ok(0) | Err(_) => {
            std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).clamp(1, 8))
        }
        Ok(count) => count,
    }
}

/// With port 0 a free one is chosen before anything else, because it stands in message ids.
fn reserve_port(settings: &Settings) -> Result<ReservedPort, StartError> {
    let addr = wanted_address(settings)?;
    ReservedPort::take(addr).map_err(|source| BindError::Listen { addr, source }.into())
}

fn wanted_address(settings: &Settings) -> Result<SocketAddr, StartError> {
    let ip: IpAddr = settings.bind_address.parse().map_err(|_| {
        StartError::Setting(format!(
            "bindAddress {:?} is no address",
            settings.bind_address
        ))
    })?;
    Ok(SocketAddr::new(ip, settings.listen_port.get() as u16))
}

fn fast_port(main: SocketAddr) -> Option<SocketAddr> {
    let port = main.port().checked_sub(2).filter(|port| *port > 1024)?;
    Some(SocketAddr::new(main.ip(), port))
}

fn identity(settings: &Settings, listening: SocketAddr) -> Result<Identity, StartError> {
    let named = |text: &str, key: &str| -> Result<IpAddr, StartError> {
        text.parse()
            .map_err(|_| StartError::Setting(format!("{key}={text:?} is no IP address")))
    };
    let ip = if !settings.broker_ip1.is_empty() {
        named(&settings.broker_ip1, "brokerIP1")?
    } else if listening.ip().is_unspecified() {
        local_ip()
    } else {
        listening.ip()
    };
    let ha_ip = if settings.broker_ip2.is_empty() {
        ip
    } else {
        named(&settings.broker_ip2, "brokerIP2")?
    };
    let ha_port = match settings.ha_listen_port.get() as u16 {
        0 => listening.port().saturating_add(1),
        port => port,
    };
    let setting = |error: rmq_types::NameError| StartError::Setting(error.to_string());
    Ok(Identity {
        cluster: ClusterName::parse(&settings.broker_cluster_name).map_err(setting)?,
        name: BrokerName::parse(&settings.broker_name).map_err(setting)?,
        id: BrokerId::new(settings.broker_id.get() as u64),
        address: SocketAddr::new(ip, listening.port()),
        ha_address: SocketAddr::new(ha_ip, ha_port),
    })
}

fn store_options(settings: &Settings, identity: &Identity) -> Result<StoreOptions, StartError> {
    let levels =
        schedule::parse_levels(&settings.message_delay_level).map_err(StartError::Setting)?;
    let mut options = StoreOptions::new(&settings.store_path_root_dir, identity.address);
    options.segment_bytes = settings.mapped_file_size_commit_log.get() as u64;
    options.queue_file_units = (settings.mapped_file_size_consume_queue.get() / 20) as u32;
    options.flush = match settings.flush_disk_type {
        FlushDiskType::Sync => FlushMode::Sync,
        FlushDiskType::Async => FlushMode::Async {
            interval: Duration::from_millis(settings.flush_interval_commit_log.get() as u64),
        },
    };
    options.tune(tuning::of_store(settings).map_err(StartError::Setting)?);
    options.check_crc_on_recover = settings.check_crc_on_recover;
    options.index_enabled = settings.message_index_enable;
    options.index_slots = settings.max_hash_slot_num.get() as u32;
    options.index_entries = settings.max_index_num.get() as u32;
    options.tags_code_of = Some(Arc::new(move |record| {
        // A delayed message's queue entry carries its due time, which counts from its own store time.
        if record.topic != system::SCHEDULE_TOPIC {
            return None;
        }
        let level = usize::try_from(record.queue_id).ok()?;
        Some(record.stored_at + levels.get(level).or(levels.last()).copied().unwrap_or(0))
    }));
    Ok(options)
}

async fn build(
    settings: Settings,
    identity: Identity,
    clock: Arc<dyn Clock>,
    starting: Arc<Starting>,
) -> Result<(Arc<Core>, mpsc::Receiver<register::Ask>), StartError> {
    let options = store_options(&settings, &identity)?;
    let workers = Workers::new(tokio::runtime::Handle::current());
    let routes = Routes::new(Client::new(ClientOptions::default()));
    let opened = tokio::task::spawn_blocking(move || {
        open(
            settings,
            identity,
            clock,
            options,
            (workers, routes, starting),
        )
    });
    match opened.await {
        Ok(outcome) => outcome,
        Err(error) => Err(StartError::Setting(format!(
            "opening the store panicked: {error}"
        ))),
    }
}

fn open(
    settings: Settings,
    identity: Identity,
    clock: Arc<dyn Clock>,
    options: StoreOptions,
    (workers, routes, starting): (Workers, Routes, Arc<Starting>),
) -> Result<(Arc<Core>, mpsc::Receiver<register::Ask>), StartError> {
    let arrivals = Arc::new(Arrivals::new(starting));
    let memory_window =
        options.memory_bytes / 100 * settings.access_message_in_memory_max_ratio.get() as u64;
    let (store, report) = MessageStore::open(
        options,
        Arc::<Arrivals>::clone(&arrivals),
        Arc::clone(&clock),
    )?;
    tracing::info!(?report, "store is open");
    let folder = config_folder(&settings)?;
    let overrides_path = folder.join(config::OVERRIDES_FILE);
    let topics = ConfigTable::open(&folder)?;
    let now = clock.now();
    topics.put(missing_system_topics(&settings, &topics), now)?;
    let levels =
        schedule::parse_levels(&settings.message_delay_level).map_err(StartError::Setting)?;
    let servers = register::parse_addresses(&settings.namesrv_addr).map_err(StartError::Setting)?;
    let (registrar, asks) = Registrar::new(servers.len());
    let stats = Stats::new(identity.cluster.as_str());
    let pops = Pops::open(
        &folder,
        &identity.cluster,
        (&settings, arrivals.waiting_pops()),
    );
    let pops = pops.map_err(|source| StartError::Io {
        action: format!("open the marks in {}", folder.display()),
        source,
    })?;
    let core = Arc::new(Core {
        unique_ids: UniqueIds::new(
            identity.address.ip(),
            std::process::id(),
            now.millis() as u32,
        ),
        holds: Mutex::new(Holds::new(settings.held_pulls_max.get() as usize)),
        settings: LiveSettings::new(settings),
        overrides_path,
        identity,
        clock,
        store,
        topics,
        groups: ConfigTable::open(&folder)?,
        offsets: OffsetTable::open(&folder)?,
        modes: RequestModes::open(&folder)?,
        consumers: Mutex::default(),
        producers: Mutex::default(),
        locks: Mutex::default(),
        arrivals,
        pops,
        parked: crate::parked::Parked::default(),
        stats,
        rpc: RpcLatency::new(),
        topic_creation: CreateTimes::new(),
        group_creation: CreateTimes::new(),
        workers,
        routes,
        registrar,
        delays: DelayTable::open(&folder, levels)?,
        memory_window,
        started_at: now,
        writing: Mutex::default(),
        pulse: Pulse::new(Instant::now()),
        stopping: AtomicBool::new(false),
    });
    core.arrivals.attach(&core);
    pop::recover(&core)?;
    Ok((core, asks))
}

/// System topics that are not there yet; those that are keep what somebody made of them.
fn missing_system_topics(
    settings: &Settings,
    topics: &ConfigTable<rmq_protocol::body::TopicConfig>,
) -> Vec<rmq_protocol::body::TopicConfig> {
    let all = system_topics(settings).into_iter();
    all.filter(|topic| !topics.contains(&topic.topic_name))
        .collect()
}

fn config_folder(settings: &Settings) -> Result<PathBuf, StartError> {
    let folder = Path::new(&settings.store_path_root_dir).join("config");
    std::fs::create_dir_all(&folder).map_err(|source| StartError::Io {
        action: format!("make {}", folder.display()),
        source,
    })?;
    Ok(folder)
}

fn listen(
    io: &IoThreads,
    core: &Arc<Core>,
    addr: SocketAddr,
    fast: bool,
) -> Result<Listener, BindError> {
    let settings = core.settings.get();
    let mut options = ListenOptions::new(addr);
    options.idle_timeout =
        Duration::from_secs(settings.server_channel_max_idle_time_seconds.get() as u64);
    options.connections_max = settings.server_connections_max.get() as usize;
    Listener::bind(io, options, Arc::new(Server::new(Arc::clone(core), fast)))
}

fn start_thread(
    core: &Arc<Core>,
    name: &str,
    work: fn(&Arc<Core>),
) -> Result<std::thread::JoinHandle<()>, StartError> {
    let core = Arc::clone(core);
    std::thread::Builder::new()
        .name(name.into())
        .spawn(move || work(&core))
        .map_err(|source| StartError::Io {
            action: format!("start the thread {name}"),
            source,
        })
}

impl Drop for Broker {
    fn drop(&mut self) {
        // Without an orderly shutdown the threads must still end.
        self.core.delays.stop();
        self.core.pops.alarms.stop();
        drop(self.core.pops.waits.drain());
        drop(lock(&self.core.holds).drain());
    }
}
