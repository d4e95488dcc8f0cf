//! The registration loop: one link for each NameServer, told of changes and of lost connections.
//!
//! A NameServer that hangs keeps nobody else waiting. What is logged is a change of standing, never
//! an attempt.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rmq_net::{Client, Connection};
use rmq_protocol::remoting::{Command, response_code};
use tokio::{sync::mpsc, task::JoinSet, time::Instant};

use super::{
    Ask,
    link::{Job, Link, Turn, Waiters},
    parse_addresses, wire,
};
use crate::core::{Core, lock};

/// Longest sleep: a changed list of NameServers is noticed this often whoever changed it.
const NAP: Duration = Duration::from_secs(30);

/// What became of one registration.
struct Done {
    server: String,
    full: bool,
    /// The connection that it was taken on, or why it was not.
    outcome: Result<Arc<Connection>, String>,
}

struct Loop {
    core: Arc<Core>,
    client: Client,
    began: Instant,
    links: BTreeMap<String, Link>,
    calls: JoinSet<Done>,
    leaving: JoinSet<()>,
}

/// Registers until the broker goes down.
pub(crate) async fn run(core: Arc<Core>, client: Client, mut asks: mpsc::Receiver<Ask>) {
    let mut state = Loop {
        core,
        client,
        began: Instant::now(),
        links: BTreeMap::new(),
        calls: JoinSet::new(),
        leaving: JoinSet::new(),
    };
    while !state.core.is_stopping() {
        state.follow_list();
        state.start_due();
        let wakes = state.links.values().filter_map(Link::wakes_at).min();
        let nap = wakes.map_or(NAP, |at| at.saturating_sub(state.now()).min(NAP));
        tokio::select! {
            () = tokio::time::sleep(nap) => {}
            Some(done) = state.calls.join_next() => match done {
                Ok(done) => state.finish(&done),
                Err(error) => tracing::error!(%error, "a registration panicked"),
            },
            ask = asks.recv() => match ask {
                None => return,
                Some(first) => {
                    state.take(first);
                    while let Ok(next) = asks.try_recv() {
                        state.take(next);
                    }
                }
            },
        }
    }
}

impl Loop {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Links to the NameServers that the settings name, and leaves those that they dropped.
    fn follow_list(&mut self) {
        let settings = self.core.settings.get();
        let servers = parse_addresses(&settings.namesrv_addr).unwrap_or_default();
        while self.leaving.try_join_next().is_some() {}
        for (server, link) in self
            .links
            .extract_if(.., |server, _| !servers.contains(server))
        {
            if link.is_reached() {
                let (client, command) = (self.client.clone(), wire::unregistration(&self.core));
                self.leaving
                    .spawn(async move { wire::leave(&client, &server, command).await });
            }
        }
        for server in servers {
            self.links.entry(server).or_insert_with(Link::new);
        }
        self.publish();
    }

    /// Lets the rest of the broker see who has it.
    fn publish(&self) {
        let reached: Vec<String> = self
            .links
            .iter()
            .filter(|(_, link)| link.is_reached())
            .map(|(server, _)| server.clone())
            .collect();
        self.core.registrar.publish(self.links.len(), reached.len());
        *lock(&self.core.registrar.registered) = reached;
    }

    fn take(&mut self, ask: Ask) {
        let now = self.now();
        match ask {
            Ask::Full => self.links.values_mut().for_each(|link| link.refresh(now)),
            Ask::Topics {
                names,
                version,
                done,
            } => {
                for link in self.links.values_mut() {
                    link.change(&names, version, &done);
                }
            }
            Ask::Disconnected(connection) => {
                for link in self.links.values_mut() {
                    link.disconnected(now, connection);
                }
            }
        }
    }

    fn start_due(&mut self) {
        let settings = self.core.settings.get();
        let timeout = Duration::from_millis(settings.register_broker_timeout_mills.get() as u64);
        let now = self.began.elapsed();
        for (server, link) in &mut self.links {
            let Some(job) = link.next(now) else { continue };
            let (full, command, waiters) = match job {
                Job::Full(waiters) => (true, wire::in_full(&self.core), waiters),
                Job::Part {
                    names,
                    version,
                    waiters,
                } => (
                    false,
                    wire::in_part(&self.core, version, names.iter()),
                    waiters,
                ),
            };
            let (client, server) = (self.client.clone(), server.clone());
            self.calls.spawn(async move {
                let outcome = ask(&client, &server, command, timeout).await;
                drop::<Waiters>(waiters);
                Done {
                    server,
                    full,
                    outcome,
                }
            });
        }
    }

    fn finish(&mut self, done: &Done) {
        let now = self.now();
        let Some(link) = self.links.get_mut(&done.server) else {
            return;
        };
        let server = &done.server;
        match &done.outcome {
            Ok(connection) => {
                let settings = self.core.settings.get();
                let period =
                    Duration::from_millis(settings.register_name_server_period.get() as u64);
                let id = connection.id().0;
                if link.taken(now, id, done.full.then_some(period)) == Turn::Reached {
                    tracing::info!(server, "registered with the NameServer");
                }
                // Its end may have been told before this.
                if !connection.is_open() {
                    link.disconnected(now, id);
                }
            }
            Err(reason) => {
                if link.failed(now) == Turn::Lost {
                    tracing::warn!(
                        server,
                        reason,
                        "not registered with the NameServer, retrying"
                    );
                }
            }
        }
    }
}

async fn ask(
    client: &Client,
    server: &str,
    command: Command,
    timeout: Duration,
) -> Result<Arc<Connection>, String> {
    let connection = client.connection(server).await;
    let connection = connection.map_err(|error| error.to_string())?;
    let answer = connection.call(command, timeout).await;
    let answer = answer.map_err(|error| error.to_string())?;
    if answer.code == response_code::SUCCESS {
        return Ok(connection);
    }
    let remark = answer.remark.unwrap_or_default();
    Err(format!("refused with code {}: {remark}", answer.code))
}
