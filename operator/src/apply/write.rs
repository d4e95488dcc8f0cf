//! Objects and pods: apply, delete, label.
//!
//! **Invariant:** see the module. What the server makes of a field it normalises (`1024Mi` becomes
//! `1Gi`) is remembered by object, so that such an object is written once and not for ever; the
//! memory has one entry for each object there is, and losing it costs one write that changes nothing.

use super::compare::{covers, difference, projected};
use super::error::{ApplyError, class_of};
use crate::build::{Kind, Object};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy};
use kube::core::DynamicObject;
use kube::{Api, Client};
use rmq_operator_api::keys::{MANAGER_OBJECTS, MANAGER_ROUTING};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Longest wait for one answer of the API server.
pub(super) const DEADLINE: Duration = Duration::from_secs(15);

/// What an apply did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// Nothing: it was there already.
    Unchanged,
    /// It was not there.
    Created,
    /// What was wanted of it has changed.
    Updated,
    /// Somebody else had changed it; where is the first field that differed.
    Corrected {
        /// The field as a path.
        field: String,
    },
}

/// Writes objects.
pub struct Writer {
    client: Client,
    made: Mutex<HashMap<Key, Made>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    kind: Kind,
    namespace: String,
    name: String,
}

/// What was wanted of an object and what the server made of it.
struct Made {
    wanted: u64,
    live: u64,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl Writer {
    /// Writes through `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            made: Mutex::default(),
        }
    }

    fn api(&self, kind: Kind, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &kind.resource())
    }

    /// Whether `live` says already what `object` does, so that applying it would write nothing.
    #[must_use]
    pub fn is_same(&self, namespace: &str, object: &Object, live: &Value) -> bool {
        let key = Key {
            kind: object.kind,
            namespace: namespace.to_owned(),
            name: object.name.clone(),
        };
        let wanted = crate::build::object::hash(object.value.to_string().as_bytes());
        covers(&object.value, live) || self.is_as_made(&key, wanted, object, live)
    }

    /// Applies `object`. `live` is the object as it was last seen; without it, the server is asked
    /// first whether it is there, and whose it is.
    pub async fn apply(
        &self,
        namespace: &str,
        object: &Object,
        live: Option<&Value>,
    ) -> Result<Applied, ApplyError> {
        let api = self.api(object.kind, namespace);
        let asked;
        let live = if let Some(live) = live {
            Some(live)
        } else {
            asked = within(object, api.get_opt(&object.name))
                .await?
                .map(|found| serde_json::to_value(found).expect("a dynamic object is plain JSON"));
            asked.as_ref()
        };
        let key = Key {
            kind: object.kind,
            namespace: namespace.to_owned(),
            name: object.name.clone(),
        };
        let wanted = crate::build::object::hash(object.value.to_string().as_bytes());
        if let Some(live) = live {
            check_owner(object, live)?;
            if covers(&object.value, live) || self.is_as_made(&key, wanted, object, live) {
                return Ok(Applied::Unchanged);
            }
        }
        let params = PatchParams::apply(MANAGER_OBJECTS).force();
        let value = pinned(object, live);
        let done = within(
            object,
            api.patch(&object.name, &params, &Patch::Apply(&value)),
        )
        .await?;
        let done = serde_json::to_value(done).expect("a dynamic object is plain JSON");
        let entry = Made {
            wanted,
            live: part_hash(&object.value, &done),
        };
        self.made
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key, entry);
        let applied = outcome(object, live);
        tracing::info!(kind = %object.kind, name = object.name, ?applied, "applied");
        Ok(applied)
    }

    fn is_as_made(&self, key: &Key, wanted: u64, object: &Object, live: &Value) -> bool {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.get(key).is_some_and(|made| {
            made.wanted == wanted && made.live == part_hash(&object.value, live)
        })
    }

    /// Deletes exactly the object with this UID; that it is gone already is no error.
    pub async fn delete(
        &self,
        namespace: &str,
        kind: Kind,
        name: &str,
        uid: &str,
        propagation: PropagationPolicy,
    ) -> Result<(), ApplyError> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: None,
            }),
            propagation_policy: Some(propagation),
            ..DeleteParams::default()
        };
        let object = Object {
            kind,
            name: name.to_owned(),
            value: Value::Null,
        };
        match within(&object, self.api(kind, namespace).delete(name, &params)).await {
            Ok(_) => {
                tracing::info!(%kind, name, uid, "deleted");
                self.forget(kind, namespace, name);
                Ok(())
            }
            Err(ApplyError::Api { source, .. }) if is_not_found(&source) => {
                self.forget(kind, namespace, name);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Forgets what was made of the objects of a cluster that is gone.
    pub fn forget_cluster(&self, namespace: &str, cluster: &str) {
        let prefix = format!("{cluster}-");
        self.made
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|key, _| key.namespace != namespace || !key.name.starts_with(&prefix));
    }

    fn forget(&self, kind: Kind, namespace: &str, name: &str) {
        let key = Key {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        self.made
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&key);
    }

    /// Changes a few fields of an object that somebody else made, as `manager`; the body is an
    /// apply configuration without kind and name.
    pub async fn apply_part(
        &self,
        namespace: &str,
        (kind, name): (Kind, &str),
        manager: &str,
        mut part: Value,
    ) -> Result<(), ApplyError> {
        let resource = kind.resource();
        if let Some(map) = part.as_object_mut() {
            map.insert("apiVersion".to_owned(), Value::String(resource.api_version));
            map.insert("kind".to_owned(), Value::String(resource.kind));
            let metadata = map.entry("metadata").or_insert_with(|| json!({}));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("name".to_owned(), Value::String(name.to_owned()));
            }
        }
        let object = Object {
            kind,
            name: name.to_owned(),
            value: part,
        };
        let params = PatchParams::apply(manager).force();
        let api = self.api(kind, namespace);
        within(
            &object,
            api.patch(name, &params, &Patch::Apply(&object.value)),
        )
        .await?;
        tracing::info!(%kind, name, manager, "patched");
        Ok(())
    }

    /// Writes the labels of a role and their epoch on a pod; `uid` is the pod that is meant.
    pub async fn label_role(
        &self,
        namespace: &str,
        pod: &str,
        uid: &str,
        labels: Value,
        annotations: Value,
    ) -> Result<(), ApplyError> {
        let part = json!({"metadata": {"uid": uid, "labels": labels, "annotations": annotations}});
        self.apply_part(namespace, (Kind::Pod, pod), MANAGER_ROUTING, part)
            .await
    }

    /// Merges `patch` into an object: for fields that are set once and belong to nobody, such as
    /// the size of a claim.
    pub async fn merge(
        &self,
        namespace: &str,
        kind: Kind,
        name: &str,
        patch: &Value,
    ) -> Result<(), ApplyError> {
        let object = Object {
            kind,
            name: name.to_owned(),
            value: Value::Null,
        };
        let params = PatchParams {
            field_manager: Some(MANAGER_OBJECTS.to_owned()),
            ..PatchParams::default()
        };
        let api = self.api(kind, namespace);
        within(&object, api.patch(name, &params, &Patch::Merge(patch))).await?;
        tracing::info!(%kind, name, "changed");
        Ok(())
    }
}

fn part_hash(wanted: &Value, live: &Value) -> u64 {
    crate::build::object::hash(projected(wanted, live).to_string().as_bytes())
}

fn outcome(object: &Object, live: Option<&Value>) -> Applied {
    let Some(live) = live else {
        return Applied::Created;
    };
    let hash = |value: &Value| {
        let pointer = "/metadata/annotations/rocketmq.rs~1applied-hash";
        value.pointer(pointer).cloned()
    };
    if hash(live) == hash(&object.value) {
        Applied::Corrected {
            field: difference(&object.value, live).unwrap_or_default(),
        }
    } else {
        Applied::Updated
    }
}

/// Refuses an object that is controlled by another owner than the one it was built for.
fn check_owner(object: &Object, live: &Value) -> Result<(), ApplyError> {
    let controller = |value: &Value| {
        let owners = value.pointer("/metadata/ownerReferences")?.as_array()?;
        let owner = owners
            .iter()
            .find(|owner| owner.get("controller") == Some(&Value::Bool(true)))?;
        let text = |key: &str| owner.get(key).and_then(Value::as_str).unwrap_or_default();
        Some((
            text("uid").to_owned(),
            format!("{} {}", text("kind"), text("name")),
        ))
    };
    let (Some((ours, _)), found) = (controller(&object.value), controller(live)) else {
        return Ok(());
    };
    let owner = match found {
        Some((theirs, _)) if theirs == ours => return Ok(()),
        Some((_, owner)) => owner,
        // Orphaned by a recreation of ours: adopted if it carries our mark.
        None if is_marked(live) => return Ok(()),
        None => "nobody".to_owned(),
    };
    Err(ApplyError::NotOurs {
        kind: object.kind,
        name: object.name.clone(),
        owner,
    })
}

fn is_marked(live: &Value) -> bool {
    live.pointer("/metadata/labels/app.kubernetes.io~1managed-by")
        .and_then(Value::as_str)
        == Some(crate::build::labels::MANAGED_BY)
}

/// A StatefulSet's claims can never be changed in place: those that are there stay in what is
/// sent. Growing disks is a step of its own.
fn pinned(object: &Object, live: Option<&Value>) -> Value {
    let mut value = object.value.clone();
    let at = "/spec/volumeClaimTemplates";
    if object.kind == Kind::StatefulSet
        && let Some(found) = live.and_then(|live| live.pointer(at))
        && let Some(place) = value.pointer_mut(at)
    {
        *place = projected(&place.clone(), found);
    }
    value
}

fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_not_found())
}

/// One call with its deadline.
async fn within<T>(
    object: &Object,
    call: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, ApplyError> {
    let (kind, name) = (object.kind, || object.name.clone());
    match tokio::time::timeout(DEADLINE, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(source)) => {
            tracing::debug!(%kind, name = object.name, class = ?class_of(&source), %source, "refused");
            Err(ApplyError::Api {
                kind,
                name: name(),
                source,
            })
        }
        Err(_) => Err(ApplyError::Deadline {
            kind,
            name: name(),
            seconds: DEADLINE.as_secs(),
        }),
    }
}
