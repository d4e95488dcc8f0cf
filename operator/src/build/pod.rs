//! What the pods of every role have in common: rights taken away, probes, volumes, placement.
//!
//! **Invariant:** no pod runs as root, can write its image, gains a right, or gets a token of the
//! API server. Liveness asks the process about itself only. A start may take as long as reading the
//! data takes: the start probe counts progress, not a delay.

use super::labels::Component;
use super::{Build, HTTP_PORT, HTTP_PORT_NAME};
use k8s_openapi::api::core::v1::{
    Affinity, Capabilities, ConfigMapVolumeSource, Container, ContainerPort, EnvVar, EnvVarSource,
    HTTPGetAction, LocalObjectReference, ObjectFieldSelector, PodAffinityTerm, PodAntiAffinity,
    PodSecurityContext, PodSpec, Probe, ResourceRequirements, SeccompProfile, SecurityContext,
    TopologySpreadConstraint, Volume, VolumeMount, WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use rmq_operator_api::{Identity, ResourceAmounts, ResourcesSpec};
use std::collections::BTreeMap;

/// User and group of every process, unless the manifest names others.
const USER: i64 = 65_532;
/// Where a pod's configuration files stand.
pub(super) const CONFIG_DIR: &str = "/etc/rocketmq";
/// Where a pod's data stands.
pub(super) const DATA_DIR: &str = "/var/lib/rocketmq";
/// Volume of [`CONFIG_DIR`].
const CONFIG: &str = "config";
/// Volume of [`DATA_DIR`], and template of the claims.
pub(super) const DATA: &str = "data";
/// Most seconds a start may take: reading the data of a large broker after a crash.
const START_SECONDS_MAX: i32 = 3600;

/// What one role's pod is.
pub(super) struct Pod {
    /// The role.
    pub component: Component,
    /// Its group, for brokers.
    pub group: Option<i32>,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Names and numbers of ports besides the health page.
    pub ports: Vec<(&'static str, i32)>,
    /// What is set aside when the manifest does not say: processor and memory.
    pub requests: [(&'static str, &'static str); 2],
    /// What the manifest says.
    pub resources: Option<ResourcesSpec>,
    /// Name of the ConfigMap.
    pub config_map: String,
    /// ServiceAccount it runs under.
    pub account: String,
    /// Seconds it may take to stop.
    pub grace_seconds: i64,
}

impl Build<'_> {
    /// The pod without volumes of data and without the overlay of the manifest.
    pub(super) fn pod_spec(&self, pod: &Pod, identity: Option<&Identity>) -> PodSpec {
        let image = self.cluster.spec.image.clone().unwrap_or_default();
        let secrets: Vec<_> = image
            .pull_secrets
            .into_iter()
            .map(|name| LocalObjectReference { name })
            .collect();
        PodSpec {
            affinity: Some(self.affinity(pod)),
            automount_service_account_token: Some(false),
            containers: vec![self.container(pod, image.pull_policy.as_str())],
            // Without this every Service of the namespace would stand in the environment.
            enable_service_links: Some(false),
            image_pull_secrets: (!secrets.is_empty()).then_some(secrets),
            security_context: Some(security_of_pod(identity)),
            service_account_name: Some(pod.account.clone()),
            termination_grace_period_seconds: Some(pod.grace_seconds),
            topology_spread_constraints: self.spread(pod),
            volumes: Some(vec![Volume {
                name: CONFIG.to_owned(),
                config_map: Some(ConfigMapVolumeSource {
                    name: pod.config_map.clone(),
                    ..ConfigMapVolumeSource::default()
                }),
                ..Volume::default()
            }]),
            ..PodSpec::default()
        }
    }

    fn container(&self, pod: &Pod, pull_policy: &str) -> Container {
        let mut ports = pod.ports.clone();
        ports.push((HTTP_PORT_NAME, HTTP_PORT));
        Container {
            name: pod.component.as_str().to_owned(),
            image: Some(self.image()),
            image_pull_policy: Some(pull_policy.to_owned()),
            args: Some(pod.args.clone()),
            env: Some(environment()),
            ports: Some(
                ports
                    .into_iter()
                    .map(|(name, number)| ContainerPort {
                        name: Some(name.to_owned()),
                        container_port: number,
                        protocol: Some("TCP".to_owned()),
                        ..ContainerPort::default()
                    })
                    .collect(),
            ),
            startup_probe: Some(probe("/startupz", 1, 3, START_SECONDS_MAX)),
            readiness_probe: Some(probe("/readyz", 2, 3, 2)),
            liveness_probe: Some(probe("/livez", 10, 5, 6)),
            resources: Some(resources(pod)),
            security_context: Some(SecurityContext {
                allow_privilege_escalation: Some(false),
                capabilities: Some(Capabilities {
                    drop: Some(vec!["ALL".to_owned()]),
                    ..Capabilities::default()
                }),
                read_only_root_filesystem: Some(true),
                ..SecurityContext::default()
            }),
            volume_mounts: Some(vec![
                mount(CONFIG, CONFIG_DIR, true),
                mount(DATA, DATA_DIR, false),
            ]),
            ..Container::default()
        }
    }

    fn affinity(&self, pod: &Pod) -> Affinity {
        let placement = &self.cluster.spec.brokers.placement;
        let term = PodAffinityTerm {
            label_selector: Some(self.matching(pod)),
            topology_key: placement.topology_key.clone(),
            ..PodAffinityTerm::default()
        };
        let required = pod.component == Component::Broker
            && placement.anti_affinity == rmq_operator_api::AntiAffinity::Required;
        let mut apart = PodAntiAffinity::default();
        if required {
            apart.required_during_scheduling_ignored_during_execution = Some(vec![term]);
        } else {
            apart.preferred_during_scheduling_ignored_during_execution =
                Some(vec![WeightedPodAffinityTerm {
                    weight: 100,
                    pod_affinity_term: term,
                }]);
        }
        Affinity {
            pod_anti_affinity: Some(apart),
            ..Affinity::default()
        }
    }

    fn spread(&self, pod: &Pod) -> Option<Vec<TopologySpreadConstraint>> {
        self.cluster.spec.brokers.placement.spread_zones.then(|| {
            vec![TopologySpreadConstraint {
                label_selector: Some(self.matching(pod)),
                max_skew: 1,
                topology_key: "topology.kubernetes.io/zone".to_owned(),
                when_unsatisfiable: "ScheduleAnyway".to_owned(),
                ..TopologySpreadConstraint::default()
            }]
        })
    }

    fn matching(&self, pod: &Pod) -> LabelSelector {
        LabelSelector {
            match_labels: Some(self.selector(pod.component, pod.group)),
            ..LabelSelector::default()
        }
    }
}

fn security_of_pod(identity: Option<&Identity>) -> PodSecurityContext {
    let (user, group) = identity.map_or((USER, USER), |identity| (identity.user, identity.group));
    PodSecurityContext {
        fs_group: Some(group),
        fs_group_change_policy: Some("OnRootMismatch".to_owned()),
        run_as_group: Some(group),
        run_as_non_root: Some(true),
        run_as_user: Some(user),
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            ..SeccompProfile::default()
        }),
        ..PodSecurityContext::default()
    }
}

/// The pod's own facts, for arguments such as `$(POD_NAME)`.
fn environment() -> Vec<EnvVar> {
    [
        ("POD_NAME", "metadata.name"),
        ("POD_NAMESPACE", "metadata.namespace"),
        ("POD_IP", "status.podIP"),
        ("HOST_IP", "status.hostIP"),
    ]
    .into_iter()
    .map(|(name, path)| EnvVar {
        name: name.to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                api_version: Some("v1".to_owned()),
                field_path: path.to_owned(),
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    })
    .collect()
}

fn probe(path: &str, period: i32, timeout: i32, failures: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String(HTTP_PORT_NAME.to_owned()),
            scheme: Some("HTTP".to_owned()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period),
        timeout_seconds: Some(timeout),
        failure_threshold: Some(failures),
        ..Probe::default()
    }
}

fn resources(pod: &Pod) -> ResourceRequirements {
    let said = pod.resources.clone().unwrap_or_default();
    let mut requests: BTreeMap<_, _> = pod
        .requests
        .into_iter()
        .map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())))
        .collect();
    let limits = amounts(said.limits.as_ref());
    // What the manifest limits without a request must not be below what is asked by default.
    for (name, amount) in &limits {
        requests.insert(name.clone(), amount.clone());
    }
    requests.extend(amounts(said.requests.as_ref()));
    ResourceRequirements {
        limits: (!limits.is_empty()).then_some(limits),
        requests: Some(requests),
        ..ResourceRequirements::default()
    }
}

fn amounts(said: Option<&ResourceAmounts>) -> BTreeMap<String, Quantity> {
    let Some(said) = said else {
        return BTreeMap::new();
    };
    let text = |quantity: Option<String>| quantity.map(Quantity);
    [
        ("cpu", text(said.cpu.as_ref().map(ToString::to_string))),
        (
            "memory",
            text(said.memory.as_ref().map(ToString::to_string)),
        ),
        (
            "ephemeral-storage",
            text(said.ephemeral_storage.as_ref().map(ToString::to_string)),
        ),
    ]
    .into_iter()
    .filter_map(|(name, amount)| Some((name.to_owned(), amount?)))
    .collect()
}

pub(super) fn mount(volume: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: volume.to_owned(),
        mount_path: path.to_owned(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    }
}
