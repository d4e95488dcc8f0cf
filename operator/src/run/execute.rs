//! Carrying out a step.
//!
//! **Invariant:** every step may be taken twice, by two operators, or on top of a step that was cut
//! off anywhere: deletions name a UID, labels name an epoch, and what was sent is read back before
//! it counts. A step that cannot be taken is told; the next look decides again.

use super::context::{Context, ReconcileError, key};
use super::finalize;
use super::objects::Parts;
use super::observe::pod_address;
use crate::build::Kind;
use crate::build::config::{READ_ONLY, READ_WRITE};
use crate::observe::Observed;
use crate::observe::model::KEY_PERMISSION;
use crate::plan::{Component, Desired, Step};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::PropagationPolicy;
use kube::runtime::reflector::ObjectRef;
use rmq_admin::{AdminClient, AskError, ConfigMap};
use rmq_operator_api::keys::{ANNOTATION_ROLE_EPOCH, LABEL_IN_SYNC, LABEL_READABLE, LABEL_ROLE};
use rmq_operator_api::{DrainPhase, DrainStatus};
use rmq_types::{BrokerName, ClusterName, NameError};
use serde_json::json;
use std::collections::BTreeMap;

/// Why a step was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    /// The API server.
    #[error(transparent)]
    Reconcile(#[from] ReconcileError),
    /// A broker or NameServer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// A part that must be asked is not there.
    #[error("{0}")]
    NotThere(String),
    /// What was sent is not in force.
    #[error("{address} says {key} is {found:?} after it was set to {wanted:?}")]
    NotTaken {
        /// Who was asked.
        address: String,
        /// The key.
        key: String,
        /// What was sent.
        wanted: String,
        /// What it says.
        found: Option<String>,
    },
    /// A name of the manifest is none of RocketMQ.
    #[error(transparent)]
    Name(#[from] NameError),
}

/// Takes steps for one cluster.
pub(crate) struct Hands<'a> {
    pub(crate) parts: Parts<'a>,
    pub(crate) desired: &'a Desired,
    pub(crate) observed: &'a Observed,
}

impl<'a> Hands<'a> {
    fn context(&self) -> &'a Context {
        self.parts.context
    }

    fn admin(&self) -> AdminClient {
        let addresses = &self.desired.name_servers.addresses;
        self.context().admin.of(&key(self.parts.cluster), addresses)
    }

    /// Takes one step.
    pub(crate) async fn take(&self, step: &Step) -> Result<(), StepError> {
        let parts = self.parts;
        match step {
            Step::AddFinalizer => Ok(finalize::add(self.context(), parts.cluster).await?),
            Step::RemoveFinalizer => {
                finalize::release(self.context(), parts.cluster).await?;
                self.context().forget(parts.cluster);
                Ok(())
            }
            Step::Apply { component } => {
                let drain = matches!(component, Component::Group(index)
                    if !self.desired.groups.contains_key(index));
                parts.apply(*component, drain).await?;
                Ok(())
            }
            Step::PushNameServerConfig { address, keys } => {
                self.push_name_server(address, keys).await
            }
            Step::PushBrokerConfig {
                group,
                ordinal,
                keys,
            } => self.push_config(*group, *ordinal, keys).await,
            Step::CopyMetadata { from, to } => self.copy_metadata(*from, *to).await,
            Step::OpenGroup { group, ordinal } => self.permit(*group, *ordinal, READ_WRITE).await,
            Step::CloseGroup { group, ordinal } => self.permit(*group, *ordinal, READ_ONLY).await,
            Step::LabelPod { .. } => self.label(step).await,
            Step::RestartPod { pod, uid, .. } => self.delete(Kind::Pod, pod, uid).await,
            Step::GrowVolume { claim, bytes, .. } => self.grow(claim, *bytes).await,
            Step::RecreateSet { group, uid } => {
                let name = parts.build().names().group(*group);
                self.delete_with(Kind::StatefulSet, &name, uid, PropagationPolicy::Orphan)
                    .await
            }
            Step::ReplaceVolume { claim, pod, .. } => {
                if let Some((name, uid)) = claim {
                    self.delete(Kind::PersistentVolumeClaim, name, uid).await?;
                }
                if let Some((name, uid)) = pod {
                    self.delete(Kind::Pod, name, uid).await?;
                }
                Ok(())
            }
            Step::MarkDrained { group } => self.mark_drained(*group).await,
            Step::StopGroup { group, uid } => {
                let name = parts.build().names().group(*group);
                self.delete(Kind::StatefulSet, &name, uid).await
            }
            Step::Unregister {
                group,
                broker_name,
                from,
            } => self.unregister(*group, broker_name, from).await,
            Step::DeleteVolume { claim, uid, .. } => {
                self.delete(Kind::PersistentVolumeClaim, claim, uid).await
            }
            Step::RemoveGroup { group } => self.remove(*group).await,
        }
    }

    async fn delete(&self, kind: Kind, name: &str, uid: &str) -> Result<(), StepError> {
        self.delete_with(kind, name, uid, PropagationPolicy::Background)
            .await
    }

    async fn delete_with(
        &self,
        kind: Kind,
        name: &str,
        uid: &str,
        how: PropagationPolicy,
    ) -> Result<(), StepError> {
        let writer = &self.context().writer;
        let namespace = self.parts.namespace();
        writer
            .delete(namespace, kind, name, uid, how)
            .await
            .map_err(ReconcileError::from)?;
        self.context().metrics.wrote(&kind.to_string());
        Ok(())
    }

    /// Where the broker of a pod listens now.
    fn broker_address(&self, group: i32, ordinal: i32) -> Result<String, StepError> {
        let build = self.parts.build();
        let name = build.names().broker_pod(group, ordinal);
        let at = ObjectRef::new(&name).within(self.parts.namespace());
        let pod = self.context().stores.pods.get(&at);
        let pod = pod.ok_or_else(|| StepError::NotThere(format!("pod {name} is not there")))?;
        pod_address(&pod, build.broker_port(group))
            .map_err(|reason| StepError::NotThere(format!("pod {name}: {reason}")))
    }

    fn name_server(&self, name: &str) -> Result<String, StepError> {
        self.parts
            .name_server_address(name)
            .map_err(|reason| StepError::NotThere(format!("NameServer {name}: {reason}")))
    }

    async fn push_broker(
        &self,
        group: i32,
        ordinal: i32,
        keys: &ConfigMap,
    ) -> Result<(), StepError> {
        let address = self.broker_address(group, ordinal)?;
        let admin = self.admin();
        admin.set_broker_config(&address, keys).await?;
        read_back(&address, keys, &admin.broker_config(&address).await?)
    }

    /// Sends keys; those that the broker refuses are remembered one by one.
    async fn push_config(
        &self,
        group: i32,
        ordinal: i32,
        keys: &ConfigMap,
    ) -> Result<(), StepError> {
        let refused = match self.push_broker(group, ordinal, keys).await {
            Err(StepError::Ask(error)) if error.code().is_some() => error,
            other => return other,
        };
        let pod = self.parts.build().names().broker_pod(group, ordinal);
        let uid = self
            .observed
            .groups
            .get(&group)
            .and_then(|seen| seen.pod(ordinal))
            .map(|pod| pod.uid.clone())
            .unwrap_or_default();
        let mut last = refused;
        for (key, value) in keys {
            let one = BTreeMap::from([(key.clone(), value.clone())]);
            match self.push_broker(group, ordinal, &one).await {
                Err(StepError::Ask(error)) if error.code().is_some() => {
                    tracing::warn!(pod, key, %error, "refused");
                    self.context().reject(&uid, key, value);
                    last = error;
                }
                other => other?,
            }
        }
        Err(last.into())
    }

    async fn push_name_server(&self, address: &str, keys: &ConfigMap) -> Result<(), StepError> {
        let admin = self.admin();
        let at = self.name_server(address)?;
        admin.set_name_server_config(&at, keys).await?;
        read_back(address, keys, &admin.name_server_config(&at).await?)
    }

    async fn permit(&self, group: i32, ordinal: i32, value: &str) -> Result<(), StepError> {
        let keys = BTreeMap::from([(KEY_PERMISSION.to_owned(), value.to_owned())]);
        self.push_broker(group, ordinal, &keys).await
    }

    async fn copy_metadata(&self, from: i32, to: i32) -> Result<(), StepError> {
        let admin = self.admin();
        let cluster = self.parts.cluster.cluster_name();
        let of = |group: i32| -> Result<_, StepError> {
            let master = self
                .observed
                .groups
                .get(&group)
                .and_then(crate::observe::GroupSeen::master);
            let ordinal = master.ok_or_else(|| {
                StepError::NotThere(format!("group {group} has no master that answers"))
            })?;
            let name = self.parts.build().names().broker_name(group);
            Ok((self.broker_address(group, ordinal)?, name))
        };
        let ((source, source_name), (target, target_name)) = (of(from)?, of(to)?);
        let (all, has) = tokio::try_join!(
            admin.metadata(&source, cluster, &source_name),
            admin.metadata(&target, cluster, &target_name)
        )?;
        let copied = admin.copy_metadata(&target, &has, &all).await?;
        tracing::info!(from, to, copied, "copied topics and consumer groups");
        Ok(())
    }

    async fn label(&self, step: &Step) -> Result<(), StepError> {
        let Step::LabelPod {
            pod,
            uid,
            role,
            in_sync,
            readable,
            epoch,
            ..
        } = step
        else {
            return Ok(());
        };
        let labels = json!({
            LABEL_ROLE: role,
            LABEL_IN_SYNC: in_sync.to_string(),
            LABEL_READABLE: readable.to_string(),
        });
        let annotations = json!({ANNOTATION_ROLE_EPOCH: epoch.to_string()});
        let context = self.context();
        context
            .writer
            .label_role(self.parts.namespace(), pod, uid, labels, annotations)
            .await
            .map_err(ReconcileError::from)?;
        context.metrics.wrote("Pod");
        Ok(())
    }

    async fn grow(&self, claim: &str, bytes: u64) -> Result<(), StepError> {
        let patch = json!({"spec": {"resources": {"requests": {"storage": bytes.to_string()}}}});
        let context = self.context();
        context
            .writer
            .merge(
                self.parts.namespace(),
                Kind::PersistentVolumeClaim,
                claim,
                &patch,
            )
            .await
            .map_err(ReconcileError::from)?;
        context.metrics.wrote("PersistentVolumeClaim");
        Ok(())
    }

    async fn unregister(
        &self,
        group: i32,
        broker_name: &str,
        from: &[String],
    ) -> Result<(), StepError> {
        let admin = self.admin();
        let cluster = ClusterName::parse(self.parts.cluster.cluster_name())?;
        let broker = BrokerName::parse(broker_name)?;
        tracing::info!(group, broker_name, "unregisters");
        for address in from {
            let address = &self.name_server(address)?;
            let info = admin.cluster_info_at(address).await?;
            let members = info.broker_addr_table.get(broker_name);
            for (id, at) in members.into_iter().flat_map(|data| &data.broker_addrs) {
                admin
                    .unregister_broker(address, &cluster, &broker, (*id, at))
                    .await?;
            }
        }
        Ok(())
    }

    /// Before anything of a group goes, its status says so: whoever looks next goes on from there.
    async fn mark_drained(&self, group: i32) -> Result<(), StepError> {
        let Some(object) = self.parts.group(group) else {
            return Ok(());
        };
        let mut status = object.status.clone().unwrap_or_default();
        let since = status.drain.as_ref().map(|drain| drain.since.clone());
        let now = || {
            let second = Timestamp::now().as_second();
            Time(Timestamp::from_second(second).unwrap_or_default())
        };
        status.drain = Some(DrainStatus {
            phase: DrainPhase::Drained,
            since: since.unwrap_or_else(now),
            remaining_messages: Some(0),
            slowest_group: None,
        });
        self.context()
            .write_status(&object, object.status.as_ref(), &status)
            .await
            .map_err(ReconcileError::from)?;
        Ok(())
    }

    /// Everything of a group belongs to its `BrokerGroup` and is collected after it.
    async fn remove(&self, group: i32) -> Result<(), StepError> {
        let Some(object) = self.parts.group(group) else {
            return Ok(());
        };
        let uid = object.uid().unwrap_or_default();
        self.delete(Kind::BrokerGroup, &object.name_any(), &uid)
            .await
    }
}

fn read_back(address: &str, wanted: &ConfigMap, found: &ConfigMap) -> Result<(), StepError> {
    for (key, value) in wanted {
        let now = found.get(key);
        if now.map(|now| now.trim()) != Some(value.trim()) {
            return Err(StepError::NotTaken {
                address: address.to_owned(),
                key: key.clone(),
                wanted: value.clone(),
                found: now.cloned(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_not_in_force_afterwards_is_told() {
        let map = |value: &str| ConfigMap::from([("k".to_owned(), value.to_owned())]);
        assert!(read_back("a:1", &map("1"), &map(" 1")).is_ok());
        let error = read_back("a:1", &map("1"), &map("2")).unwrap_err();
        assert!(error.to_string().contains("k is Some(\"2\")"), "{error}");
        assert!(read_back("a:1", &map("1"), &ConfigMap::new()).is_err());
    }
}
