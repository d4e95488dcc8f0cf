//! A disk as the plan sees it.
//!
//! **Invariant:** a disk that is lost is told apart from one that is not bound yet.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use rmq_operator_api::ByteQuantity;

/// A PersistentVolumeClaim of a broker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeSeen {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// Where it stands.
    pub phase: VolumePhase,
    /// What is asked for, bytes.
    pub requested: u64,
    /// What it has, bytes; 0 until it is bound.
    pub capacity: u64,
    /// Whether its class can grow it; unknown classes cannot be asked.
    pub expandable: Option<bool>,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// Where a disk stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum VolumePhase {
    /// Not bound yet.
    #[default]
    Pending,
    /// In use or ready for it.
    Bound,
    /// Its volume is gone.
    Lost,
}

impl VolumeSeen {
    /// From the object; `expandable` as its class says.
    #[must_use]
    pub fn of(claim: &PersistentVolumeClaim, expandable: Option<bool>) -> Self {
        let bytes = |text: Option<&String>| {
            text.and_then(|text| ByteQuantity::parse(text).ok())
                .map_or(0, |quantity| quantity.bytes())
        };
        let requests = claim
            .spec
            .as_ref()
            .and_then(|spec| spec.resources.as_ref())
            .and_then(|resources| resources.requests.as_ref());
        let status = claim.status.as_ref();
        Self {
            name: claim.metadata.name.clone().unwrap_or_default(),
            uid: claim.metadata.uid.clone().unwrap_or_default(),
            phase: match status.and_then(|s| s.phase.as_deref()) {
                Some("Bound") => VolumePhase::Bound,
                Some("Lost") => VolumePhase::Lost,
                _ => VolumePhase::Pending,
            },
            requested: bytes(requests.and_then(|r| r.get("storage")).map(|q| &q.0)),
            capacity: bytes(
                status
                    .and_then(|s| s.capacity.as_ref())
                    .and_then(|c| c.get("storage"))
                    .map(|q| &q.0),
            ),
            expandable,
            deleting: claim.metadata.deletion_timestamp.is_some(),
        }
    }

    /// Whether it still grows to what is asked for.
    #[must_use]
    pub const fn is_growing(&self) -> bool {
        self.capacity > 0 && self.capacity < self.requested
    }
}
