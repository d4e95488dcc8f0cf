//! The client all calls hang on: NameServer addresses, deadlines, one exchange.
//!
//! **Invariant:** every request has a deadline. Reads ask the NameServers one after the other until
//! one answers; a server that answers with an error code is not asked around. Keeps no route.

use std::{sync::Arc, time::Duration};

use rmq_net::{Client, ClientOptions};
use rmq_protocol::{
    header::{DecodeHeader, EncodeHeader},
    json::JsonError,
    remoting::{Command, ExtFields, response_code},
};
use rmq_types::{Clock, SystemClock};

use crate::{AskError, NameServerError};

/// Longest wait for a connection; the deadline of a request ends it sooner.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How an [`AdminClient`] behaves.
#[derive(Clone)]
pub struct AdminOptions {
    /// Deadline of one request, connecting included.
    pub timeout: Duration,
    /// Longest body that a compressed message may have once it is inflated.
    pub inflated_bytes_max: usize,
    /// Where message ids and subscriptions take the time from.
    pub clock: Arc<dyn Clock>,
}

impl Default for AdminOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(5),
            inflated_bytes_max: rmq_types::limits::INFLATED_BYTES_MAX,
            clock: Arc::new(SystemClock),
        }
    }
}

impl std::fmt::Debug for AdminOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdminOptions")
            .field("timeout", &self.timeout)
            .field("inflated_bytes_max", &self.inflated_bytes_max)
            .finish_non_exhaustive()
    }
}

/// Admin calls to the clusters that some NameServers know. Clones share connections.
#[derive(Clone, Debug)]
pub struct AdminClient {
    client: Client,
    name_servers: Arc<[String]>,
    pub(crate) options: AdminOptions,
}

impl AdminClient {
    /// A client of the NameServers at these addresses (`host:port`, see
    /// [`parse_addresses`](crate::parse_addresses)). Nothing is connected before the first call.
    #[must_use]
    pub fn new(name_servers: &[String], options: AdminOptions) -> Self {
        let client = ClientOptions {
            connect_timeout: CONNECT_TIMEOUT.min(options.timeout),
            ..ClientOptions::default()
        };
        Self {
            client: Client::new(client),
            name_servers: name_servers.into(),
            options,
        }
    }

    /// The NameServers' addresses.
    #[must_use]
    pub fn name_servers(&self) -> &[String] {
        &self.name_servers
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Asks one address; any code is an answer.
    pub(crate) async fn exchange(&self, addr: &str, cmd: Command) -> Result<Command, AskError> {
        Ok(self.client.call(addr, cmd, self.options.timeout).await?)
    }

    /// Asks one address; only success is an answer.
    pub(crate) async fn ask(&self, addr: &str, cmd: Command) -> Result<Command, AskError> {
        let request = cmd.code;
        let answer = self.exchange(addr, cmd).await?;
        if answer.code == response_code::SUCCESS {
            Ok(answer)
        } else {
            Err(refused(addr, request, answer))
        }
    }

    /// Asks the NameServers in turn until one answers, and says which one did.
    pub(crate) async fn ask_name_servers(
        &self,
        cmd: &Command,
    ) -> Result<(String, Command), NameServerError> {
        let mut causes = Vec::new();
        for addr in self.name_servers.iter() {
            match self.exchange(addr, cmd.clone()).await {
                Ok(answer) => return Ok((addr.clone(), answer)),
                Err(cause) => {
                    tracing::debug!(%addr, %cause, "NameServer passed over");
                    causes.push(cause);
                }
            }
        }
        Err(NameServerError::NoneAnswers {
            addresses: self.name_servers.to_vec(),
            causes,
        })
    }

    /// As [`Self::ask_name_servers`]; an error code is an error.
    pub(crate) async fn ask_name_servers_for<T>(
        &self,
        cmd: &Command,
        read: impl Fn(&[u8]) -> Result<T, JsonError>,
    ) -> Result<(String, T), NameServerError> {
        let (addr, answer) = self.ask_name_servers(cmd).await?;
        if answer.code != response_code::SUCCESS {
            return Err(NameServerError::Refused(refused(&addr, cmd.code, answer)));
        }
        let body = body(&addr, cmd.code, &answer, read).map_err(NameServerError::Refused)?;
        Ok((addr, body))
    }
}

/// A request with a typed header.
pub(crate) fn request(code: i32, header: &impl EncodeHeader) -> Command {
    Command::request(code).with_header(header)
}

pub(crate) fn refused(addr: &str, request: i32, answer: Command) -> AskError {
    AskError::Refused {
        addr: addr.to_owned(),
        request,
        code: answer.code,
        remark: answer.remark.unwrap_or_default(),
    }
}

/// Reads an answer's body.
pub(crate) fn body<T>(
    addr: &str,
    request: i32,
    answer: &Command,
    read: impl Fn(&[u8]) -> Result<T, JsonError>,
) -> Result<T, AskError> {
    read(&answer.body).map_err(|source| AskError::Body {
        addr: addr.to_owned(),
        request,
        source,
    })
}

/// Reads an answer's typed header.
pub(crate) fn fields<'a, T: DecodeHeader<'a>>(
    addr: &str,
    request: i32,
    ext: &'a ExtFields<'_>,
) -> Result<T, AskError> {
    T::decode(ext).map_err(|source| AskError::Header {
        addr: addr.to_owned(),
        request,
        source,
    })
}
