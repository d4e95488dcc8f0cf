//! Status of our own kinds, written through the status subresource and only on change.
//!
//! **Invariant:** the whole status belongs to one field manager, so that a field that is left out
//! goes away; a status that is equal to the one last seen is not written.

use super::error::ApplyError;
use super::write::DEADLINE;
use kube::api::{Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt};
use rmq_operator_api::keys::MANAGER_STATUS;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Writes status.
pub struct StatusWriter {
    client: Client,
}

impl std::fmt::Debug for StatusWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StatusWriter").finish_non_exhaustive()
    }
}

impl StatusWriter {
    /// Writes through `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Writes `status` of `object` if it is not `old`; says whether it was written.
    pub async fn write<K, S>(
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
        let plain = |status: &S| {
            serde_json::to_value(status).expect("a status is plain JSON: its keys are texts")
        };
        let new = plain(status);
        if old.is_some_and(|old| plain(old) == new) {
            return Ok(false);
        }
        let name = object.name_any();
        let kind = || K::kind(&()).into_owned();
        let api: Api<K> =
            Api::namespaced(self.client.clone(), &object.namespace().unwrap_or_default());
        let body = body::<K>(object, &name, &new);
        let params = PatchParams::apply(MANAGER_STATUS).force();
        let patch = Patch::Apply(&body);
        let call = api.patch_status(&name, &params, &patch);
        match tokio::time::timeout(DEADLINE, call).await {
            Ok(Ok(_)) => Ok(true),
            Ok(Err(source)) => Err(ApplyError::Status {
                kind: kind(),
                name,
                source,
            }),
            Err(_) => Err(ApplyError::StatusDeadline {
                kind: kind(),
                name,
                seconds: DEADLINE.as_secs(),
            }),
        }
    }
}

/// With the UID, so that a status is never written onto an object that took the place of another.
fn body<K: Resource<DynamicType = ()>>(object: &K, name: &str, status: &Value) -> Value {
    let mut metadata = json!({"name": name});
    if let (Some(uid), Some(map)) = (object.meta().uid.as_ref(), metadata.as_object_mut()) {
        map.insert("uid".to_owned(), Value::String(uid.clone()));
    }
    json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": metadata,
        "status": status,
    })
}
