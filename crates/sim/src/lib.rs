//! A whole cluster in one thread: three controllers, one group of three brokers, a network and disks
//! that fail, driven by the pure cores of the product and by one seed.
//!
//! [`run`] gives the same [`Report`] for the same [`Plan`]; a plan that fails is printed by whoever
//! runs it and can be run again. Development only.
//!
//! **Invariant:** nothing here decides what a machine must decide; the code between machines is what
//! a real shell does, and faults come from the seed alone.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod broker;
mod bug;
mod checker;
mod controller;
mod disk;
mod faults;
mod link;
mod net;
mod quorum;
mod rng;
mod shell;
mod world;

pub use bug::Bug;
pub use checker::Violation;
pub use faults::Fault;
use rmq_controller_fsm::AckPolicy;
use rmq_types::BrokerId;

/// Nodes: controllers 0 to 2, then brokers 1 to 3.
pub(crate) fn node_of(broker: BrokerId) -> usize {
    quorum::CONTROLLERS - 1 + broker.get() as usize
}

/// What a run is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Decides everything that is not said here.
    pub seed: u64,
    /// How the group acknowledges.
    pub ack: AckPolicy,
    /// Simulated milliseconds.
    pub millis: u64,
    /// Faults at set times; `None` draws them from the seed.
    pub faults: Option<Vec<(u64, Fault)>>,
    /// A bug to plant.
    pub bug: Option<Bug>,
}

impl Plan {
    /// A minute with faults from the seed.
    #[must_use]
    pub fn seeded(seed: u64, ack: AckPolicy) -> Self {
        Self {
            seed,
            ack,
            millis: 60_000,
            faults: None,
            bug: None,
        }
    }
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The first broken promise.
    pub violation: Option<Violation>,
    /// Messages that were acknowledged.
    pub acknowledged: u64,
    /// Masters that there were.
    pub promotions: u64,
    /// When the last message was acknowledged.
    pub last_acknowledged_at: u64,
    /// How things stand at the end.
    pub standing: String,
    /// A digest of everything that happened, in order.
    pub trace: u64,
}

/// Runs a plan.
#[must_use]
pub fn run(plan: &Plan) -> Report {
    world::World::new(plan.clone()).run()
}
