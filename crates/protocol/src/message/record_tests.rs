//! Tests of the record codec: round trips, cuts, flips and lengths that lie.

use proptest::prelude::*;

use super::*;
use crate::message::body_crc;

fn sample<'a>(topic: &'a str, body: &'a [u8], properties: &'a [u8]) -> Record<'a> {
    Record {
        body_crc: body_crc(body),
        queue_id: 3,
        flag: 9,
        queue_offset: 77,
        physical_offset: 4096,
        sys_flag: 0,
        born_at: 1_700_000_000_001,
        born_host: "10.0.0.1:50000".parse().unwrap(),
        stored_at: 1_700_000_000_002,
        store_host: "127.0.0.1:10911".parse().unwrap(),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body,
        topic,
        properties,
    }
}

fn encode(record: &Record<'_>) -> Vec<u8> {
    let mut bytes = vec![0; record.encoded_len()];
    assert_eq!(record.encode_into(&mut bytes), Ok(bytes.len()));
    bytes
}

#[test]
fn fields_stand_where_the_table_says() {
    let bytes = encode(&sample("T", b"hello", b"a\x011\x02"));
    assert_eq!(bytes.len(), 91 + 5 + 1 + 4);
    assert_eq!(bytes[4..8], 0xDAA3_20A7_u32.to_be_bytes());
    assert_eq!(bytes[8..12], 907_060_870_i32.to_be_bytes());
    assert_eq!(bytes[QUEUE_OFFSET_AT..28], 77_i64.to_be_bytes());
    assert_eq!(bytes[PHYSICAL_OFFSET_AT..36], 4096_i64.to_be_bytes());
    assert_eq!(bytes[48..56], [10, 0, 0, 1, 0, 0, 0xC3, 0x50]);
    assert_eq!(bytes[84..88], 5_i32.to_be_bytes());
    assert_eq!(&bytes[88..93], b"hello");
    assert_eq!(&bytes[93..95], b"\x01T");
    assert_eq!(&bytes[95..97], [0, 4]);
}

#[test]
fn topics_over_127_bytes_take_the_second_version() {
    let topic = "t".repeat(128);
    let bytes = encode(&sample(&topic, b"x", b""));
    assert_eq!(peek(&bytes).map(|(_, magic)| magic), Some(MAGIC_V2));
    assert_eq!(Record::decode(&bytes).unwrap().0.topic, topic);
}

#[test]
fn a_body_whose_crc_is_zero_is_sound() {
    let body = [0x9D, 0x0A, 0xD9, 0x6D];
    let bytes = encode(&sample("T", &body, b""));
    let (record, _) = Record::decode(&bytes).unwrap();
    assert_eq!(record.body_crc, 0);
    assert_eq!(record.verify_body(), Ok(()));
}

#[test]
fn properties_beyond_15_bits_are_refused() {
    let properties = vec![b'p'; 32_768];
    assert_eq!(
        sample("T", b"", &properties).check(),
        Err(EncodeError::PropertiesTooLong { bytes: 32_768 })
    );
    assert_eq!(sample("T", b"", &properties[1..]).check(), Ok(()));
}

#[test]
fn every_cut_is_an_error() {
    let bytes = encode(&sample("Topic", b"hello world", b"KEYS\x01k\x02"));
    for cut in 0..bytes.len() {
        assert!(Record::decode(&bytes[..cut]).is_err(), "{cut}");
    }
}

#[test]
fn a_flipped_body_byte_fails_its_crc() {
    let mut bytes = encode(&sample("Topic", b"hello world", b""));
    bytes[90] ^= 1;
    let (record, _) = Record::decode(&bytes).unwrap();
    assert!(matches!(record.verify_body(), Err(RecordError::Crc { .. })));
}

#[test]
fn lengths_that_lie_are_errors() {
    let bytes = encode(&sample("Topic", b"hello", b""));
    for (at, value) in [
        (0, i32::MAX),
        (0, -1),
        (0, 90),
        (84, -5),
        (84, i32::MAX),
        (84, 4),
    ] {
        let mut bad = bytes.clone();
        bad[at..at + 4].copy_from_slice(&value.to_be_bytes());
        assert!(Record::decode(&bad).is_err(), "{value} at {at}");
    }
}

proptest! {
    #[test]
    fn records_read_back(
        numbers in any::<(i32, i32, i64, i64, i32, i64, i64, i32, i64)>(),
        hosts in any::<(Option<[u8; 16]>, [u8; 4], u16, Option<[u8; 16]>, [u8; 4], u16)>(),
        topic in "[a-zA-Z0-9_%-]{1,200}",
        body in proptest::collection::vec(any::<u8>(), 0..300),
        properties in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let host = |v6: Option<[u8; 16]>, v4: [u8; 4], port| {
            SocketAddr::new(v6.map_or(IpAddr::from(v4), IpAddr::from), port)
        };
        let written = Record {
            queue_id: numbers.0,
            flag: numbers.1,
            queue_offset: numbers.2,
            physical_offset: numbers.3,
            sys_flag: numbers.4,
            born_at: numbers.5,
            stored_at: numbers.6,
            reconsume_times: numbers.7,
            prepared_transaction_offset: numbers.8,
            born_host: host(hosts.0, hosts.1, hosts.2),
            store_host: host(hosts.3, hosts.4, hosts.5),
            ..sample(&topic, &body, &properties)
        };
        let bytes = encode(&written);
        let (read, length) = Record::decode(&bytes).unwrap();
        prop_assert_eq!(length, bytes.len());
        prop_assert_eq!(read, Record { sys_flag: written.layout_flag(), ..written });
        prop_assert_eq!(read.verify_body(), Ok(()));
    }

    #[test]
    fn no_bytes_panic(start in proptest::bool::ANY, mut bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if start && bytes.len() >= 8 {
            let size = bytes.len() as i32;
            bytes[..4].copy_from_slice(&size.to_be_bytes());
            bytes[4..8].copy_from_slice(&MAGIC_V1.to_be_bytes());
        }
        let _ = Record::decode(&bytes);
    }
}
