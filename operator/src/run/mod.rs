//! The operator as a process: watches, loops, lease, health.
//!
//! **Invariant:** whoever does not hold the lease writes nothing, and whoever loses it ends. What is
//! decided, is decided by pure code elsewhere; here facts are fetched and steps carried out.

mod admin;
mod ask;
mod backoff;
mod broker_object;
mod cluster;
mod consumer_group;
mod context;
mod control;
mod events;
mod execute;
mod finalize;
mod health;
mod lease;
mod metrics;
mod objects;
mod observe;
mod operation;
mod options;
mod scope;
mod told;
mod topic;

pub use health::OperatorProbe;
pub use lease::LeaseError;
pub use options::OperatorOptions;

use context::Context;
use control::Reconcile;
use kube::Client;
use kube::runtime::reflector::Store;
use lease::Candidate;
use metrics::Metrics;
use scope::{Guarded, Queue, Watches};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Why the operator ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The lease was lost or cannot be had.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// A loop or a watch ended, which none does by itself.
    #[error("a loop of the operator ended: {0}")]
    Ended(String),
    /// Figures cannot be kept.
    #[error("metrics: {0}")]
    Metrics(#[from] prometheus::Error),
}

/// An operator that was not started yet.
pub struct Operator {
    client: Client,
    options: Arc<OperatorOptions>,
    metrics: Metrics,
    state: Arc<health::State>,
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operator")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Operator {
    /// An operator that speaks through `client`.
    pub fn new(client: Client, options: OperatorOptions) -> Result<Self, RunError> {
        Ok(Self {
            client,
            options: Arc::new(options),
            metrics: Metrics::new()?,
            state: Arc::default(),
        })
    }

    /// Who answers for its health.
    #[must_use]
    pub fn probe(&self) -> OperatorProbe {
        OperatorProbe::new(Arc::clone(&self.state), self.metrics.clone())
    }

    /// Runs until `stop` turns true, or until the lease is lost.
    pub async fn run(self, stop: watch::Receiver<bool>) -> Result<(), RunError> {
        self.state.started();
        let candidate = self.options.lease.as_ref().map(|name| {
            let namespace = &self.options.site.operator_namespace;
            Candidate::new(self.client.clone(), namespace, name, &self.options.identity)
        });
        if let Some(candidate) = &candidate {
            tokio::select! {
                biased;
                () = stopped(stop.clone()) => return Ok(()),
                led = candidate.lead() => led?,
            }
        }
        self.metrics.leads(true);
        self.state.leads();
        let result = tokio::select! {
            biased;
            lost = keep(candidate.as_ref()) => Err(lost.into()),
            result = Box::pin(self.work(stop)) => result,
        };
        self.metrics.leads(false);
        if let (Ok(()), Some(candidate)) = (&result, &candidate) {
            candidate.release().await;
        }
        result
    }

    /// The loops of every scope; they end in order when asked to.
    async fn work(&self, stop: watch::Receiver<bool>) -> Result<(), RunError> {
        let mut watches = JoinSet::new();
        let mut loops = JoinSet::new();
        let scopes: Vec<Option<String>> = if self.options.namespaces.is_empty() {
            vec![None]
        } else {
            self.options.namespaces.iter().cloned().map(Some).collect()
        };
        for namespace in scopes {
            self.begin(namespace, &mut watches, &mut loops, &stop);
        }
        tokio::select! {
            biased;
            ended = watches.join_next() => return Err(RunError::Ended(of(ended, "watch"))),
            ended = loops.join_next() => {
                if !*stop.borrow() {
                    return Err(RunError::Ended(of(ended, "loop")));
                }
            }
            () = stopped(stop.clone()) => {}
        }
        // Each object that is being looked at comes to the end of its pass.
        while loops.join_next().await.is_some() {}
        watches.shutdown().await;
        Ok(())
    }

    fn begin(
        &self,
        namespace: Option<String>,
        watches: &mut JoinSet<()>,
        loops: &mut JoinSet<()>,
        stop: &watch::Receiver<bool>,
    ) {
        let (stores, queues) = Watches {
            client: self.client.clone(),
            namespace,
            tasks: watches,
            metrics: self.metrics.clone(),
        }
        .begin();
        let context = Arc::new(Context::new(
            self.client.clone(),
            stores.clone(),
            self.metrics.clone(),
            Arc::clone(&self.options),
        ));
        // One waits and tells all: of several who wait for a store itself only the last is woken.
        let (known, ready) = watch::channel(false);
        let (all, state) = (stores.clone(), Arc::clone(&self.state));
        watches.spawn(async move {
            all.ready().await;
            state.synced();
            let _ = known.send(true);
            std::future::pending::<()>().await;
        });
        let mut lane = Lane {
            context: &context,
            ready: &ready,
            loops,
            stop,
        };
        lane.begin(stores.clusters, queues.clusters);
        lane.begin(stores.topics, queues.topics);
        lane.begin(stores.consumer_groups, queues.consumer_groups);
        lane.begin(stores.operations, queues.operations);
    }
}

/// Begins the loops of one scope.
struct Lane<'a> {
    context: &'a Arc<Context>,
    ready: &'a watch::Receiver<bool>,
    loops: &'a mut JoinSet<()>,
    stop: &'a watch::Receiver<bool>,
}

impl Lane<'_> {
    fn begin<K: Reconcile>(&mut self, store: Store<Guarded<K>>, queue: Queue<K>) {
        let (context, stop) = (Arc::clone(self.context), self.stop.clone());
        let mut ready = self.ready.clone();
        self.loops.spawn(async move {
            tokio::select! {
                biased;
                () = stopped(stop.clone()) => return,
                known = ready.wait_for(|known| *known) => if known.is_err() { return },
            }
            Box::pin(control::run::<K>(store, queue, context, stopped(stop))).await;
        });
    }
}

async fn keep(candidate: Option<&Candidate>) -> LeaseError {
    match candidate {
        Some(candidate) => candidate.keep().await,
        None => std::future::pending().await,
    }
}

async fn stopped(mut stop: watch::Receiver<bool>) {
    // A sender that is gone asks for a stop as well.
    let _ = stop.wait_for(|stop| *stop).await;
}

fn of(ended: Option<Result<(), tokio::task::JoinError>>, what: &str) -> String {
    match ended {
        Some(Err(error)) => format!("{what}: {error}"),
        Some(Ok(())) | None => what.to_owned(),
    }
}

#[cfg(test)]
mod tests;
