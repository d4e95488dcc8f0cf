//! Targets for what stands outside of headers: stored records, batch bodies, message properties, ids.
//!
//! **Invariant:** what was read is written again as bytes that read the same, and a reader takes no
//! more than there is.

use std::net::{IpAddr, SocketAddr};

use rmq_types::Timestamp;

use crate::message::{
    OffsetId, Record, UniqueId, UniqueIds, batch,
    properties::{self, names},
    record::{self, RECORD_BYTES_MIN},
};

/// Any bytes are refused or taken as records, one behind the other, that survive being written.
pub fn fuzz_records(data: &[u8]) {
    let mut rest = data;
    while let Ok((record, consumed)) = Record::decode(rest) {
        assert!((RECORD_BYTES_MIN..=rest.len()).contains(&consumed));
        let stated = record::peek(rest).map(|(size, _)| size as usize);
        assert_eq!(stated, Some(consumed), "the parts fill the stated size");
        let cut = Record::decode(&rest[..consumed - 1]);
        assert!(cut.is_err(), "a cut record is none");
        let _ = record.verify_body();
        let mut out = vec![0; record.encoded_len()];
        assert_eq!(record.encode_into(&mut out), Ok(out.len()));
        let again = Record::decode(&out).expect("our own record is taken");
        assert_eq!(again, (record, out.len()), "a record survives");
        fuzz_message_properties(record.properties);
        rest = &rest[consumed..];
    }
}

/// Any bytes are refused or taken as a batch whose messages, written again, are the same batch.
pub fn fuzz_batch(data: &[u8]) {
    let items: Vec<_> = batch::iter(data).collect();
    let whole = items.iter().flatten().count();
    assert!(items.len() <= whole + 1, "the first error ends it");
    let mut out = Vec::new();
    for item in items.iter().flatten() {
        assert!(batch::push(&mut out, item), "what was read fits");
        fuzz_message_properties(item.properties);
    }
    assert!(out.len() <= data.len(), "no more than there is");
    if items.iter().all(Result::is_ok) {
        assert_eq!(out.len(), data.len(), "the items fill the body");
    }
    let again = batch::iter(&out).map(|item| item.expect("our own batch is taken"));
    assert!(again.eq(items.into_iter().flatten()), "a batch survives");
}

/// Any bytes read as properties that are the same after being copied, and found by their names.
pub fn fuzz_message_properties(data: &[u8]) {
    let mut copy = Vec::new();
    properties::copy_without(data, &[], &mut copy);
    assert!(copy.len() <= data.len() + 1, "one separator may be added");
    assert!(properties::iter(&copy).eq(properties::iter(data)));
    for (name, value) in properties::iter(data) {
        assert!(!name.is_empty() && !value.is_empty());
        if let Ok(name) = std::str::from_utf8(name) {
            assert!(properties::get(data, name).is_some());
        }
    }
    let changed = properties::with(data, names::TAGS, b"tag");
    assert_eq!(properties::get(&changed, names::TAGS), Some(&b"tag"[..]));
    let count = properties::iter(data).count();
    assert!(properties::iter(&changed).count() <= count + 1);
    let _ = properties::tags_code(data);
    let keys: usize = properties::keys(data).map(str::len).sum();
    assert!(keys <= data.len());
}

/// Any text is refused as an id or is that id's text; an id of any bytes is read back.
pub fn fuzz_ids(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let upper = text.to_ascii_uppercase();
    if let Ok(id) = OffsetId::parse(&text) {
        assert_eq!(id.to_string(), upper);
    }
    if let Ok(id) = UniqueId::parse(&text) {
        let ids = UniqueIds::new(id.ip, u32::from(id.process), id.maker);
        let made = ids.make(Timestamp::from_millis(0));
        let prefix = upper.len() - 12;
        assert_eq!(made.get(..prefix), upper.get(..prefix));
        let _ = id.made_at(Timestamp::from_millis(i64::from(id.maker) << 10));
    }
    ids_of(data);
}

/// Ids made of any numbers are read back.
fn ids_of(data: &[u8]) {
    let parts = (|| {
        let (v4, rest) = data.split_first_chunk::<4>()?;
        let (low, rest) = rest.split_first_chunk::<2>()?;
        let (high, rest) = rest.split_first_chunk::<8>()?;
        let ip = match rest.first_chunk::<16>() {
            Some(v6) => IpAddr::from(*v6),
            None => IpAddr::from(*v4),
        };
        Some((ip, u16::from_be_bytes(*low), u64::from_be_bytes(*high)))
    })();
    let Some((ip, low, high)) = parts else {
        return;
    };
    let id = OffsetId {
        host: SocketAddr::new(ip, low),
        offset: (high >> 1) as i64,
    };
    assert_eq!(OffsetId::parse(&id.to_string()), Ok(id));
    let maker = high as u32;
    let ids = UniqueIds::new(ip, u32::from(low), maker);
    let now = Timestamp::from_millis((high >> 20) as i64);
    for count in 0..3 {
        let id = UniqueId::parse(&ids.make(now)).expect("our own id is taken");
        assert_eq!((id.ip, id.process, id.maker), (ip, low, maker));
        assert_eq!((id.counter, id.made_at(now)), (count, now));
    }
}
