//! The promises, in the order in which they are tried.
//!
//! **Invariant:** a promise leaves nothing behind that the next one could see, but for the operator
//! that they share.

mod deletion;
mod drift;
mod edits;
mod first_cluster;
mod image;
mod install;
mod isolation;
mod objects;
mod operators;
mod outside;
mod refusals;
mod rest;
mod scale;
mod two;

use super::Found;
use super::cluster::KubeCluster;

/// Something that is promised.
pub(super) struct Promise {
    /// A sentence.
    pub(super) name: &'static str,
    /// Whether later ones need it: it is tried with each of them.
    pub(super) always: bool,
    /// Tries it.
    pub(super) check: fn(&KubeCluster) -> Found,
}

/// Every one.
pub(super) const ALL: &[Promise] = &[
    promise("nothing of a node leaves this computer", isolation::check),
    promise(
        "the image runs as a NameServer without any right, and a client finds it by its name",
        image::check,
    ),
    Promise {
        always: true,
        ..promise(
            "helm installs the kinds and an operator, and helm test finds it at work",
            install::check,
        )
    },
    promise(
        "every wrong spec is refused with our words",
        refusals::check,
    ),
    promise(
        "three NameServers and two groups are Ready within a minute, and messages go through",
        first_cluster::whole,
    ),
    promise(
        "a manifest with nothing but a version becomes a cluster",
        first_cluster::minimal,
    ),
    promise("a cluster at rest is not written", rest::check),
    promise(
        "what others delete or edit is put right within five seconds",
        drift::check,
    ),
    promise(
        "two clusters of one name in two namespaces do not see each other",
        two::check,
    ),
    promise(
        "NameServers grow from three to five and back, and no other pod changes",
        scale::name_servers,
    ),
    promise(
        "a group that is added knows every topic before it takes a send",
        scale::groups_out,
    ),
    promise(
        "a group that is taken away is emptied by its consumers first, and its disk stays",
        scale::groups_in,
    ),
    promise(
        "a live key is applied in ten seconds without a restart, another one by a roll",
        edits::configuration,
    ),
    promise(
        "an image that is missing is told within half a minute and stops the roll at one pod",
        edits::broken_image,
    ),
    promise(
        "a disk grows while its broker runs, and never shrinks",
        edits::disk,
    ),
    promise("a paused cluster is not written", edits::pause),
    promise(
        "topics and consumer groups follow their objects, on later groups too",
        objects::check,
    ),
    promise(
        "a client outside reaches a broker at the address it is told",
        outside::check,
    ),
    promise(
        "deleting a cluster waits for its name, keeps disks or not, and leaves nothing else",
        deletion::check,
    ),
    promise(
        "when the operator that works is killed, the other takes over",
        operators::leader_lost,
    ),
    promise(
        "an operator that is uninstalled and installed again disturbs no cluster",
        operators::reinstalled,
    ),
];

const fn promise(name: &'static str, check: fn(&KubeCluster) -> Found) -> Promise {
    Promise {
        name,
        always: false,
        check,
    }
}
