//! The controllers' configuration that is set over the network (requests 1009, 1010).
//!
//! **Invariant:** the keys are a closed list and every value is checked against the others before
//! one is stored: a lease always ends more than a second before its master is held for lost.

use std::collections::BTreeMap;

use crate::{
    command::AckPolicy,
    outcome::{Outcome, Refusal},
    state::State,
};

/// How values of a key look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Bool,
    /// Milliseconds, at least and at most.
    Millis(u64, u64),
    Ack,
}

/// Every key: name, form, default. The first four are Java's, with Java's defaults where they are
/// safe.
const KEYS: &[(&str, Form, &str)] = &[
    (
        "scanNotActiveBrokerInterval",
        Form::Millis(100, 60_000),
        "5000",
    ),
    (
        "scanInactiveMasterInterval",
        Form::Millis(100, 60_000),
        "5000",
    ),
    ("enableElectUncleanMaster", Form::Bool, "false"),
    ("notifyBrokerRoleChanged", Form::Bool, "true"),
    ("masterLeaseMillis", Form::Millis(200, 60_000), "3000"),
    ("masterDetectMillis", Form::Millis(500, 120_000), "5000"),
    (
        "closedConnectionGraceMillis",
        Form::Millis(0, 60_000),
        "300",
    ),
    ("replicaTimeoutMillis", Form::Millis(500, 120_000), "10000"),
    ("replicationAck", Form::Ack, "AllInSync"),
];
/// Keys of Java that reach the file system or the quorum: never over the network.
const FORBIDDEN: &[&str] = &[
    "configBlackList",
    "configStorePath",
    "controllerStorePath",
    "rocketmqHome",
    "controllerDLegerPeers",
    "controllerDLegerSelfId",
    "controllerDLegerGroup",
    "jRaftInitConf",
    "jRaftServerId",
];
/// Between the end of a lease and the moment its master is held for lost.
const LEASE_MARGIN_MILLIS: u64 = 1000;

/// The settings in force, read from the stored values and the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a confirmed heartbeat lets a master take writes, from its sending.
    pub lease_millis: u64,
    /// Silence after which a master is held for lost.
    pub detect_millis: u64,
    /// Time between a master's closed connection and the election, where fewer than a quorum
    /// acknowledge.
    pub grace_millis: u64,
    /// Silence after which a replica is not alive, unless its heartbeat says otherwise.
    pub replica_timeout_millis: u64,
    /// How masters acknowledge from the next election on.
    pub ack: AckPolicy,
    /// Java's switch for elections that may lose messages. Here it only lets somebody acknowledge
    /// one; it never starts one by itself.
    pub unclean_allowed: bool,
    /// Whether brokers are told of a new master at once (1008).
    pub notify: bool,
}

impl Default for Settings {
    fn default() -> Self {
        settings(&BTreeMap::new())
    }
}

/// The settings in force in `state`.
#[must_use]
pub fn settings_of(state: &State) -> Settings {
    settings(&state.config)
}

/// Every key with the value in force, for the answer to 1010.
#[must_use]
pub fn config_in_force(state: &State) -> BTreeMap<String, String> {
    let keys = KEYS.iter().map(|(key, _, default)| {
        let stored = state.config.get(*key).cloned();
        let value = stored.unwrap_or_else(|| (*default).to_owned());
        ((*key).to_owned(), value)
    });
    keys.collect()
}

fn settings(stored: &BTreeMap<String, String>) -> Settings {
    let text = |name: &str| {
        let default = KEYS.iter().find(|(key, _, _)| *key == name);
        let default = default.map_or("", |(_, _, default)| *default);
        stored.get(name).map_or(default, String::as_str)
    };
    // Stored values were checked; the fallbacks are never reached.
    let millis = |name: &str| text(name).parse().unwrap_or(5000);
    Settings {
        lease_millis: millis("masterLeaseMillis"),
        detect_millis: millis("masterDetectMillis"),
        grace_millis: millis("closedConnectionGraceMillis"),
        replica_timeout_millis: millis("replicaTimeoutMillis"),
        ack: parse_ack(text("replicationAck")).unwrap_or_default(),
        unclean_allowed: text("enableElectUncleanMaster") == "true",
        notify: text("notifyBrokerRoleChanged") == "true",
    }
}

fn parse_ack(text: &str) -> Option<AckPolicy> {
    match text {
        "Async" => Some(AckPolicy::Async),
        "AllInSync" => Some(AckPolicy::AllInSync),
        _ => {
            let acks = text.strip_prefix("Quorum:")?.parse().ok()?;
            (2..=64).contains(&acks).then_some(AckPolicy::Quorum(acks))
        }
    }
}

pub(crate) fn set(
    state: &mut State,
    values: &BTreeMap<String, String>,
) -> Result<Outcome, Refusal> {
    let mut wanted = state.config.clone();
    for (key, value) in values {
        if FORBIDDEN.contains(&key.as_str()) {
            return Err(Refusal::KeyForbidden(key.chars().take(64).collect()));
        }
        let known = KEYS.iter().find(|(name, _, _)| name == key);
        let Some((name, form, _)) = known else {
            let key: String = key.chars().take(64).collect();
            return Err(Refusal::ConfigInvalid(format!("{key} is not a known key")));
        };
        check(name, *form, value)?;
        wanted.insert(key.clone(), value.clone());
    }
    let settings = settings(&wanted);
    let least = settings.lease_millis.saturating_add(LEASE_MARGIN_MILLIS);
    if settings.detect_millis < least {
        return Err(Refusal::ConfigInvalid(format!(
            "masterDetectMillis must be at least masterLeaseMillis + {LEASE_MARGIN_MILLIS} = {least}"
        )));
    }
    state.config = wanted;
    Ok(Outcome::ConfigSet)
}

fn check(name: &str, form: Form, value: &str) -> Result<(), Refusal> {
    let expected = match form {
        Form::Bool if matches!(value, "true" | "false") => return Ok(()),
        Form::Bool => "true or false".to_owned(),
        Form::Millis(least, most) => {
            let millis: Option<u64> = value.parse().ok();
            if millis.is_some_and(|millis| (least..=most).contains(&millis)) {
                return Ok(());
            }
            format!("milliseconds from {least} to {most}")
        }
        Form::Ack if parse_ack(value).is_some() => return Ok(()),
        Form::Ack => "Async, AllInSync or Quorum:<2 to 64>".to_owned(),
    };
    Err(Refusal::ConfigInvalid(format!("{name} must be {expected}")))
}
