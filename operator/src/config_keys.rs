//! What a change of a configuration key takes in a running cluster.
//!
//! **Invariant:** whether a key is Live or needs a restart is the programs' own answer, handed in;
//! here stand only the keys that this operator itself sets and those that the first start fixes.

use rmq_operator_api::{owned_broker_key, owned_name_server_key};

/// What a change of a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyChange {
    /// It is sent to the running program and read back.
    Live,
    /// The program starts again; the key enters the hash of the pod template.
    Restart,
    /// Another field of the manifest or the operator sets it.
    Forbidden,
    /// What is on the disk was made with it: it cannot change afterwards.
    ImmutableAfterInit,
    /// It has no effect: a key of the Java program alone.
    Inert,
}

/// Keys by which files are laid out. A broker whose disk was made with one value cannot read it with
/// another.
const FIXED_BY_FIRST_START: &[&str] = &[
    "mappedFileSizeCommitLog",
    "mappedFileSizeConsumeQueue",
    "maxHashSlotNum",
    "maxIndexNum",
];

/// What a change of a key of `broker.conf` takes. `program` is what the broker's own table says:
/// `Some(true)` Live, `Some(false)` restart, `None` no such key.
#[must_use]
pub fn broker(key: &str, program: Option<bool>) -> KeyChange {
    if owned_broker_key(key).is_some() {
        KeyChange::Forbidden
    } else if FIXED_BY_FIRST_START.contains(&key) {
        KeyChange::ImmutableAfterInit
    } else {
        by_program(program)
    }
}

/// As [`broker`], of `namesrv.conf`.
#[must_use]
pub fn name_server(key: &str, program: Option<bool>) -> KeyChange {
    if owned_name_server_key(key).is_some() {
        KeyChange::Forbidden
    } else {
        by_program(program)
    }
}

const fn by_program(program: Option<bool>) -> KeyChange {
    match program {
        Some(true) => KeyChange::Live,
        Some(false) => KeyChange::Restart,
        None => KeyChange::Inert,
    }
}

/// Keys that a running cluster cannot change, of those that differ between two manifests' maps.
pub fn fixed_changes<'a>(
    old: &'a std::collections::BTreeMap<String, String>,
    new: &'a std::collections::BTreeMap<String, String>,
) -> impl Iterator<Item = &'static str> + 'a {
    FIXED_BY_FIRST_START
        .iter()
        .copied()
        .filter(|key| old.get(*key) != new.get(*key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn what_the_operator_sets_is_forbidden_whatever_the_program_says() {
        for key in [
            "brokerPermission",
            "namesrvAddr",
            "brokerId",
            "storePathRootDir",
        ] {
            assert_eq!(broker(key, Some(true)), KeyChange::Forbidden, "{key}");
        }
        assert_eq!(name_server("listenPort", Some(false)), KeyChange::Forbidden);
    }

    #[test]
    fn the_layout_of_files_is_fixed_by_the_first_start() {
        assert_eq!(
            broker("mappedFileSizeCommitLog", Some(false)),
            KeyChange::ImmutableAfterInit
        );
        let map = |value: &str| {
            BTreeMap::from([("mappedFileSizeCommitLog".to_owned(), value.to_owned())])
        };
        let (old, new) = (map("1"), map("2"));
        assert_eq!(
            fixed_changes(&old, &new).collect::<Vec<_>>(),
            ["mappedFileSizeCommitLog"]
        );
        assert_eq!(fixed_changes(&old, &old).count(), 0);
    }

    #[test]
    fn all_else_is_what_the_program_says() {
        assert_eq!(broker("fileReservedTime", Some(true)), KeyChange::Live);
        assert_eq!(broker("messageDelayLevel", Some(false)), KeyChange::Restart);
        assert_eq!(broker("sendMessageThreadPoolNums", None), KeyChange::Inert);
        assert_eq!(
            name_server("orderMessageEnable", Some(true)),
            KeyChange::Live
        );
    }
}
