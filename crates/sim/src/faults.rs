//! What goes wrong, and when.
//!
//! **Invariant:** everything that is broken by a seed is mended three quarters through the run, so
//! that the last part shows whether the cluster comes back by itself.

use crate::{net::Node, rng::Rng};

/// Something that goes wrong, or is mended. Nodes 0 to 2 are controllers, 3 to 5 brokers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process ends, without a word to itself; peers see connections closed.
    Kill(Node),
    /// The process of whoever is master ends.
    KillMaster,
    /// The computer of a broker loses power: peers see nothing, unsynced bytes may be gone.
    PowerCut(Node),
    /// The next broker that cuts its log is killed so many milliseconds later.
    KillAfterCut(u64),
    /// The process is started.
    Start(Node),
    /// The process stands still for so many milliseconds.
    Pause(Node, u64),
    /// The master's process stands still for so many milliseconds.
    PauseMaster(u64),
    /// Two nodes do not reach each other.
    Cut(Node, Node),
    /// The first node does not reach the second.
    CutOneWay(Node, Node),
    /// A node reaches nobody.
    Isolate(Node),
    /// The master reaches nobody.
    IsolateMaster,
    /// The master and one replica reach only each other.
    IsolateMasterWithOne,
    /// The master reaches its replicas and no controller.
    IsolateMasterFromControllers,
    /// Every replication link breaks.
    ResetLinks,
    /// Somebody wants this broker to be master; the present one may be fenced for some milliseconds.
    Switchover {
        /// 1 to 3.
        broker: u64,
        /// How long the present master takes no writes.
        fence: Option<u64>,
    },
    /// The network is whole again.
    Heal,
    /// Every process that is down is started, the network is whole.
    MendAll,
    /// From here on everything should work.
    CalmFrom,
}

/// Faults for a run of so many milliseconds.
pub(crate) fn seeded(rng: &mut Rng, millis: u64) -> Vec<(u64, Fault)> {
    let mend_at = millis * 3 / 4;
    let mut faults = Vec::new();
    let mut at = rng.between(3000, 8000);
    let mut power_cuts = 0;
    if rng.one_in(2) {
        faults.push((at, Fault::KillAfterCut(rng.between(0, 60))));
    }
    while at < mend_at {
        let node = rng.between(0, 5) as usize;
        let broker = rng.between(3, 5) as usize;
        let pause = rng.between(200, 12_000);
        let back = at + rng.between(100, 9000);
        let fault = match rng.between(0, 19) {
            0 => Fault::Kill(node),
            1 => Fault::Kill(broker),
            2 | 3 => Fault::KillMaster,
            4 if power_cuts == 0 => {
                power_cuts += 1;
                Fault::PowerCut(broker)
            }
            4 | 5 => Fault::Pause(node, pause),
            6 | 7 => Fault::PauseMaster(pause),
            8 => Fault::Cut(node, broker),
            9 => Fault::CutOneWay(node, broker),
            10 => Fault::Isolate(node),
            11 => Fault::IsolateMaster,
            12 => Fault::IsolateMasterWithOne,
            13 => Fault::IsolateMasterFromControllers,
            14 => Fault::ResetLinks,
            15..=18 => Fault::Switchover {
                broker: rng.between(1, 3),
                fence: rng.one_in(2).then(|| rng.between(100, 5000)),
            },
            _ => Fault::MendAll,
        };
        let mends = if rng.one_in(2) {
            Fault::MendAll
        } else {
            Fault::Heal
        };
        faults.push((at, fault));
        faults.push((back.min(mend_at), mends));
        at += rng.between(100, 6000);
    }
    faults.push((mend_at, Fault::MendAll));
    faults.push((millis.saturating_sub(5000), Fault::CalmFrom));
    faults
}
