//! Registration with every NameServer: in full every 30 seconds and whenever a connection ends, in
//! part when topics change.
//!
//! **Invariant:** a failed look-up or an empty list never unregisters anything. A topic that was
//! acknowledged has been announced, or the announcement timed out and the next round carries it.

mod link;
mod run;
mod wire;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{RecvTimeoutError, SyncSender, sync_channel},
    },
    time::Duration,
};

use rmq_net::{Client, ClientOptions, Connection, Outbox, Request, Service};
use rmq_protocol::{
    body::DataVersion,
    remoting::{Command, response_code},
};
use tokio::sync::mpsc;

pub(crate) use run::run;
pub(crate) use wire::unregister_all;

/// Announcements that may wait.
const ASKS_MAX: usize = 4096;
/// How long a topic change waits for the NameServers.
const ANNOUNCE_WAIT: Duration = Duration::from_secs(3);

/// What the registration loop is asked.
#[derive(Debug)]
pub(crate) enum Ask {
    /// Tell of these topics.
    Topics {
        /// Their names.
        names: Vec<String>,
        /// The version of the table in which they changed.
        version: DataVersion,
        /// Dropped by all once every NameServer that is there has answered.
        done: SyncSender<()>,
    },
    /// Register in full now.
    Full,
    /// A connection to a NameServer ended.
    Disconnected(u64),
}

/// Handle on the loop.
#[derive(Debug)]
pub(crate) struct Registrar {
    asks: mpsc::Sender<Ask>,
    reached: AtomicUsize,
    known: AtomicUsize,
    /// NameServers that have us, to leave them at the end.
    registered: Mutex<Vec<String>>,
}

impl Registrar {
    /// The handle, and what the loop reads. `known` is the number of NameServers configured: until
    /// a majority of them has been reached, the broker is not registered.
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

    /// A client whose connections tell the loop when they end.
    #[must_use]
    pub(crate) fn client(&self) -> Client {
        let asks = self.asks.clone();
        Client::new(ClientOptions {
            on_request: Some(Arc::new(Watch { asks })),
            ..ClientOptions::default()
        })
    }

    /// Tells the NameServers of changed topics and waits for their answers. Not on an io thread.
    pub(crate) fn announce(&self, names: Vec<String>, version: DataVersion) {
        let (done, answered) = sync_channel(1);
        let ask = Ask::Topics {
            names,
            version,
            done,
        };
        if self.known.load(Ordering::Acquire) == 0 || self.asks.try_send(ask).is_err() {
            return;
        }
        if answered.recv_timeout(ANNOUNCE_WAIT) == Err(RecvTimeoutError::Timeout) {
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

    fn publish(&self, known: usize, reached: usize) {
        self.reached.store(reached, Ordering::Release);
        self.known.store(known, Ordering::Release);
    }
}

/// Serves NameServers' own requests, of which there are none for this broker, and notices ends.
#[derive(Debug)]
struct Watch {
    asks: mpsc::Sender<Ask>,
}

impl Service for Watch {
    fn serve(&self, _conn: &Arc<Connection>, requests: &[Request<'_>], out: &mut Outbox) {
        for request in requests.iter().filter(|request| request.wants_reply()) {
            let header = &request.header;
            let code = response_code::REQUEST_CODE_NOT_SUPPORTED;
            let remark = format!(" request type {} not supported", header.code);
            out.send(&Command::response(header.opaque, code).with_remark(remark));
        }
    }

    fn closed(&self, conn: &Arc<Connection>) {
        let _ = self.asks.try_send(Ask::Disconnected(conn.id().0));
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
