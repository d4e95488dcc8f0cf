//! What every reconcile of a scope has at hand.
//!
//! **Invariant:** no state of a cluster lives here that a restart may not lose: counts of failures,
//! connections and what was last written are all made anew from nothing.

use super::admin::AdminPool;
use super::backoff;
use super::events::Events;
use super::metrics::Metrics;
use super::options::OperatorOptions;
use super::scope::Stores;
use crate::apply::{Applied, ApplyError, Class, StatusWriter, Writer};
use crate::build::Object;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::core::NamespaceResourceScope;
use kube::runtime::controller::Action;
use kube::{Resource, ResourceExt};
use rmq_operator_api::EventReason;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Longest wait before a broker or NameServer is asked again: it may be back any time.
const ASKED_AGAIN: Duration = Duration::from_secs(30);
/// Most pods whose refusals are remembered.
const REJECTED_MAX: usize = 4096;

/// Why a reconcile did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// An object or status could not be written.
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

impl ReconcileError {
    pub(crate) fn class(&self) -> Class {
        match self {
            Self::Apply(error) => error.class(),
        }
    }

    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Apply(error) => error.label(),
        }
    }
}

/// See the module.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) writer: Writer,
    pub(crate) status: StatusWriter,
    pub(crate) stores: Stores,
    pub(crate) events: Events,
    pub(crate) metrics: Metrics,
    pub(crate) options: Arc<OperatorOptions>,
    pub(crate) admin: AdminPool,
    failures: Mutex<HashMap<String, u32>>,
    /// Live keys that a program refused, by the UID of its pod; as many entries as there are such
    /// pods, and asked anew after a restart.
    rejected: Mutex<HashMap<String, BTreeMap<String, String>>>,
}

impl Context {
    pub(crate) fn new(
        client: Client,
        stores: Stores,
        metrics: Metrics,
        options: Arc<OperatorOptions>,
    ) -> Self {
        Self {
            writer: Writer::new(client.clone()),
            status: StatusWriter::new(client.clone()),
            events: Events::new(client.clone(), &options.identity),
            admin: AdminPool::default(),
            client,
            stores,
            metrics,
            options,
            failures: Mutex::default(),
            rejected: Mutex::default(),
        }
    }

    /// Live keys that the program of a pod refused, with the values.
    pub(crate) fn rejected(&self, uid: &str) -> BTreeMap<String, String> {
        let all = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(uid).cloned().unwrap_or_default()
    }

    /// Remembers that the program of a pod refused a key; a later value is tried again.
    pub(crate) fn reject(&self, uid: &str, key: &str, value: &str) {
        let mut all = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REJECTED_MAX && !all.contains_key(uid) {
            // Forgetting costs one more question to each of them.
            all.clear();
        }
        all.entry(uid.to_owned())
            .or_default()
            .insert(key.to_owned(), value.to_owned());
    }

    /// Applies an object that belongs to `cluster` and says in an event if it was put right.
    pub(crate) async fn ensure(
        &self,
        namespace: &str,
        object: &Object,
        cluster: &ObjectReference,
    ) -> Result<Applied, ApplyError> {
        let live = self.stores.live(object.kind, namespace, &object.name);
        let applied = self.writer.apply(namespace, object, live.as_ref()).await?;
        if applied != Applied::Unchanged {
            self.metrics.wrote(&object.kind.to_string());
        }
        if let Applied::Corrected { field } = &applied {
            self.metrics.corrected(&object.kind.to_string());
            let note = format!(
                "{} {} was changed by somebody else at {field} and put right",
                object.kind, object.name
            );
            self.events
                .tell(cluster, EventReason::DriftCorrected, &note)
                .await;
        }
        Ok(applied)
    }

    /// Writes a status if it is new.
    pub(crate) async fn write_status<K, S>(
        &self,
        object: &K,
        old: Option<&S>,
        status: &S,
    ) -> Result<bool, ApplyError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
        S: Serialize,
    {
        let written = self.status.write(object, old, status).await?;
        if written {
            self.metrics.wrote(&K::kind(&()));
        }
        Ok(written)
    }

    /// When an object that failed is tried again.
    pub(crate) fn failed<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        error: &ReconcileError,
    ) -> Action {
        let kind = K::kind(&());
        let name = key(object);
        self.metrics.failed(&kind, error.label());
        let attempt = self.count(&name);
        let wait = match error.class() {
            Class::Conflict => backoff::CONFLICT,
            Class::Transient => backoff::wait(attempt, &name),
            Class::Permanent => backoff::spread(backoff::LAST, attempt, &name),
        };
        tracing::warn!(%kind, name, attempt, wait = wait.as_secs_f32(), %error, "failed");
        Action::requeue(wait)
    }

    fn count(&self, name: &str) -> u32 {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let attempt = failures.entry(name.to_owned()).or_insert(0);
        *attempt = attempt.saturating_add(1);
        *attempt
    }

    /// When an object is looked at again of which a broker or NameServer did not take a step.
    pub(crate) fn refused<K: Resource<DynamicType = ()>>(&self, object: &K) -> Action {
        let name = key(object);
        self.metrics.failed(&K::kind(&()), "step");
        let attempt = self.count(&name);
        Action::requeue(backoff::wait(attempt, &name).min(ASKED_AGAIN))
    }

    /// Forgets the failures of an object; looks at it again after `again`.
    pub(crate) fn succeeded<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        again: Option<Duration>,
    ) -> Action {
        let name = key(object);
        self.failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&name);
        again.map_or_else(Action::await_change, |again| {
            Action::requeue(backoff::spread(again, 0, &name))
        })
    }

    /// Forgets everything about a cluster that is gone.
    pub(crate) fn forget<K: Resource<DynamicType = ()>>(&self, object: &K) {
        let name = key(object);
        self.failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&name);
        self.admin.forget(&name);
        self.writer
            .forget_cluster(&object.namespace().unwrap_or_default(), &object.name_any());
    }
}

/// Namespace and name.
pub(crate) fn key<K: Resource>(object: &K) -> String {
    format!(
        "{}/{}",
        object.namespace().unwrap_or_default(),
        object.name_any()
    )
}
