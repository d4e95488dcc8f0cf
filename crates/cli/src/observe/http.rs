//! The socket of the health page: HTTP/1.1, one request per connection.
//!
//! **Invariant:** bounded whoever connects: at most 64 connections, 8 KiB of head, five seconds
//! each. It runs beside the role, so that a start that takes long, or a hung role, can be seen.

use super::page::{self, HEAD_BYTES_MAX, Part};
use super::{HealthSource, Starting};
use anyhow::Context as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const CONNECTIONS_MAX: usize = 64;
const DEADLINE: Duration = Duration::from_secs(5);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

struct Shared {
    role: &'static str,
    starting: Starting,
    source: OnceLock<Arc<dyn HealthSource>>,
    stopping: AtomicBool,
}

/// The health page of a role.
pub(crate) struct Observer {
    addr: SocketAddr,
    shared: Arc<Shared>,
    // Dropping it ends the page.
    _tasks: JoinSet<()>,
}

impl Observer {
    /// Opens the page; until [`Observer::attach`] it says that the role is starting.
    pub(crate) async fn bind(
        addr: SocketAddr,
        role: &'static str,
        starting: Starting,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(addr)
            .await
            .with_context(|| format!("cannot listen on {addr} for metrics and health"))?;
        let addr = listener
            .local_addr()
            .context("the health page has no address")?;
        let shared = Arc::new(Shared {
            role,
            starting,
            source: OnceLock::new(),
            stopping: AtomicBool::new(false),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, Arc::clone(&shared)));
        Ok(Self {
            addr,
            shared,
            _tasks: tasks,
        })
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// The role runs: from now on it is asked.
    pub(crate) fn attach(&self, source: Arc<dyn HealthSource>) {
        let _ = self.shared.source.set(source);
    }

    /// The role was asked to stop: it is not ready from now on.
    pub(crate) fn stopping(&self) {
        self.shared.stopping.store(true, Ordering::Release);
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= CONNECTIONS_MAX {
            connections.join_next().await;
        }
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let shared = Arc::clone(&shared);
                connections.spawn(async move {
                    // A slow or broken peer is its own problem.
                    let _ = timeout(DEADLINE, exchange(stream, &shared)).await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the health page cannot accept");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn exchange(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut head = Vec::with_capacity(1024);
    while !page::is_complete(&head) && head.len() < HEAD_BYTES_MAX {
        if stream.read_buf(&mut head).await? == 0 {
            break;
        }
    }
    if head.is_empty() {
        return Ok(());
    }
    let state = (shared.starting)();
    let part = match shared.source.get() {
        None => Part::Starting(&state),
        Some(source) if shared.stopping.load(Ordering::Acquire) => Part::Stopping(&**source),
        Some(source) => Part::Running(&**source),
    };
    let answer = page::answer(&head, shared.role, part);
    stream.write_all(&answer).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sound;

    async fn bind(addr: SocketAddr) -> anyhow::Result<Observer> {
        Observer::bind(addr, "test", Arc::new(|| "reading".to_owned())).await
    }

    impl HealthSource for Sound {
        fn live(&self) -> Result<(), String> {
            Ok(())
        }
        fn ready(&self) -> Result<(), String> {
            Ok(())
        }
        fn metrics(&self, _: &mut String) {}
    }

    async fn get_text(addr: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        stream
            .write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    async fn get(addr: SocketAddr, path: &str) -> String {
        let text = get_text(addr, path).await;
        text.split(' ').nth(1).unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn the_page_is_there_before_the_role_and_follows_it_to_its_stop() {
        let observer = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let addr = observer.local_addr();
        assert_eq!(get(addr, "/readyz").await, "503");
        assert!(get_text(addr, "/startupz").await.ends_with("reading\n"));
        observer.attach(Arc::new(Sound));
        assert_eq!(get(addr, "/readyz").await, "200");
        observer.stopping();
        assert_eq!(get(addr, "/readyz").await, "503");
        assert_eq!(get(addr, "/livez").await, "200");
    }

    #[tokio::test]
    async fn many_silent_connections_do_not_take_the_page_away_for_good() {
        let observer = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            silent.push(TcpStream::connect(observer.local_addr()).await.unwrap());
        }
        silent.truncate(CONNECTIONS_MAX / 2);
        assert_eq!(get(observer.local_addr(), "/livez").await, "200");
    }

    #[tokio::test]
    async fn an_endless_head_is_answered_and_closed() {
        let observer = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let mut stream = TcpStream::connect(observer.local_addr()).await.unwrap();
        let _ = stream.write_all(&vec![b'a'; 4 * HEAD_BYTES_MAX]).await;
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text).await;
        assert_eq!(get(observer.local_addr(), "/livez").await, "200");
    }

    #[tokio::test]
    async fn a_taken_port_is_an_error_that_names_it() {
        let first = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let error = bind(first.local_addr()).await.err().unwrap();
        assert!(format!("{error:#}").contains(&first.local_addr().to_string()));
    }
}
