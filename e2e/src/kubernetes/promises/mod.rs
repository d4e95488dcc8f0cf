//! The promises, in the order in which they are tried.
//!
//! **Invariant:** a promise leaves nothing behind that the next one could see, but for the operator
//! that they share.

mod deletion;
mod drift;
mod edits;
mod faults;
mod first_cluster;
mod image;
mod install;
mod isolation;
mod objects;
mod operators;
mod outside;
mod refusals;
mod refused_version;
mod rest;
mod scale;
mod two;

use super::Found;
use super::cluster::KubeCluster;

/// Something that is promised.
pub(super) struct Promise {
    /// A sentence.
    pub(super) name: &'static str,
    /// Numbers of the design's scenarios that it shows; none for what is not of that list.
    pub(super) scenarios: &'static [u8],
    /// Whether later ones need it: it is tried with each of them.
    pub(super) always: bool,
    /// Tries it.
    pub(super) check: fn(&KubeCluster) -> Found,
}

impl Promise {
    /// Its sentence, with the numbers of its scenarios.
    pub(super) fn title(&self) -> String {
        let numbers: Vec<String> = self.scenarios.iter().map(u8::to_string).collect();
        match numbers.as_slice() {
            [] => self.name.to_owned(),
            numbers => format!("[{}] {}", numbers.join(", "), self.name),
        }
    }
}

/// Every one.
pub(super) const ALL: &[Promise] = &[
    promise(
        &[],
        "nothing of a node leaves this computer",
        isolation::check,
    ),
    promise(
        &[],
        "the image runs as a NameServer without any right, and a client finds it by its name",
        image::check,
    ),
    Promise {
        always: true,
        ..promise(
            &[45],
            "helm installs the kinds and an operator, and helm test finds it at work",
            install::check,
        )
    },
    promise(
        &[3],
        "every wrong spec is refused with our words",
        refusals::check,
    ),
    promise(
        &[1],
        "three NameServers and two groups are Ready within a minute, and messages go through",
        first_cluster::whole,
    ),
    promise(
        &[2],
        "a manifest with nothing but a version becomes a cluster",
        first_cluster::minimal,
    ),
    promise(&[4], "a cluster at rest is not written", rest::check),
    promise(
        &[5],
        "what others delete or edit is put right within five seconds",
        drift::check,
    ),
    promise(
        &[6],
        "two clusters of one name in two namespaces do not see each other",
        two::check,
    ),
    promise(
        &[24],
        "NameServers grow from three to five and back, and no other pod changes",
        scale::name_servers,
    ),
    promise(
        &[26],
        "a group that is added knows every topic before it takes a send",
        scale::groups_out,
    ),
    promise(
        &[27],
        "a group that is taken away is emptied by its consumers first, and its disk stays",
        scale::groups_in,
    ),
    promise(
        &[18, 19],
        "a live key is applied in ten seconds without a restart, another one by a roll",
        edits::configuration,
    ),
    promise(
        &[16, 46],
        "an image that is missing is told within half a minute and stops the roll at one pod",
        edits::broken_image,
    ),
    promise(
        &[29],
        "a disk grows while its broker runs, and never shrinks",
        edits::disk,
    ),
    promise(&[36], "a paused cluster is not written", edits::pause),
    promise(
        &[17],
        "an older version is refused with its reason, and nothing is restarted",
        refused_version::check,
    ),
    promise(
        &[21],
        "a roll waits for a pod that is down, says so, and goes on by itself",
        faults::pod_down,
    ),
    promise(
        &[30],
        "a lost disk is told, and replaced when the user says so and not before",
        faults::disk_lost,
    ),
    promise(
        &[38],
        "topics and consumer groups follow their objects, on later groups too",
        objects::check,
    ),
    promise(
        &[44],
        "a client outside reaches a broker at the address it is told",
        outside::check,
    ),
    promise(
        &[39],
        "deleting a cluster waits for its name, keeps disks or not, and leaves nothing else",
        deletion::check,
    ),
    promise(
        &[40],
        "when the operator that works is killed, the other takes over",
        operators::leader_lost,
    ),
    promise(
        &[42, 45],
        "an operator that is uninstalled and installed again disturbs no cluster",
        operators::reinstalled,
    ),
    promise(
        &[41],
        "an API server that was away changes no pod, and edits are carried out when it is back",
        faults::api_server_away,
    ),
];

const fn promise(
    scenarios: &'static [u8],
    name: &'static str,
    check: fn(&KubeCluster) -> Found,
) -> Promise {
    Promise {
        name,
        scenarios,
        always: false,
        check,
    }
}
