//! Maps whose keys are message queues: read from the key's JSON, which the lenient reader quoted.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};

use super::MessageQueue;

/// For `#[serde(deserialize_with)]`; the way out is `json::object_map`.
pub(super) fn read<'de, D, V>(deserializer: D) -> Result<BTreeMap<MessageQueue, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    deserializer.deserialize_map(QueueMap(PhantomData))
}

/// As [`read`], one level below text keys.
pub(super) fn read_nested<'de, D, V>(
    deserializer: D,
) -> Result<BTreeMap<String, BTreeMap<MessageQueue, V>>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    let outer = BTreeMap::<String, Inner<V>>::deserialize(deserializer)?;
    Ok(outer
        .into_iter()
        .map(|(key, inner)| (key, inner.0))
        .collect())
}

struct Inner<V>(BTreeMap<MessageQueue, V>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Inner<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer).map(Self)
    }
}

struct QueueMap<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for QueueMap<V> {
    type Value = BTreeMap<MessageQueue, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map with message queues as keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut table = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            let queue = serde_json::from_str(&key)
                .map_err(|fault| A::Error::custom(format_args!("key is no queue: {fault}")))?;
            table.insert(queue, map.next_value()?);
        }
        Ok(table)
    }
}
