//! What is there, as plain values.
//!
//! **Invariant:** nothing here asks anybody: shells fill these in, and what nobody answered is
//! [`Answer::Unknown`], never a guess or an empty list.

pub mod model;
pub mod model_pod;
pub mod model_volume;

pub use model::{
    Answer, Backlog, BrokerSeen, ClusterSeen, GroupSeen, NameServerView, NameServersSeen,
    ObjectsState, Observed, Risk, SetSeen, SyncStateSeen,
};
pub use model_pod::{PodSeen, RoleLabels, Stuck, StuckReason};
pub use model_volume::{VolumePhase, VolumeSeen};
