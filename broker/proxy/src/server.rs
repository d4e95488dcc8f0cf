//! A running gateway: its port, its loop, its end.
//!
//! **Invariant:** the port is taken before [`Proxy::start`] returns, and free again when
//! [`Proxy::shutdown`] has returned. A stop ends streams first, then waits for calls, then for what
//! they left to be done, all within the patience of the options.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rmq_net::{Client, ClientOptions};
use rmq_types::Clock;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::transport::Server;

use crate::backend::{Cluster, Upstream};
use crate::config::{ConfigError, Options};
use crate::incoming::Incoming;
use crate::proto;
use crate::proto::v2::messaging_service_server::MessagingServiceServer;
use crate::rpc::{Gateway, Rpc};
use crate::upkeep;

/// A peer that does not answer a ping is gone.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_WITHIN: Duration = Duration::from_secs(20);
/// Headers of a call.
const HEADER_BYTES_MAX: u32 = 32 * 1024;
/// Bytes of a stream that a client may send ahead, and of a whole connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;

/// Why a gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The options.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The port.
    #[error("cannot listen on {addr}: {source}")]
    Listen {
        /// The address asked for.
        addr: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The reflection of the service.
    #[error("the service cannot be described: {0}")]
    Reflection(#[source] tonic_reflection::server::Error),
}

/// A running gateway.
#[derive(Debug)]
pub struct Proxy {
    gateway: Arc<Gateway>,
    addr: SocketAddr,
    serving: JoinHandle<Result<(), tonic::transport::Error>>,
    health: tonic_health::server::HealthReporter,
}

impl Proxy {
    /// Starts a gateway that reaches brokers over sockets.
    pub async fn start(options: Options, clock: Arc<dyn Clock>) -> Result<Self, StartError> {
        let upstream = Arc::new(Client::new(ClientOptions::default()));
        Self::start_with(options, clock, upstream).await
    }

    /// Starts a gateway with this way to brokers.
    pub async fn start_with(
        options: Options,
        clock: Arc<dyn Clock>,
        upstream: Arc<dyn Upstream>,
    ) -> Result<Self, StartError> {
        options.check()?;
        let listen = |source| StartError::Listen {
            addr: options.listen,
            source,
        };
        let listener = TcpListener::bind(options.listen).await.map_err(listen)?;
        let addr = listener.local_addr().map_err(listen)?;
        let cluster = Cluster::new(upstream, options.name_servers.clone());
        let limits = options.limits.clone();
        let gateway = Arc::new(Gateway::new(cluster, options, clock));
        let messaging = MessagingServiceServer::new(Rpc(Arc::clone(&gateway)))
            .max_decoding_message_size(limits.request_bytes_max);
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_serving::<MessagingServiceServer<Rpc>>().await;
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(proto::DESCRIPTOR)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1()
            .map_err(StartError::Reflection)?;
        let router = Server::builder()
            .http2_keepalive_interval(Some(PING_EVERY))
            .http2_keepalive_timeout(Some(PING_WITHIN))
            .http2_max_header_list_size(HEADER_BYTES_MAX)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_concurrent_streams(limits.streams_per_connection_max)
            .add_service(messaging)
            .add_service(health_service)
            .add_service(reflection);
        gateway.tasks.spawn(upkeep::run(Arc::clone(&gateway)));
        gateway.tasks.spawn(upkeep::look(Arc::clone(&gateway)));
        let incoming = Incoming::new(listener, gateway.seats.clone());
        let mut stopping = gateway.stopping.subscribe();
        let stop = async move {
            // The gateway holds the sender: the channel cannot close before it is told.
            let _ = stopping.wait_for(|stop| *stop).await;
        };
        let serve = router.serve_with_incoming_shutdown(incoming, stop);
        Ok(Self {
            gateway,
            addr,
            serving: spawn(serve),
            health,
        })
    }

    /// Where clients connect.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// Looks at the gateway while it runs.
    #[must_use]
    pub fn probe(&self) -> Probe {
        Probe(Arc::clone(&self.gateway))
    }

    /// Stops in order.
    pub async fn shutdown(mut self) {
        let patience = self.gateway.options.shutdown_patience;
        let deadline = tokio::time::Instant::now() + patience;
        self.health
            .set_not_serving::<MessagingServiceServer<Rpc>>()
            .await;
        self.gateway.stopping.send_replace(true);
        match tokio::time::timeout_at(deadline, &mut self.serving).await {
            Ok(Ok(Ok(()))) => {}
            Ok(ended) => tracing::warn!(?ended, "serving ended with a failure"),
            Err(_) => self.serving.abort(),
        }
        let left = deadline.saturating_duration_since(tokio::time::Instant::now());
        self.gateway.tasks.end(left).await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "awaited by `shutdown` and aborted by `drop`: a set of one"
)]
fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(task)
}

/// Says how a gateway is.
#[derive(Clone, Debug)]
pub struct Probe(Arc<Gateway>);

impl Probe {
    /// Whether clients can use it: it is not stopping, and knows a broker.
    pub fn ready(&self) -> Result<(), String> {
        if *self.0.stopping.borrow() {
            return Err("stopping".to_owned());
        }
        self.0.reachable()
    }

    /// Its figures in the Prometheus text form.
    pub fn metrics(&self, out: &mut String) {
        self.0.metrics.write(self.0.gauges(), out);
    }
}
