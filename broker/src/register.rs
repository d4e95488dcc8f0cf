//! Registration with every NameServer: in full every 30 seconds, in part when topics change.
//!
//! **Invariant:** a failed look-up or an empty list never unregisters anything. A topic that was
//! acknowledged has been announced, or the announcement timed out and the next round carries it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{SyncSender, sync_channel},
    },
    time::Duration,
};

use rmq_net::{CallError, Client};
use rmq_protocol::{
    body::{RegisterBrokerBody, TopicConfig, TopicConfigWrapper},
    header,
    remoting::{Command, request_code, response_code},
};
use tokio::{sync::mpsc, task::JoinSet};

use crate::core::{Core, lock};

/// Announcements that may wait.
const ASKS_MAX: usize = 4096;
/// How long a topic change waits for the NameServers.
const ANNOUNCE_WAIT: Duration = Duration::from_secs(3);

/// What the registration loop is asked.
#[derive(Debug)]
pub(crate) enum Ask {
    /// Tell of these topics.
    Topics {
        /// Settings as they are now.
        changed: Vec<Arc<TopicConfig>>,
        /// Signalled once every NameServer answered.
        done: SyncSender<()>,
    },
    /// Register in full now.
    Full,
}

/// Handle on the loop.
#[derive(Debug)]
pub(crate) struct Registrar {
    asks: mpsc::Sender<Ask>,
    reached: AtomicUsize,
    known: AtomicUsize,
    /// NameServers that have us, to unregister from those dropped from the list.
    registered: Mutex<Vec<String>>,
}

impl Registrar {
    /// The handle, and what the loop reads. `known` is the number of NameServers configured: until
    /// the first round has reached a majority of them, the broker is not registered.
    #[must_use]
    pub(crate) fn new(known: usize) -> (Self, mpsc::Receiver<Ask>) {
        let (asks, receiver) = mpsc::channel(ASKS_MAX);
        let handle = Self {
            asks,
            reached: AtomicUsize::new(0),
            known: AtomicUsize::new(known),
            registered: Mutex::default(),
        };
        (handle, receiver)
    }

    /// Tells the NameServers of changed topics and waits for their answers. Not on an io thread.
    pub(crate) fn announce(&self, changed: Vec<Arc<TopicConfig>>) {
        let (done, answered) = sync_channel(1);
        if self.known.load(Ordering::Acquire) == 0
            || self.asks.try_send(Ask::Topics { changed, done }).is_err()
        {
            return;
        }
        if answered.recv_timeout(ANNOUNCE_WAIT).is_err() {
            tracing::warn!("NameServers did not answer a topic change in time");
        }
    }

    /// Asks for a full registration.
    pub(crate) fn refresh(&self) {
        let _ = self.asks.try_send(Ask::Full);
    }

    /// Whether a majority of the NameServers has this broker; with none configured there is none
    /// to ask.
    #[must_use]
    pub(crate) fn is_registered(&self) -> bool {
        let known = self.known.load(Ordering::Acquire);
        known == 0 || self.reached.load(Ordering::Acquire) * 2 > known
    }

    /// NameServers that have this broker, and how many there are.
    #[must_use]
    pub(crate) fn reach(&self) -> (usize, usize) {
        (
            self.reached.load(Ordering::Acquire),
            self.known.load(Ordering::Acquire),
        )
    }
}

/// Splits a list of NameServers; commas are taken for semicolons.
pub(crate) fn parse_addresses(text: &str) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    for part in text
        .split([';', ','])
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let (host, port) = part
            .rsplit_once(':')
            .ok_or_else(|| format!("namesrvAddr {part:?}: no port, write host:9876"))?;
        let port: u16 = port
            .parse()
            .map_err(|_| format!("namesrvAddr {part:?}: {port:?} is no port"))?;
        if host.is_empty() || port == 0 {
            return Err(format!("namesrvAddr {part:?}: write host:9876"));
        }
        out.push(part.to_owned());
    }
    Ok(out)
}

/// The loop; ends when the broker drops the handle's receiver by cancelling its task.
pub(crate) async fn run(core: Arc<Core>, client: Client, mut asks: mpsc::Receiver<Ask>) {
    loop {
        register_all(&core, &client, None).await;
        let period = core.settings.get().register_name_server_period.get() as u64;
        // An incomplete registration is repeated soon.
        let wait = if core.registrar.is_registered() {
            period
        } else {
            1000
        };
        let deadline = tokio::time::sleep(Duration::from_millis(wait));
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                () = &mut deadline => break,
                ask = asks.recv() => match ask {
                    None => return,
                    Some(first) => if !answer(&core, &client, &mut asks, first).await { break },
                }
            }
        }
    }
}

/// Answers an ask together with all that wait behind it; `false`: a full registration is due.
async fn answer(
    core: &Arc<Core>,
    client: &Client,
    asks: &mut mpsc::Receiver<Ask>,
    first: Ask,
) -> bool {
    let mut topics = BTreeMap::new();
    let mut signals = Vec::new();
    let mut full = false;
    let mut next = Some(first);
    while let Some(ask) = next.take().or_else(|| asks.try_recv().ok()) {
        match ask {
            Ask::Full => full = true,
            Ask::Topics { changed, done } => {
                topics.extend(
                    changed
                        .into_iter()
                        .map(|t| (t.topic_name.clone(), TopicConfig::clone(&t))),
                );
                signals.push(done);
            }
        }
    }
    if !topics.is_empty() {
        register_all(core, client, Some(topics)).await;
    }
    for done in signals {
        let _ = done.try_send(());
    }
    !full
}

async fn register_all(
    core: &Arc<Core>,
    client: &Client,
    only: Option<BTreeMap<String, TopicConfig>>,
) {
    let settings = core.settings.get();
    let servers = parse_addresses(&settings.namesrv_addr).unwrap_or_default();
    core.registrar.known.store(servers.len(), Ordering::Release);
    unregister_dropped(core, client, &servers).await;
    if core.is_stopping() {
        return;
    }
    let partial = only.is_some();
    let command = registration(core, only, settings.broker_permission.get() as i32);
    let timeout = Duration::from_millis(settings.register_broker_timeout_mills.get() as u64);
    let mut calls = JoinSet::new();
    for server in servers {
        let (client, mut command) = (client.clone(), command.clone());
        command.opaque = rmq_protocol::remoting::next_opaque();
        calls.spawn(async move {
            let outcome = client.call(&server, command, timeout).await;
            (server, outcome)
        });
    }
    let mut reached = Vec::new();
    while let Some(Ok((server, outcome))) = calls.join_next().await {
        match outcome {
            Ok(answer) if answer.code == response_code::SUCCESS => reached.push(server),
            Ok(answer) => {
                tracing::warn!(server, code = answer.code, remark = ?answer.remark, "registration refused");
            }
            Err(error) => tracing::warn!(server, %error, "registration failed"),
        }
    }
    if !partial {
        core.registrar
            .reached
            .store(reached.len(), Ordering::Release);
        *lock(&core.registrar.registered) = reached;
    }
}

fn registration(
    core: &Core,
    only: Option<BTreeMap<String, TopicConfig>>,
    broker_permission: i32,
) -> Command {
    let (data_version, all) = core.topics.snapshot();
    let mut table = only.unwrap_or_else(|| {
        all.iter()
            .map(|topic| (topic.topic_name.clone(), TopicConfig::clone(topic)))
            .collect()
    });
    for topic in table.values_mut() {
        topic.perm &= broker_permission | 1;
    }
    let body = RegisterBrokerBody {
        filter_server_list: Vec::new(),
        topic_config_serialize_wrapper: TopicConfigWrapper {
            data_version,
            topic_config_table: table,
            ..TopicConfigWrapper::default()
        },
    };
    let identity = &core.identity;
    Command::request(request_code::REGISTER_BROKER)
        .with_header(&header::RegisterBroker {
            broker_name: identity.name.as_str().into(),
            broker_addr: identity.advertised().into(),
            cluster_name: identity.cluster.as_str().into(),
            ha_server_addr: identity.ha_address.to_string().into(),
            broker_id: identity.id.get() as i64,
            heartbeat_timeout_millis: None,
            enable_acting_master: None,
            compressed: false,
            body_crc32: 0,
            zone_name: None,
        })
        .with_body(body.to_json())
}

fn unregistration(core: &Core) -> Command {
    let identity = &core.identity;
    Command::request(request_code::UNREGISTER_BROKER).with_header(&header::BrokerHeader {
        broker_name: identity.name.as_str().into(),
        broker_addr: identity.advertised().into(),
        cluster_name: identity.cluster.as_str().into(),
        broker_id: identity.id.get() as i64,
    })
}

/// Leaves the NameServers that a change of `namesrvAddr` dropped.
async fn unregister_dropped(core: &Core, client: &Client, servers: &[String]) {
    let dropped: Vec<String> = {
        let registered = lock(&core.registrar.registered);
        registered
            .iter()
            .filter(|old| !servers.contains(old))
            .cloned()
            .collect()
    };
    for server in dropped {
        leave(client, &server, unregistration(core)).await;
    }
}

async fn leave(client: &Client, server: &str, command: Command) {
    let outcome: Result<Command, CallError> =
        client.call(server, command, Duration::from_secs(3)).await;
    if let Err(error) = outcome {
        tracing::warn!(server, %error, "not unregistered");
    }
}

/// Leaves every NameServer, for the shutdown.
pub(crate) async fn unregister_all(core: &Core, client: &Client) {
    let servers = std::mem::take(&mut *lock(&core.registrar.registered));
    let mut calls = JoinSet::new();
    for server in servers {
        let (client, command) = (client.clone(), unregistration(core));
        calls.spawn(async move { leave(&client, &server, command).await });
    }
    while calls.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use super::{Registrar, parse_addresses};

    #[test]
    fn a_broker_that_has_not_registered_yet_is_registered_only_where_there_is_nobody_to_ask() {
        assert!(!Registrar::new(1).0.is_registered());
        assert!(Registrar::new(0).0.is_registered());
    }

    #[test]
    fn lists_are_split_at_semicolons_and_commas() {
        assert_eq!(
            parse_addresses("a:1;b:2,c:3;").unwrap(),
            ["a:1", "b:2", "c:3"]
        );
        assert!(parse_addresses("").unwrap().is_empty());
    }

    #[test]
    fn an_address_without_a_usable_port_is_refused_by_name() {
        for bad in ["a", "a:99999", "a:b", ":9876", "a:0"] {
            assert!(parse_addresses(bad).unwrap_err().contains(bad), "{bad}");
        }
    }
}
