//! Targets for what is read from bodies: JSON, its typed forms, compressed registrations, and the
//! properties text of configuration.
//!
//! **Invariant:** a target panics only where a promise of the reader is broken. It measures nothing.

use crate::{
    body::{
        CheckClientRequest, ClusterInfo, ConsumeStats, ConsumerConnection, ConsumerOffsets,
        ConsumerRunningInfo, ConsumerStatusBody, DataVersion, HeartbeatData, KvTable,
        LockBatchRequest, QueryAssignmentRequest, RegisterBrokerBody, ResetOffsetBody,
        SubscriptionGroupWrapper, TopicConfigWrapper, TopicList, TopicRouteData, TopicStatsTable,
    },
    java_properties,
    json::{self, JsonError},
};

/// What references may add to a text.
const REFERENCES_ADD_MAX: usize = 2 * 1024 * 1024;

/// Any text is refused or becomes text that is taken again, unchanged, and is not much longer.
pub fn fuzz_json(data: &[u8]) {
    let Ok(strict) = json::lenient(data) else {
        return;
    };
    assert!(
        strict.len() <= 2 * data.len() + REFERENCES_ADD_MAX,
        "output is bounded"
    );
    if serde_json::from_slice::<serde_json::Value>(&strict).is_ok() && !has_reference(&strict) {
        let again = json::lenient(&strict).expect("strict JSON is taken");
        assert_eq!(again, strict, "strict JSON comes back as it is");
    }
}

fn has_reference(text: &[u8]) -> bool {
    text.windows(6).any(|part| part == b"\"$ref\"")
}

/// Any text that reads as a body is written as text that reads as the same body.
pub fn fuzz_bodies(data: &[u8]) {
    fn trip<T: PartialEq + std::fmt::Debug>(
        data: &[u8],
        read: fn(&[u8]) -> Result<T, JsonError>,
        write: fn(&T) -> Vec<u8>,
    ) {
        if let Ok(body) = read(data) {
            let again = read(&write(&body));
            assert_eq!(
                again.ok().as_ref(),
                Some(&body),
                "a body survives writing and reading"
            );
        }
    }
    macro_rules! trips {
        ($($name:ident)+) => { $( trip(data, $name::from_json, $name::to_json); )+ };
    }
    trips! {
        CheckClientRequest ClusterInfo ConsumerConnection ConsumerOffsets ConsumerStatusBody
        DataVersion HeartbeatData KvTable LockBatchRequest QueryAssignmentRequest
        RegisterBrokerBody ResetOffsetBody SubscriptionGroupWrapper TopicConfigWrapper TopicList
        TopicRouteData
    }
    if let Ok(route) = TopicRouteData::from_json(data) {
        let again = TopicRouteData::from_json(&route.to_json_legacy());
        assert_eq!(again.ok(), Some(route), "a route survives its old form");
    }
    // Fractions may change in their last digit, so these are only read and written.
    let _ = ConsumeStats::from_json(data).map(|body| body.to_json());
    let _ = TopicStatsTable::from_json(data).map(|body| body.to_json());
    let _ = ConsumerRunningInfo::from_json(data);
}

/// Any bytes are refused or taken as a compressed registration, without inflating without end.
pub fn fuzz_registration(data: &[u8]) {
    let _ = RegisterBrokerBody::decode(data, true, 0, 479);
    let _ = RegisterBrokerBody::decode(data, false, 0, 0);
}

/// Any text is refused or reads as pairs that are written and read again the same.
pub fn fuzz_properties(data: &[u8]) {
    let Ok(pairs) = java_properties::parse(data) else {
        return;
    };
    let size: usize = pairs
        .iter()
        .map(|pair| pair.key.len() + pair.value.len())
        .sum();
    assert!(size <= data.len(), "output is bounded");
    let text = java_properties::write(pairs.iter().map(|pair| (&pair.key, &pair.value)));
    let again = java_properties::parse(text.as_bytes()).expect("our own text is taken");
    assert_eq!(again.len(), pairs.len());
    for (one, other) in again.iter().zip(&pairs) {
        assert_eq!((&one.key, &one.value), (&other.key, &other.value));
    }
}
