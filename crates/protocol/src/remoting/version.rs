//! Version numbers: positions in Java's `MQVersion`, which requests and answers carry.
//!
//! **Invariant:** a number has one name, and the names are Java's. Numbers are no measure of what a
//! broker can do: only the thresholds below change behaviour.

use std::borrow::Cow;

/// The version our servers and clients advertise: `V5_5_0`.
///
/// The release whose classes the fixtures of this crate come from. Nothing in the clients, tools,
/// NameServer or broker of 5.5.0 tells versions from 5.3.1 on apart, and older tools have the name.
pub const VERSION: i32 = 513;
/// From here on a client reads standard JSON in route answers (`V4_9_4`).
pub const VERSION_STANDARD_JSON: i32 = 401;
/// From here on `maxReconsumeTimes` of a request counts (`V3_4_9`).
pub const VERSION_MAX_RECONSUME: i32 = 121;

/// `V4_0_0_SNAPSHOT`: from here on every version has a snapshot and a release, ten to a minor.
const V4_0_0_SNAPSHOT: i32 = 212;
/// `V3_3_1_SNAPSHOT`: until 4.0 versions of a minor were counted from 1.
const V3_3_1_SNAPSHOT: i32 = 86;
/// The last of the table.
const HIGHER_VERSION: i32 = 612;

/// Java's name of a version, such as `V5_5_0`; numbers behind the table are `HIGHER_VERSION`.
/// Those before 3.3.1 (of 2014), which follow no rule, are `V3_` with their number.
#[must_use]
pub fn version_name(version: i32) -> Cow<'static, str> {
    let version = version.max(0);
    let (major, minor, patch, odd) = if version >= HIGHER_VERSION {
        return "HIGHER_VERSION".into();
    } else if version >= V4_0_0_SNAPSHOT {
        let place = version - V4_0_0_SNAPSHOT;
        (
            4 + place / 200,
            place % 200 / 20,
            place % 20 / 2,
            place % 2 == 1,
        )
    } else if version >= V3_3_1_SNAPSHOT {
        let place = version - V3_3_1_SNAPSHOT;
        (3, 3 + place / 18, 1 + place % 18 / 2, place % 2 == 1)
    } else {
        return format!("V3_{version}").into();
    };
    let snapshot = if odd { "" } else { "_SNAPSHOT" };
    format!("V{major}_{minor}_{patch}{snapshot}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As printed by `MQVersion.Version.values()` of the official 5.5.0 jar.
    #[test]
    fn names_are_those_of_javas_table() {
        for (version, name) in [
            (86, "V3_3_1_SNAPSHOT"),
            (103, "V3_3_9"),
            (121, "V3_4_9"),
            (211, "V3_9_9"),
            (212, "V4_0_0_SNAPSHOT"),
            (213, "V4_0_0"),
            (399, "V4_9_3"),
            (401, "V4_9_4"),
            (413, "V5_0_0"),
            (475, "V5_3_1"),
            (479, "V5_3_3"),
            (480, "V5_3_4_SNAPSHOT"),
            (VERSION, "V5_5_0"),
            (611, "V5_9_9"),
            (612, "HIGHER_VERSION"),
            (i32::MAX, "HIGHER_VERSION"),
        ] {
            assert_eq!(version_name(version), name, "{version}");
        }
        assert_eq!(version_name(-1), "V3_0");
    }
}
