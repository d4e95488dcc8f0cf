//! Java keys that say where data lies, who may do what, or what survives a failure, and that this
//! broker takes with the values only that are true of it.
//!
//! To pass over such a key would start a broker that is empty, open or less durable than its file
//! says. **Invariant:** a value that is not true here is refused before anything is opened, and the
//! refusal says why and what to do. Keys that only tune something stand in `inert`.

use std::path::{Path, PathBuf};

use super::KeyError;

/// Where the one commit log lies below `storePathRootDir`.
const COMMIT_LOG_FOLDER: &str = "commitlog";
/// The one key whose value is compared with another key's.
pub(super) const COMMIT_LOG_KEY: &str = "storePathCommitLog";

/// A value that Java takes and that would be a false promise here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}={found}: {why}; {remedy}")]
pub struct RefusedValue {
    /// The key.
    pub key: &'static str,
    /// The first characters of its value.
    pub found: String,
    /// Why it is refused.
    pub why: String,
    /// What to do.
    pub remedy: String,
}

/// A key and the values that are true here.
struct Pinned {
    key: &'static str,
    /// Letters' case does not count.
    takes: &'static [&'static str],
    why: &'static str,
    remedy: &'static str,
}

/// Whether `key` is one of this file with a value that is true here. `Ok(false)`: not one of them.
pub(super) fn check(key: &str, value: &str) -> Result<bool, KeyError> {
    let Some(pinned) = PINNED.iter().find(|pinned| pinned.key == key) else {
        return Ok(false);
    };
    let value = value.trim();
    if pinned
        .takes
        .iter()
        .any(|taken| taken.eq_ignore_ascii_case(value))
    {
        return Ok(true);
    }
    Err(RefusedValue {
        key: pinned.key,
        found: shown(value),
        why: pinned.why.to_owned(),
        remedy: pinned.remedy.to_owned(),
    }
    .into())
}

/// All keys of this file.
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    PINNED
        .iter()
        .map(|pinned| pinned.key)
        .chain([COMMIT_LOG_KEY])
}

/// Whether the commit log that `value` names is the one below `root`, also through links.
pub(super) fn check_commit_log(value: &str, root: &Path) -> Result<(), RefusedValue> {
    let place = root.join(COMMIT_LOG_FOLDER);
    let named = Path::new(value.trim());
    if same(named, &place) {
        return Ok(());
    }
    Err(RefusedValue {
        key: COMMIT_LOG_KEY,
        found: shown(value),
        why: format!(
            "the log is read from {} only, and this broker would start without what is there",
            place.display()
        ),
        remedy: format!(
            "move or link the folder to {} (several folders: all their files into it) and remove \
             the key",
            place.display()
        ),
    })
}

fn same(a: &Path, b: &Path) -> bool {
    let full = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
    if full(a) == full(b) {
        return true;
    }
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

fn shown(value: &str) -> String {
    value.chars().take(200).collect()
}

const fn pin(
    key: &'static str,
    takes: &'static [&'static str],
    why: &'static str,
    remedy: &'static str,
) -> Pinned {
    Pinned {
        key,
        takes,
        why,
        remedy,
    }
}

const OFF: &[&str] = &["false"];
const ONE: &[&str] = &["1"];
const NONE: &[&str] = &[""];
const STAY: &str = "not there yet: remove the key or keep this broker on Java";
const OPEN: &str = "every client that reaches the port may do everything here";
const PLAIN: &str = "connections are not encrypted here";
const ALONE: &str = "there are no replicas here, so no message would be on a second one";
const ROCKS: &str = "what lies in RocksDB is not read here";
const NO_ACL: &str =
    "not there yet: keep strangers off the port and set false, or keep this broker on Java";
const NO_TLS: &str = "not there yet: encrypt in front of the broker and remove the key, or keep \
                      this broker on Java";
const NO_REPLICA: &str =
    "not there yet: set what a broker without replicas gives, or keep this broker on Java";

#[rustfmt::skip]
const PINNED: &[Pinned] = &[
    // Who may do what.
    pin("aclEnable", OFF, OPEN, NO_ACL),
    pin("authenticationEnabled", OFF, OPEN, NO_ACL),
    pin("authorizationEnabled", OFF, OPEN, NO_ACL),
    pin("useTLS", OFF, PLAIN, NO_TLS),
    pin("tlsEnable", OFF, PLAIN, NO_TLS),
    pin("tls.enable", OFF, PLAIN, NO_TLS),
    pin("tls.server.mode", &["disabled", "permissive"], PLAIN, NO_TLS),
    pin("tls.server.need.client.auth", &["none", "optional"], PLAIN, NO_TLS),
    // What survives a failure.
    pin("brokerRole", &["ASYNC_MASTER"], ALONE,
        "not there yet: set brokerRole=ASYNC_MASTER, or keep this broker on Java"),
    pin("enableControllerMode", OFF, "no controller is asked who is master here", STAY),
    pin("enableDLegerCommitLog", OFF, "the log is not agreed on with other brokers here", STAY),
    pin("duplicationEnable", OFF, "the log is not copied here", STAY),
    pin("enableSlaveActingMaster", OFF, "no replica takes over here", STAY),
    pin("inSyncReplicas", ONE, ALONE, NO_REPLICA),
    pin("minInSyncReplicas", ONE, ALONE, NO_REPLICA),
    pin("allAckInSyncStateSet", OFF, ALONE, NO_REPLICA),
    pin("cleanFileForciblyEnable", &["true"], "files go before their time when the disk is nearly full",
        "set diskSpaceCleanForciblyRatio=100 to keep them until it is full, and remove the key"),
    // Where data lies and in which form.
    pin("storeType", &["default"], ROCKS, STAY),
    pin("configManagerVersion", &["v1"], ROCKS, STAY),
    pin("popConsumerKVServiceEnable", OFF, ROCKS, STAY),
    pin("timerRocksDBEnable", OFF, ROCKS, STAY),
    pin("transRocksDBEnable", OFF, ROCKS, STAY),
    pin("readOnlyCommitLogStorePaths", NONE, "the log has one folder here, these would not be read",
        "move their files into <storePathRootDir>/commitlog and remove the key"),
    pin("messageStorePlugIn", NONE, "the plug-in, and what it keeps elsewhere, is not there", STAY),
    pin("enableConsumeQueueExt", OFF, "queue entries that point into consumequeue_ext are not understood here", STAY),
    pin("enableLmq", OFF, "light queues are not filled here: their consumers would get nothing", STAY),
    pin("enableMultiDispatch", OFF, "light queues are not filled here: their consumers would get nothing", STAY),
    pin("fetchNamesrvAddrByAddressServer", OFF, "the address server is not asked here",
        "name the NameServers in namesrvAddr and remove the key"),
];
