//! Topics that a group may not read although its settings let it consume (`forbiddenTable`).
//!
//! Kept inside the table of groups, as in Java: one file, one version. Bits that mean nothing here
//! stay as they are.

use std::collections::BTreeMap;

use rmq_protocol::body::SubscriptionGroupConfig;
use rmq_types::Timestamp;

use super::{files::PersistError, table::ConfigTable};

/// Bit of "may not read" (`1 << PermName.INDEX_PERM_READ`).
const UNREADABLE: i32 = 4;

/// Group, then topic: bits.
pub(crate) type Bits = BTreeMap<String, BTreeMap<String, i32>>;

impl ConfigTable<SubscriptionGroupConfig> {
    /// The whole table.
    #[must_use]
    pub(crate) fn forbidden(&self) -> Bits {
        self.with_extra(Bits::clone)
    }

    /// Whether a group may not read a topic.
    #[must_use]
    pub(crate) fn is_unreadable(&self, group: &str, topic: &str) -> bool {
        self.with_extra(|bits| {
            let found = bits.get(group).and_then(|topics| topics.get(topic));
            found.is_some_and(|bits| bits & UNREADABLE != 0)
        })
    }

    /// Forbids or allows reading; waits for the disk.
    pub(crate) fn set_readable(
        &self,
        (group, topic): (&str, &str),
        readable: bool,
        now: Timestamp,
    ) -> Result<(), PersistError> {
        let change = |bits: &mut Bits| {
            let topics = bits.entry(group.to_owned()).or_default();
            let entry = topics.entry(topic.to_owned()).or_default();
            *entry = if readable {
                *entry & !UNREADABLE
            } else {
                *entry | UNREADABLE
            };
            topics.retain(|_, bits| *bits != 0);
            bits.retain(|_, topics| !topics.is_empty());
        };
        self.change_extra(change, now)
    }

    /// Forgets what was forbidden to a group; waits for the disk if anything was.
    pub(crate) fn allow_all(&self, group: &str, now: Timestamp) -> Result<(), PersistError> {
        let change = |bits: &mut Bits| {
            bits.remove(group);
        };
        self.change_extra(change, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Groups = ConfigTable<SubscriptionGroupConfig>;
    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    #[test]
    fn what_is_forbidden_stays_so_over_a_restart_until_it_is_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let table = Groups::open(folder.path()).unwrap();
        table.set_readable(("g", "t"), false, NOW).unwrap();
        assert!(table.is_unreadable("g", "t"));
        assert!(!table.is_unreadable("g", "u"));
        drop(table);
        // Once from the journal, once from the file.
        for _ in 0..2 {
            let table = Groups::open(folder.path()).unwrap();
            assert!(table.is_unreadable("g", "t"));
            table.compact().unwrap();
        }
        let table = Groups::open(folder.path()).unwrap();
        table.set_readable(("g", "t"), true, NOW).unwrap();
        assert!(table.forbidden().is_empty());
    }

    #[test]
    fn a_change_of_a_group_keeps_what_is_forbidden_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"{"forbiddenTable":{"g":{"t":4,"u":1}}}"#;
        std::fs::write(folder.path().join("subscriptionGroup.json"), text).unwrap();
        let table = Groups::open(folder.path()).unwrap();
        let group = SubscriptionGroupConfig::named("g");
        table.put(vec![group], NOW).unwrap();
        table.compact().unwrap();
        let table = Groups::open(folder.path()).unwrap();
        assert!(table.is_unreadable("g", "t") && !table.is_unreadable("g", "u"));
        assert_eq!(table.forbidden()["g"]["u"], 1);
    }
}
