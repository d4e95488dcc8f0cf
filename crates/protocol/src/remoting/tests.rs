//! Frames and headers: what Java writes, what it takes, and what must be refused.

use bytes::BytesMut;
use proptest::prelude::*;

use super::*;

fn split_one(bytes: &[u8]) -> RawFrame<'_> {
    match split_frame(bytes, 1 << 24).unwrap() {
        Split::Frame { frame, consumed } => {
            assert_eq!(consumed, bytes.len());
            frame
        }
        Split::Incomplete { needed } => panic!("incomplete, needs {needed}"),
    }
}

fn json(text: &str) -> Result<Header<'_>, HeaderError> {
    Header::decode(Serializer::Json, text.as_bytes())
}

#[test]
fn a_plain_response_is_written_as_java_writes_it() {
    let mut command = Command::response(7, 0);
    command.version = 0;
    let mut out = BytesMut::new();
    command.encode(Serializer::Json, &mut out);
    let frame = split_one(&out);
    assert_eq!(
        std::str::from_utf8(frame.header).unwrap(),
        r#"{"code":0,"flag":1,"language":"JAVA","opaque":7,"serializeTypeCurrentRPC":"JSON","version":0}"#
    );
}

#[test]
fn the_response_writer_and_the_command_agree_on_every_byte() {
    let mut direct = BytesMut::new();
    let mut writer = ResponseWriter::new(&mut direct, 12, 19);
    writer
        .text("msgId", "A\u{1}\"")
        .number("queueOffset", i64::MIN);
    writer.finish(Some("FOUND"), [&b"ab"[..], b"c"]);
    let mut indirect = BytesMut::new();
    Command::response(12, 19)
        .with_remark("FOUND")
        .with_ext("msgId", "A\u{1}\"")
        .with_ext("queueOffset", i64::MIN.to_string())
        .with_body(&b"abc"[..])
        .encode(Serializer::Json, &mut indirect);
    assert_eq!(direct, indirect);
}

#[test]
fn length_words_out_of_bounds_are_refused_before_anything_is_read() {
    for length in [0i32, 1, 2, 3] {
        assert_eq!(
            split_frame(&length.to_be_bytes(), 1024).unwrap_err(),
            FrameError::TooShort(length)
        );
    }
    for word in [0x8000_0000u32, 0xFFFF_FFFF, 1025, 0x5045_5420] {
        assert!(matches!(
            split_frame(&word.to_be_bytes(), 1024),
            Err(FrameError::TooLong { .. })
        ));
    }
}

#[test]
fn a_header_longer_than_its_frame_is_refused_with_the_eighth_byte() {
    for header in [0x00FF_FFFFu32, 17] {
        let mut bytes = 20u32.to_be_bytes().to_vec();
        bytes.extend(header.to_be_bytes());
        assert!(matches!(
            split_frame(&bytes, 1024),
            Err(FrameError::HeaderTooLong { .. })
        ));
    }
}

#[test]
fn an_unknown_serializer_is_refused() {
    let bytes = [0, 0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(
        split_frame(&bytes, 1024).unwrap_err(),
        FrameError::UnknownSerializer(2)
    );
}

#[test]
fn an_empty_header_is_no_header() {
    assert!(json("").is_err());
    assert!(Header::decode(Serializer::Binary, b"").is_err());
}

#[test]
fn headers_are_taken_with_space_any_order_unknown_keys_and_scalars() {
    let header = json(
        r#" { "version" : 401, "extFields" : { "n" : 5, "b" : true, "gone" : null, "t":"x" },
            "unknown" : [ { "deep" : "]}" } ], "code" : "105", "opaque" : -3, "language":"go" } "#,
    )
    .unwrap();
    assert_eq!((header.code, header.opaque, header.version), (105, -3, 401));
    assert_eq!(header.language, Language::Go);
    assert_eq!(
        header.ext.iter().collect::<Vec<_>>(),
        [("n", "5"), ("b", "true"), ("t", "x")]
    );
}

#[test]
fn languages_nobody_knows_are_other() {
    for text in ["\"XYZ\"", "200", "null", "-1"] {
        let text = format!(r#"{{"code":1,"language":{text}}}"#);
        assert_eq!(json(&text).unwrap().language, Language::Other);
    }
    assert_eq!(
        json(r#"{"language":13}"#).unwrap().language,
        Language::NodeJs
    );
}

#[test]
fn escapes_come_back_as_the_text_they_stand_for() {
    let header = json(r#"{"remark":"a\u0001\u0002\n\"\\\/\ud83d\ude00\ud800x"}"#).unwrap();
    assert_eq!(header.remark.unwrap(), "a\u{1}\u{2}\n\"\\/😀\u{FFFD}x");
}

#[test]
fn half_a_surrogate_pair_is_replaced_and_what_follows_it_stays() {
    for (text, meant) in [
        (r"\ud800\u0041", "\u{FFFD}A"),
        (r"\ud800\ud800x", "\u{FFFD}\u{FFFD}x"),
        (r"\ud83d\ud83d\ude00", "\u{FFFD}😀"),
        (r"\udc00\n", "\u{FFFD}\n"),
    ] {
        let text = format!(r#"{{"remark":"{text}"}}"#);
        assert_eq!(json(&text).unwrap().remark.unwrap(), meant, "{text}");
    }
    assert!(json(r#"{"remark":"\ud800\u00"}"#).is_err());
}

#[test]
fn every_short_way_reads_as_the_long_way() {
    let short = r#"{"code":310,"extFields":{"a":"g","i":"K\u0001v\u0002","é":"x"},"flag":2,"language":"JAVA","opaque":2147483647,"serializeTypeCurrentRPC":"JSON","version":479}"#;
    let long = r#" { "code" : "310" , "extFields" : { "\u0061" : "g" , "i" : "K\u0001v\u0002" , "é" : "\u0078" } , "flag" : 2 , "language" : "\u004aAVA" , "opaque" : 2147483647 , "other" : "JSON" , "version" : 479 } "#;
    let (short, long) = (json(short).unwrap(), json(long).unwrap());
    assert_eq!(
        (short.code, short.flag, short.opaque, short.version),
        (310, 2, i32::MAX, 479)
    );
    assert_eq!((short.code, short.flag), (long.code, long.flag));
    assert_eq!((short.opaque, short.version), (long.opaque, long.version));
    assert_eq!(
        (short.language, long.language),
        (Language::Java, Language::Java)
    );
    assert_eq!(short.ext, long.ext);
}

#[test]
fn text_that_is_no_utf8_is_taken_with_replacement_characters() {
    let header = Header::decode(Serializer::Json, b"{\"remark\":\"a\xFFb\"}").unwrap();
    assert_eq!(header.remark.unwrap(), "a\u{FFFD}b");
}

#[test]
fn broken_json_is_an_error_at_a_byte() {
    let deep = format!("{{\"x\":{}", "[".repeat(100_000));
    let digits = format!("{{\"code\":{}}}", "9".repeat(100_000));
    for text in [
        "{",
        "[]",
        "{}x",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"",
        "{\"code\":1.5}",
        "{\"code\":[]}",
        "{\"a\":\"\\u12\"}",
        "{,}",
        "{\"a\":1,}",
        &deep,
        &digits,
    ] {
        assert!(json(text).is_err(), "{}", &text[..text.len().min(40)]);
    }
}

#[test]
fn binary_headers_with_bad_inner_lengths_are_refused() {
    let mut good = BytesMut::new();
    Command::request(10)
        .with_ext("k", "v")
        .encode(Serializer::Binary, &mut good);
    let good = split_one(&good).header.to_vec();
    let patch = |at: usize, bytes: &[u8]| {
        let mut copy = good.clone();
        copy[at..at + bytes.len()].copy_from_slice(bytes);
        Header::decode(Serializer::Binary, &copy).is_err()
    };
    for length in [-1i32, i32::MAX, 200] {
        assert!(patch(13, &length.to_be_bytes()), "remark {length}");
        assert!(patch(17, &length.to_be_bytes()), "ext {length}");
        assert!(patch(24, &length.to_be_bytes()), "value {length}");
    }
    assert!(patch(21, &300i16.to_be_bytes()));
    assert!(patch(21, &(-1i16).to_be_bytes()));
}

#[test]
fn pop_codes_in_binary_headers_are_mapped_back() {
    let mut out = BytesMut::new();
    Command::request(3442).encode(Serializer::Binary, &mut out);
    let header = Header::decode(Serializer::Binary, split_one(&out).header).unwrap();
    assert_eq!(header.code, 200_050);
}

#[test]
fn a_binary_header_that_cannot_hold_its_parts_is_written_as_json() {
    let mut out = BytesMut::new();
    Command::request(100)
        .with_body(&b"x"[..])
        .with_ext("value", "v".repeat(40_000))
        .encode(Serializer::Binary, &mut out);
    assert_eq!(split_one(&out).serializer, Serializer::Binary);
    out.clear();
    let mut long = Command::request(100);
    long.ext.push("k".repeat(40_000), "v");
    long.encode(Serializer::Binary, &mut out);
    assert_eq!(split_one(&out).serializer, Serializer::Json);
}

fn command() -> impl Strategy<Value = Command> {
    let pairs = proptest::collection::vec((".{1,12}", ".{0,40}"), 0..6);
    let body = proptest::collection::vec(any::<u8>(), 0..64);
    // Above these begin the 16-bit forms of the pop codes, which are read as pop codes.
    (
        0i32..=3_441,
        any::<i32>(),
        any::<i32>(),
        proptest::option::of(".{1,20}"),
        pairs,
        body,
    )
        .prop_map(|(code, flag, opaque, remark, pairs, body)| {
            let mut command = Command::response(opaque, code).with_body(body);
            command.flag = flag;
            command.remark = remark;
            for (key, value) in pairs {
                command.ext.push(key, value);
            }
            command
        })
}

proptest! {
    #[test]
    fn every_command_survives_both_serializers(command in command(), binary in any::<bool>()) {
        let serializer = if binary { Serializer::Binary } else { Serializer::Json };
        let mut out = BytesMut::new();
        command.encode(serializer, &mut out);
        let back = Command::decode(split_one(&out)).unwrap();
        prop_assert_eq!(back.ext, command.ext);
        prop_assert_eq!(back.body, command.body);
        prop_assert_eq!((back.code, back.flag, back.opaque), (command.code, command.flag, command.opaque));
        prop_assert_eq!(back.remark, command.remark);
    }

    #[test]
    fn every_prefix_of_a_frame_is_incomplete(command in command(), cut in 0usize..1000) {
        let mut out = BytesMut::new();
        command.encode(Serializer::Json, &mut out);
        let cut = cut % out.len();
        match split_frame(&out[..cut], 1 << 24).unwrap() {
            Split::Incomplete { needed } => prop_assert!(needed > cut),
            Split::Frame { .. } => prop_assert!(false, "a frame out of a prefix"),
        }
    }

    #[test]
    fn bytes_of_any_kind_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = split_frame(&bytes, 1 << 24);
        let _ = Header::decode(Serializer::Json, &bytes);
        let _ = Header::decode(Serializer::Binary, &bytes);
    }

    #[test]
    fn text_that_looks_like_json_never_panics(text in r#"[{}\[\]",:\\u0-9a-f ]{0,60}"#) {
        let _ = json(&text);
    }
}
