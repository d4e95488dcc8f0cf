//! The targets under random bytes, random text, and valid inputs that were changed, cut and joined.

use std::sync::OnceLock;

use proptest::{prelude::*, sample::Index};

use super::*;
use crate::{
    message::{Record, batch},
    remoting::{Command, Header, Serializer, Split, split_frame},
};

const FIXTURES: [&str; 4] = [
    include_str!("../../tests/fixtures/frames.golden"),
    include_str!("../../tests/fixtures/records.golden"),
    include_str!("../../tests/fixtures/bodies.golden"),
    include_str!("../../tests/fixtures/admin_bodies.golden"),
];

/// Valid inputs: every golden line, the header of every frame alone, and two of our own.
fn seeds() -> &'static [(String, Vec<u8>)] {
    static SEEDS: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    SEEDS.get_or_init(|| {
        let lines = FIXTURES.iter().flat_map(|text| text.lines());
        let pairs = lines.filter_map(|line| line.split_once(' ').filter(|(name, _)| *name != "#"));
        let mut seeds: Vec<(String, Vec<u8>)> = pairs
            .map(|(name, hex)| (name.to_owned(), unhex(hex)))
            .collect();
        let headers: Vec<_> = seeds
            .iter()
            .filter(|(name, _)| name.starts_with("frame."))
            .map(|(name, bytes)| (name.replace("frame.", "header."), first_header(bytes)))
            .collect();
        seeds.extend(headers);
        let escapes = br#"{"code":310,"extFields":{"a":"\u0001\ud83d\ude00\"","b":null,"c":[1]},"remark":""}"#;
        seeds.push(("header.json.escapes".to_owned(), escapes.to_vec()));
        seeds.push(("id.text".to_owned(), b"7F00000100002A9F0000000000001234".to_vec()));
        seeds
    })
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2)
        .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
        .collect()
}

fn first_header(bytes: &[u8]) -> Vec<u8> {
    match split_frame(bytes, bytes.len()).unwrap() {
        Split::Frame { frame, .. } => frame.header.to_vec(),
        Split::Incomplete { .. } => panic!("a golden frame is whole"),
    }
}

/// One change to a valid input.
#[derive(Clone, Debug)]
enum Change {
    /// Turns one bit over.
    Flip(Index, u8),
    /// Puts a number that is often a bound over four bytes.
    Number(Index, i32),
    /// Takes a part out.
    Cut(Index, Index),
    /// Puts a part of another input in.
    Splice(Index, Index, Index, Index),
    /// Puts a part in a second time.
    Repeat(Index, Index),
}

fn part(data: &[u8], from: Index, to: Index) -> (usize, usize) {
    let (from, to) = (from.index(data.len() + 1), to.index(data.len() + 1));
    (from.min(to), from.max(to))
}

fn apply(change: &Change, data: &mut Vec<u8>) {
    match *change {
        Change::Flip(at, bit) => {
            if !data.is_empty() {
                let at = at.index(data.len());
                data[at] ^= 1 << (bit % 8);
            }
        }
        Change::Number(at, number) => {
            if data.len() >= 4 {
                let at = at.index(data.len() - 3);
                data[at..at + 4].copy_from_slice(&number.to_be_bytes());
            }
        }
        Change::Cut(from, to) => {
            let (from, to) = part(data, from, to);
            data.drain(from..to);
        }
        Change::Splice(which, from, to, at) => {
            let (_, other) = &seeds()[which.index(seeds().len())];
            let (from, to) = part(other, from, to);
            let at = at.index(data.len() + 1);
            data.splice(at..at, other[from..to].iter().copied());
        }
        Change::Repeat(from, to) => {
            let (from, to) = part(data, from, to);
            let again = data[from..to].to_vec();
            data.splice(to..to, again);
        }
    }
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<Index>;
    let bounds = vec![
        0,
        1,
        3,
        4,
        -1,
        i32::MAX,
        i32::MIN,
        0x7FFF,
        0x8000,
        0xFFFF,
        0x0001_0000,
    ];
    prop_oneof![
        4 => (at(), any::<u8>()).prop_map(|(at, bit)| Change::Flip(at, bit)),
        1 => (at(), prop::sample::select(bounds)).prop_map(|(at, n)| Change::Number(at, n)),
        2 => (at(), at()).prop_map(|(from, to)| Change::Cut(from, to)),
        2 => (at(), at(), at(), at()).prop_map(|(w, f, t, a)| Change::Splice(w, f, t, a)),
        1 => (at(), at()).prop_map(|(from, to)| Change::Repeat(from, to)),
    ]
}

/// Puts a header back into a frame, so that what is inside is looked at.
fn framed(serializer: Serializer, header: &[u8]) -> Vec<u8> {
    let mark = (u32::from(serializer.code()) << 24) | header.len() as u32;
    let words = [(header.len() as u32 + 8).to_be_bytes(), mark.to_be_bytes()];
    [&words.concat(), header, b"body"].concat()
}

fn json_like() -> impl Strategy<Value = String> {
    let words = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "null",
        "true",
        "0",
        "-1",
        "12",
        "1.5e3",
        "\"a\"",
        "\"$ref\"",
        "\"$.a\"",
        "\"offsetTable\"",
        "\"topic\"",
        "\"queueId\"",
        " ",
        "\n",
        "\\",
        "\"\\u00e9\"",
        "{\"a\":",
        "{1:",
        "{{\"topic\":\"T\"}:",
        "\"brokerDatas\":[{",
        "\"extFields\":{",
        "\"code\":",
        "\"flag\":",
        "\"opaque\":",
        "\"language\":",
        "\"JAVA\"",
        "\"remark\":",
        "\"\\u0001\\u0002\"",
        "\"version\":",
        "\"e\":",
        "\"",
    ];
    let token = prop_oneof![
        prop::sample::select(words.to_vec()).prop_map(str::to_owned),
        ".{0,3}",
    ];
    prop::collection::vec(token, 0..24).prop_map(|tokens| tokens.concat())
}

#[test]
fn the_inputs_that_are_changed_are_valid_before() {
    let named = |prefix: &str| {
        let all = seeds().iter().filter(|(name, _)| name.starts_with(prefix));
        let found: Vec<_> = all.map(|(_, bytes)| bytes.as_slice()).collect();
        assert!(!found.is_empty(), "no seed {prefix}");
        found
    };
    for frame in named("frame.") {
        let Split::Frame { frame, consumed } = split_frame(frame, frame.len()).unwrap() else {
            panic!("incomplete")
        };
        assert!(consumed > 0 && Command::decode(frame).is_ok());
    }
    for header in named("header.json") {
        assert!(Header::decode(Serializer::Json, header).is_ok());
    }
    for header in named("header.rocketmq") {
        assert!(Header::decode(Serializer::Binary, header).is_ok());
    }
    for record in named("record.") {
        assert_eq!(Record::decode(record).unwrap().1, record.len());
    }
    for body in named("batch.") {
        assert_eq!(batch::iter(body).flatten().count(), 2);
    }
    for (_, bytes) in seeds() {
        fuzz_all(bytes);
    }
}

#[test]
fn frames_behind_each_other_are_all_looked_at() {
    let frames = seeds()
        .iter()
        .filter(|(name, _)| name.starts_with("frame."));
    let stream: Vec<u8> = frames.flat_map(|(_, bytes)| bytes.clone()).collect();
    fuzz_frames(&stream);
    for cut in (0..stream.len()).step_by(37) {
        fuzz_frames(&stream[..cut]);
    }
}

proptest! {
    #[test]
    fn random_bytes_break_nothing(data in prop::collection::vec(any::<u8>(), 0..256)) {
        fuzz_all(&data);
        fuzz_frames(&framed(Serializer::Binary, &data));
    }

    #[test]
    fn random_json_like_text_breaks_nothing(text in json_like()) {
        fuzz_all(text.as_bytes());
        fuzz_frames(&framed(Serializer::Json, text.as_bytes()));
        fuzz_json_header(format!("{{{text}}}").as_bytes());
        fuzz_json_header(format!("{{\"extFields\":{{{text}}}}}").as_bytes());
    }

    #[test]
    fn changed_valid_inputs_break_nothing(
        which in any::<Index>(),
        changes in prop::collection::vec(change(), 0..5),
    ) {
        let (_, seed) = &seeds()[which.index(seeds().len())];
        let mut data = seed.clone();
        for change in &changes {
            apply(change, &mut data);
        }
        fuzz_all(&data);
    }

    #[test]
    fn changed_headers_in_whole_frames_break_nothing(
        which in any::<Index>(),
        changes in prop::collection::vec(change(), 1..4),
    ) {
        let headers: Vec<_> = seeds().iter().filter(|(name, _)| name.starts_with("header.")).collect();
        let (name, seed) = headers[which.index(headers.len())];
        let mut header = seed.clone();
        for change in &changes {
            apply(change, &mut header);
        }
        let is_json = name.starts_with("header.json");
        let serializer = if is_json { Serializer::Json } else { Serializer::Binary };
        fuzz_frames(&framed(serializer, &header));
    }

    #[test]
    fn random_properties_text_breaks_nothing(text in "[ -~\t\n\r\u{c}é]{0,64}") {
        fuzz_properties(text.as_bytes());
    }

    #[test]
    fn texts_like_ids_break_nothing(text in "[0-9a-fA-F]{32}|[0-9a-fA-F]{56}|[0-9A-Fé]{0,60}") {
        fuzz_ids(text.as_bytes());
    }
}
