//! Controllers over loopback with real files, in one process.
//!
//! **Invariant:** ports are free ones, waiting is for conditions, and no test judges by time.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the rig of tests fails where it stands"
)]

mod life;
mod lost_disk;
mod rig;
