//! Typed headers against pairs as clients write them.

use std::borrow::Cow;

use super::{
    DecodeHeader, EncodeHeader, FieldError, GetMaxOffset, PullMessage, SendMessageV2,
    UnregisterClient,
};
use crate::remoting::ExtFields;

fn fields(pairs: &[(&'static str, &'static str)]) -> ExtFields<'static> {
    let mut ext = ExtFields::new();
    for (key, value) in pairs {
        ext.push(*key, *value);
    }
    ext
}

const SEND: [(&str, &str); 8] = [
    ("a", "group"),
    ("b", "Topic"),
    ("c", "TBW102"),
    ("d", "4"),
    ("e", "-1"),
    ("f", "0"),
    ("g", "1700000000000"),
    ("h", "0"),
];

#[test]
fn a_send_header_reads_short_names_and_leaves_optional_fields_open() {
    let ext = fields(&SEND);
    let header = SendMessageV2::decode(&ext).unwrap();
    assert_eq!(header.topic, "Topic");
    assert_eq!(header.queue_id, -1);
    assert_eq!(header.properties, None);
    assert!(!header.batch);
}

#[test]
fn a_missing_required_field_is_named() {
    let ext = fields(&SEND[1..]);
    assert_eq!(SendMessageV2::decode(&ext), Err(FieldError::Missing("a")));
}

#[test]
fn a_number_that_is_none_is_named_with_what_stood_there() {
    for bad in ["abc", "", "99999999999999999999", "1.5"] {
        let mut ext = fields(&SEND);
        ext.push("e", bad);
        let error = SendMessageV2::decode(&ext).unwrap_err();
        assert!(matches!(&error, FieldError::Invalid { field: "e", found, .. } if found == bad));
    }
}

#[test]
fn numbers_of_every_length_up_to_their_bounds_are_read() {
    for (text, wanted) in [
        ("0", Some(0)),
        ("000000000007", Some(7)),
        ("+5", Some(5)),
        ("-2147483648", Some(i32::MIN)),
        ("999999999", Some(999_999_999)),
        ("2147483647", Some(i32::MAX)),
        ("2147483648", None),
        ("12a", None),
    ] {
        let mut ext = fields(&SEND);
        ext.push("e", text);
        let read = SendMessageV2::decode(&ext).map(|header| header.queue_id);
        assert_eq!(read.ok(), wanted, "{text}");
    }
    for number in [i64::MIN, i64::MAX, 999_999_999_999_999_999] {
        let mut ext = fields(&SEND);
        ext.push("g", number.to_string());
        assert_eq!(SendMessageV2::decode(&ext).unwrap().born_timestamp, number);
    }
}

#[test]
fn a_missing_boolean_takes_its_stated_default() {
    let ext = fields(&[("topic", "T"), ("queueId", "0")]);
    assert!(GetMaxOffset::decode(&ext).unwrap().committed);
}

#[test]
fn a_header_survives_being_written_and_read() {
    let header = UnregisterClient {
        client_id: Cow::Borrowed("c@1"),
        producer_group: None,
        consumer_group: Some(Cow::Borrowed("g")),
    };
    let mut ext = ExtFields::new();
    header.encode(&mut ext);
    assert_eq!(UnregisterClient::decode(&ext).unwrap(), header);
}

#[test]
fn no_fields_at_all_is_an_error_not_a_panic() {
    assert_eq!(
        PullMessage::decode(&ExtFields::new()),
        Err(FieldError::Missing("consumerGroup"))
    );
}
