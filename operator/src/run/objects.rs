//! What is built for each part of a cluster, beside what is there.
//!
//! **Invariant:** comparing and applying use the same objects, so that what is called the same is
//! never written. Only objects that carry the cluster's label and are owned by it are removed, by
//! UID; disks and pods are not objects of a part.

use super::context::{Context, ReconcileError};
use super::observe::pod_address;
use crate::apply::Applied;
use crate::build::{Build, GroupFacts, Kind, NAME_SERVER_PORT, Object};
use crate::observe::ObjectsState;
use crate::plan::Component;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::PropagationPolicy;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource as _, ResourceExt as _};
use rmq_operator_api::{AdvertisedFrom, BrokerGroup, ListenerType, RocketMQCluster};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The objects of one part as they shall be.
pub(crate) struct Part {
    pub(crate) objects: Vec<Object>,
    /// What is still to come before all of them can be built.
    pub(crate) missing: Option<String>,
    /// Names of all that shall be there; with something missing nothing is removed.
    owner: Option<OwnerReference>,
}

/// One cluster and where its objects are looked up.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a> {
    pub(crate) context: &'a Context,
    pub(crate) cluster: &'a RocketMQCluster,
}

impl<'a> Parts<'a> {
    pub(crate) fn build(self) -> Build<'a> {
        Build {
            cluster: self.cluster,
            site: &self.context.options.site,
        }
    }

    pub(crate) fn namespace(self) -> &'a str {
        self.cluster
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default()
    }

    /// Where a NameServer that brokers know as `name` can be asked: at its pod, so that the operator
    /// needs no name service for it. The error is why it cannot be asked.
    pub(crate) fn name_server_address(self, name: &str) -> Result<String, String> {
        let names = self.build().names();
        let own = self.cluster.spec.own_name_servers();
        let Some(ordinal) = (0..own).find(|at| names.name_server_address(*at) == name) else {
            return Ok(name.to_owned());
        };
        let pod = names.name_server_pod(ordinal);
        let at = ObjectRef::new(&pod).within(self.namespace());
        match self.context.stores.pods.get(&at) {
            Some(found) => pod_address(&found, NAME_SERVER_PORT),
            None => Err(format!("pod {pod} is not there")),
        }
    }

    /// The `BrokerGroup` of group `index` as it was last seen.
    pub(crate) fn group(self, index: i32) -> Option<BrokerGroup> {
        let name = self.build().names().group(index);
        let at = ObjectRef::new(&name).within(self.namespace());
        self.context
            .stores
            .groups
            .get(&at)?
            .0
            .as_ref()
            .ok()
            .cloned()
    }

    /// What shall be there. `drain` says that a group is being removed.
    pub(crate) fn wanted(self, component: Component, drain: bool) -> Part {
        let build = self.build();
        let own = self.cluster.controller_owner_ref(&());
        let Some(owner) = own else {
            return Part {
                objects: Vec::new(),
                missing: Some("the cluster has no UID".to_owned()),
                owner: None,
            };
        };
        let index = match component {
            Component::Shared => {
                return whole(build.shared_objects(&owner), owner);
            }
            Component::NameServers => {
                return whole(build.name_server_objects(&owner), owner);
            }
            Component::Group(index) => index,
        };
        let mut objects = vec![build.broker_group(index, drain, &owner)];
        let group = self
            .group(index)
            .filter(|group| group.metadata.deletion_timestamp.is_none());
        let Some(owner) = group.and_then(|group| group.controller_owner_ref(&())) else {
            return Part {
                objects,
                missing: Some(format!("BrokerGroup {}", build.names().group(index))),
                owner: None,
            };
        };
        objects.extend(build.group_services(index, &owner));
        let missing = match self.facts(index) {
            Ok(facts) => {
                objects.extend(build.group_workload(index, &owner, &facts));
                None
            }
            Err(missing) => Some(missing),
        };
        Part {
            objects,
            missing,
            owner: Some(owner),
        }
    }

    /// What only the running cluster knows of a group; the error is what is missing.
    pub(crate) fn facts(self, index: i32) -> Result<GroupFacts, String> {
        let mut facts = GroupFacts::default();
        let build = self.build();
        match build.advertised_from() {
            AdvertisedFrom::Service => {}
            AdvertisedFrom::Template => {
                for ordinal in 0..self.cluster.spec.members_per_group() {
                    let pod = build.names().broker_pod(index, ordinal);
                    let text = build.advertised_template(index, &pod);
                    facts.addresses.extend(text.map(|text| (pod, text)));
                }
                return Ok(facts);
            }
            AdvertisedFrom::PodIP | AdvertisedFrom::HostIP | AdvertisedFrom::Annotation => {
                return Ok(facts);
            }
        }
        let balanced = build
            .listener()
            .is_some_and(|listener| listener.kind == ListenerType::LoadBalancer);
        for ordinal in 0..self.cluster.spec.members_per_group() {
            let pod = build.names().broker_pod(index, ordinal);
            let at = ObjectRef::new(&pod).within(self.namespace());
            let service: Option<Arc<Service>> = self.context.stores.services.get(&at);
            let address = service.as_ref().and_then(|service| {
                if balanced {
                    balancer(service)
                } else {
                    cluster_ip(service)
                }
            });
            let Some(address) = address else {
                return Err(if balanced {
                    format!("the load balancer of Service {pod} has no address yet")
                } else {
                    format!("Service {pod} has no address yet")
                });
            };
            facts.addresses.insert(pod, address);
        }
        Ok(facts)
    }

    /// Compares what shall be there with what is.
    pub(crate) fn state(self, component: Component, drain: bool) -> ObjectsState {
        let part = self.wanted(component, drain);
        let mut state = if part.missing.is_some() {
            return ObjectsState::Missing;
        } else {
            ObjectsState::Same
        };
        for object in &part.objects {
            let live = self
                .context
                .stores
                .live(object.kind, self.namespace(), &object.name);
            match live {
                None => return ObjectsState::Missing,
                Some(live) => {
                    if !self.context.writer.is_same(self.namespace(), object, &live) {
                        state = ObjectsState::Differ;
                    }
                }
            }
        }
        if self.surplus(&part).next().is_some() {
            state = ObjectsState::Differ;
        }
        state
    }

    /// Applies what is missing or differs, and removes what nobody wants any more.
    pub(crate) async fn apply(
        self,
        component: Component,
        drain: bool,
    ) -> Result<usize, ReconcileError> {
        let part = self.wanted(component, drain);
        let about = self.cluster.object_ref(&());
        let mut writes = 0;
        for object in &part.objects {
            let applied = self
                .context
                .ensure(self.namespace(), object, &about)
                .await?;
            writes += usize::from(applied != Applied::Unchanged);
        }
        for (kind, name, uid) in self.surplus(&part).collect::<Vec<_>>() {
            let background = PropagationPolicy::Background;
            self.context
                .writer
                .delete(self.namespace(), kind, &name, &uid, background)
                .await?;
            writes += 1;
        }
        if let Some(missing) = part.missing {
            tracing::debug!(cluster = self.cluster.name_any(), %component, missing, "waits");
        }
        Ok(writes)
    }

    /// Objects of the part's owner that are not wanted. Objects of the cluster itself belong to two
    /// parts, so both count as wanted.
    fn surplus(self, part: &Part) -> impl Iterator<Item = (Kind, String, String)> + use<'a> {
        let mut wanted: BTreeSet<(Kind, String)> = part
            .objects
            .iter()
            .map(|object| (object.kind, object.name.clone()))
            .collect();
        let owner = part.owner.clone().filter(|_| part.missing.is_none());
        if let Some(owner) = &owner
            && self.cluster.uid().as_ref() == Some(&owner.uid)
        {
            let build = self.build();
            let all = build
                .shared_objects(owner)
                .into_iter()
                .chain(build.name_server_objects(owner));
            wanted.extend(all.map(|object| (object.kind, object.name)));
        }
        let (context, namespace) = (self.context, self.namespace());
        let name = self.cluster.name_any();
        Kind::MADE
            .into_iter()
            .filter(|kind| *kind != Kind::BrokerGroup)
            .flat_map(move |kind| {
                let found = context.stores.of_cluster(kind, namespace, &name);
                found.into_iter().map(move |found| (kind, found))
            })
            .filter(move |(kind, found)| {
                let ours = owner.as_ref().map(|owner| &owner.uid);
                found.owner.is_some()
                    && found.owner.as_ref() == ours
                    && !found.deleting
                    && !wanted.contains(&(*kind, found.name.clone()))
            })
            .map(|(kind, found)| (kind, found.name, found.uid))
    }
}

fn whole(objects: Vec<Object>, owner: OwnerReference) -> Part {
    Part {
        objects,
        missing: None,
        owner: Some(owner),
    }
}

fn cluster_ip(service: &Service) -> Option<String> {
    let ip = service.spec.as_ref()?.cluster_ip.as_ref()?;
    (!ip.is_empty() && ip != "None").then(|| ip.clone())
}

fn balancer(service: &Service) -> Option<String> {
    let status = service.status.as_ref()?.load_balancer.as_ref()?;
    let ingress = status.ingress.as_ref()?;
    ingress.iter().find_map(|ingress| ingress.ip.clone())
}
