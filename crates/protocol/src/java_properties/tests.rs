//! Behaviour of the properties text, and the round trip.

use proptest::prelude::*;

use super::*;

fn pairs(text: &str) -> Vec<(String, String)> {
    parse(text.as_bytes())
        .unwrap()
        .into_iter()
        .map(|pair| (pair.key, pair.value))
        .collect()
}

fn pair(key: &str, value: &str) -> Vec<(String, String)> {
    vec![(key.into(), value.into())]
}

#[test]
fn all_three_separators_part_key_and_value() {
    for text in [
        "k=v",
        "k:v",
        "k v",
        "k\tv",
        "  k  =  v",
        "k = v\n",
        "k\u{c}:\u{c}v",
        "k=v\r\n",
    ] {
        assert_eq!(pairs(text), pair("k", "v"), "{text:?}");
    }
    assert_eq!(pairs("k==v"), pair("k", "=v"));
    assert_eq!(pairs("k : =v"), pair("k", "=v"));
    assert_eq!(pairs("k"), pair("k", ""));
    assert_eq!(pairs("=v"), pair("", "v"));
    assert_eq!(pairs("k=v "), pair("k", "v "));
}

#[test]
fn comments_and_blank_lines_are_left_out() {
    assert_eq!(
        pairs("# a=b\n  ! c=d\n\n \t\nk=v#no comment\n#x\\\ny=z"),
        vec![
            ("k".into(), "v#no comment".into()),
            ("y".into(), "z".into()),
        ]
    );
}

#[test]
fn a_backslash_at_the_end_joins_lines_and_drops_the_indent() {
    assert_eq!(pairs("k=a,\\\n   b,\\\r\n\tc"), pair("k", "a,b,c"));
    assert_eq!(
        pairs("k=a\\\\\nl=b"),
        vec![("k".into(), "a\\".into()), ("l".into(), "b".into())]
    );
    assert_eq!(pairs("k=a\\\n# b"), pair("k", "a# b"));
    assert_eq!(pairs("k=a\\"), pair("k", "a"));
}

#[test]
fn escapes_are_read_as_java_reads_them() {
    assert_eq!(
        pairs("a\\=b\\ c\\:d=\\t\\n\\r\\f\\q\\u0041"),
        pair("a=b c:d", "\t\n\r\u{c}qA")
    );
    assert_eq!(pairs("k=\\ud83d\\ude00"), pair("k", "😀"));
    assert_eq!(pairs("path=C:\\\\store"), pair("path", "C:\\store"));
}

#[test]
fn bad_text_is_refused_with_its_line() {
    assert_eq!(
        parse(b"a=b\n\nk=\\u12g4"),
        Err(PropertiesError::Unicode { line: 3 })
    );
    assert_eq!(
        parse(b"k=\\ud83dx"),
        Err(PropertiesError::Unicode { line: 1 })
    );
    assert_eq!(
        parse(b"k=\xff"),
        Err(PropertiesError::Encoding { valid: 2 })
    );
    let long = vec![b'a'; TEXT_BYTES_MAX + 1];
    assert!(matches!(parse(&long), Err(PropertiesError::TooLong { .. })));
}

#[test]
fn keys_know_their_line_and_the_last_of_equal_keys_counts() {
    let read = parse(b"# head\na=1\nb=2\\\n3\na=4\n").unwrap();
    assert_eq!(
        read.iter().map(|pair| pair.line).collect::<Vec<_>>(),
        [2, 3, 5]
    );
    assert_eq!(parse_map(b"a=1\na=4").unwrap()["a"], "4");
}

#[test]
fn plain_pairs_are_written_as_java_writes_them() {
    let text = write([
        ("brokerName", "b-0"),
        ("namesrvAddr", "a:9876;b:9876"),
        ("x", "a b = c"),
    ]);
    assert_eq!(
        text,
        "brokerName=b-0\nnamesrvAddr=a:9876;b:9876\nx=a b = c\n"
    );
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        pairs in prop::collection::vec(("[ -~\t\n\u{c}\ré]{1,8}", "[ -~\t\n\u{c}\r😀]{0,12}"), 0..6)
    ) {
        let text = write(pairs.iter().map(|(key, value)| (key, value)));
        let read: Vec<_> =
            parse(text.as_bytes()).unwrap().into_iter().map(|pair| (pair.key, pair.value)).collect();
        prop_assert_eq!(read, pairs);
    }
}
