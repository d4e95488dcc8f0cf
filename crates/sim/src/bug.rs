//! Faults that are planted on purpose, to show that the checker finds them.
//!
//! **Invariant:** without a bug, no code of this crate changes what a machine says.

/// A planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A master counts by the set it asked for before the controllers have it.
    AckBeforeSetChange,
    /// A master never loses its lease.
    NoLeaseCheck,
    /// A cut log is only cut in memory: what lay behind comes back with the next start.
    CutInMemoryOnly,
    /// Any living replica may be elected.
    ElectOutsideSet,
    /// The set shrinks to the new master with each election, and nothing is remembered.
    ResetSetOnElection,
}

impl Bug {
    /// The ones that every run of the tests must find.
    pub const PLANTED: [Self; 5] = [
        Self::AckBeforeSetChange,
        Self::NoLeaseCheck,
        Self::CutInMemoryOnly,
        Self::ElectOutsideSet,
        Self::ResetSetOnElection,
    ];
}
