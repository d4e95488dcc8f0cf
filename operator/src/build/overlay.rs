//! What the manifest adds to the pods of a role.
//!
//! **Invariant:** an overlay adds; it cannot take away a label, a volume or a restriction that the
//! operator sets.

use super::pod::mount;
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, EmptyDirVolumeSource, HostPathVolumeSource, PodTemplateSpec,
    SecretVolumeSource, Volume,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use rmq_operator_api::{ExtraVolume, PodTemplate};

/// Adds `overlay` to `template`.
pub(super) fn apply(overlay: &PodTemplate, template: &mut PodTemplateSpec) {
    if let Some(metadata) = &mut template.metadata {
        for (own, more) in [
            (&mut metadata.labels, &overlay.labels),
            (&mut metadata.annotations, &overlay.annotations),
        ] {
            for (key, value) in more {
                own.get_or_insert_default()
                    .entry(key.clone())
                    .or_insert_with(|| value.clone());
            }
        }
    }
    let Some(spec) = &mut template.spec else {
        return;
    };
    if !overlay.node_selector.is_empty() {
        spec.node_selector
            .get_or_insert_default()
            .extend(overlay.node_selector.clone());
    }
    if !overlay.tolerations.is_empty() {
        spec.tolerations = Some(overlay.tolerations.clone());
    }
    if let Some(affinity) = &overlay.affinity {
        spec.affinity = Some(affinity.clone());
    }
    if !overlay.topology_spread_constraints.is_empty() {
        spec.topology_spread_constraints = Some(overlay.topology_spread_constraints.clone());
    }
    replace(
        &mut spec.priority_class_name,
        overlay.priority_class_name.as_ref(),
    );
    replace(
        &mut spec.runtime_class_name,
        overlay.runtime_class_name.as_ref(),
    );
    replace(&mut spec.scheduler_name, overlay.scheduler_name.as_ref());
    replace(
        &mut spec.service_account_name,
        overlay.service_account_name.as_ref(),
    );
    if overlay.host_network {
        spec.host_network = Some(true);
        spec.dns_policy = Some("ClusterFirstWithHostNet".to_owned());
    }
    for container in &mut spec.containers {
        let env = container.env.get_or_insert_default();
        for more in &overlay.env {
            if !env.iter().any(|own| own.name == more.name) {
                env.push(more.clone());
            }
        }
        container.volume_mounts.get_or_insert_default().extend(
            overlay
                .volumes
                .iter()
                .map(|extra| mount(&volume_name(extra), &extra.mount_path, extra.read_only)),
        );
    }
    spec.volumes
        .get_or_insert_default()
        .extend(overlay.volumes.iter().map(volume));
}

fn replace(own: &mut Option<String>, said: Option<&String>) {
    if let Some(said) = said {
        *own = Some(said.clone());
    }
}

/// Volumes of the manifest never meet the operator's own names.
fn volume_name(extra: &ExtraVolume) -> String {
    format!("x-{}", extra.name)
}

fn volume(extra: &ExtraVolume) -> Volume {
    let mut volume = Volume {
        name: volume_name(extra),
        ..Volume::default()
    };
    if let Some(name) = &extra.config_map {
        volume.config_map = Some(ConfigMapVolumeSource {
            name: name.clone(),
            ..ConfigMapVolumeSource::default()
        });
    } else if let Some(name) = &extra.secret {
        volume.secret = Some(SecretVolumeSource {
            secret_name: Some(name.clone()),
            ..SecretVolumeSource::default()
        });
    } else if let Some(path) = &extra.host_path {
        volume.host_path = Some(HostPathVolumeSource {
            path: path.clone(),
            ..HostPathVolumeSource::default()
        });
    } else {
        volume.empty_dir = Some(EmptyDirVolumeSource {
            size_limit: extra
                .empty_dir_size
                .as_ref()
                .map(|size| Quantity(size.to_string())),
            ..EmptyDirVolumeSource::default()
        });
    }
    volume
}
