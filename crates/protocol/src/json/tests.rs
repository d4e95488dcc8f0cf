//! Behaviour of the lenient reader and the two raw writers.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn strict(text: &str) -> String {
    String::from_utf8(lenient(text.as_bytes()).unwrap().into_owned()).unwrap()
}

fn value(text: &str) -> Value {
    from_slice(text.as_bytes()).unwrap()
}

fn refused(text: &str) -> String {
    lenient(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn strict_text_is_borrowed_as_it_is() {
    for text in [
        "{}",
        "[]",
        " {\"a\": [1, -2.5e3, \"x\\\"y\", true, {}]} ",
        "0",
        "\"s\"",
        "null",
    ] {
        assert!(
            matches!(lenient(text.as_bytes()), Ok(Cow::Borrowed(_))),
            "{text}"
        );
    }
}

#[test]
fn unquoted_numeric_keys_are_quoted() {
    assert_eq!(
        strict("{0:\"a\",-1:{12:3}}"),
        "{\"0\":\"a\",\"-1\":{\"12\":3}}"
    );
    assert_eq!(strict("{ 0 : 5 }"), "{ \"0\" : 5 }");
}

#[test]
fn object_keys_become_strings_that_hold_their_json() {
    let text = "{\"t\":{{\"brokerName\":\"b\",\"queueId\":0,\"topic\":\"a\\\\\\\"b\"}:{\"x\":1},{1:2}:null}}";
    let read = value(text);
    let table = read["t"].as_object().unwrap();
    assert_eq!(table.len(), 1);
    let (key, inner) = table.iter().next().unwrap();
    let key: Value = serde_json::from_str(key).unwrap();
    assert_eq!(
        key,
        json!({"brokerName": "b", "queueId": 0, "topic": "a\\\"b"})
    );
    assert_eq!(inner, &json!({"x": 1}));
}

#[test]
fn object_keys_may_hold_numeric_keys_and_line_breaks() {
    let read = value("{{\n 1 : {\"a\":null,2:3}\n}:4}");
    let key = read.as_object().unwrap().keys().next().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(key).unwrap(),
        json!({"1": {"2": 3}})
    );
}

#[test]
fn null_members_and_elements_vanish_wherever_they_stand() {
    for (text, want) in [
        ("{\"a\":null}", json!({})),
        ("{\"a\":null,\"b\":1}", json!({"b": 1})),
        ("{\"a\":1,\"b\":null}", json!({"a": 1})),
        ("{\"a\":1,\"b\":null,\"c\":2}", json!({"a": 1, "c": 2})),
        ("{\"a\":null , \"b\": null ,\"c\":2}", json!({"c": 2})),
        ("{0:null,1:2}", json!({"1": 2})),
        ("{1:2,0:null}", json!({"1": 2})),
        ("[null,1,null,2,null]", json!([1, 2])),
        ("[[null],{\"a\":null}]", json!([[], {}])),
        ("{\"a\":[1],\"b\":null}", json!({"a": [1]})),
        ("{{\"k\":1}:null,\"z\":1}", json!({"z": 1})),
    ] {
        assert_eq!(value(text), want, "{text}");
    }
}

#[test]
fn a_lone_null_stays_and_is_no_object() {
    assert!(from_slice::<BTreeMap<String, i32>>(b"null").is_err());
}

#[test]
fn text_after_the_value_is_refused() {
    for text in ["{}x", "{}{}", "1 2", "null,"] {
        assert!(refused(text).contains("after the end"), "{text}");
    }
}

#[test]
fn broken_text_is_refused_with_its_place() {
    for text in [
        "",
        " ",
        "{",
        "[",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,}",
        "[1,]",
        "[,1]",
        "{,}",
        "{\"a\" 1}",
        "{a:1}",
        "{'a':1}",
        "{1.5:1}",
        "{-:1}",
        "{1e3:1}",
        "[1}",
        "{\"a\":1]",
        "]",
        "\"\\x",
        "\"abc",
        "{\"a\":\"\\",
        "{{\"a\":{{}:1}}:1}",
        "{{}}",
        "{{},1}",
        ":",
        "\u{feff}{}",
    ] {
        let error = lenient(text.as_bytes()).unwrap_err();
        assert!(matches!(error, JsonError::Syntax { .. }), "{text}: {error}");
    }
}

#[test]
fn words_that_are_no_json_are_refused_by_the_second_step() {
    for text in [
        "[nul]",
        "[truee]",
        "[01]",
        "[1x]",
        "[NaN]",
        "[\"\\x41\"]",
        "[\"\\ud800\"]",
    ] {
        assert!(
            matches!(
                from_slice::<Value>(text.as_bytes()),
                Err(JsonError::Shape(_))
            ),
            "{text}"
        );
    }
}

#[test]
fn a_hundred_thousand_open_brackets_are_refused_at_the_depth_limit() {
    for open in ["[", "{\"a\":", "{1:"] {
        let text = open.repeat(100_000);
        assert!(matches!(
            lenient(text.as_bytes()),
            Err(JsonError::TooDeep { max: 64, .. })
        ));
    }
    let deep = format!("{}1{}", "[".repeat(64), "]".repeat(64));
    assert!(lenient(deep.as_bytes()).is_ok());
}

#[test]
fn a_mebibyte_of_digits_is_refused_without_being_read() {
    let text = format!("{{\"counter\":{}}}", "9".repeat(1 << 20));
    assert!(matches!(
        lenient(text.as_bytes()),
        Err(JsonError::WordTooLong { at: 11, .. })
    ));
}

#[test]
fn a_million_empty_objects_are_refused() {
    let text = format!("[{}{{}}]", "{},".repeat(1_000_000));
    assert!(matches!(
        lenient(text.as_bytes()),
        Err(JsonError::TooMany { .. })
    ));
}

#[test]
fn references_are_replaced_by_what_they_name() {
    for (text, want) in [
        (
            r#"{"a":{"x":1},"b":{"$ref":"$.a"}}"#,
            json!({"a": {"x": 1}, "b": {"x": 1}}),
        ),
        (
            r#"{"a":[1,[2]],"b":[{"$ref":"$.a[1]"}]}"#,
            json!({"a": [1, [2]], "b": [[2]]}),
        ),
        (
            r#"[{"k":{"x.y":{}}},{"$ref":"$[0].k.x\\.y"}]"#,
            json!([{"k": {"x.y": {}}}, {}]),
        ),
        (
            r#"{7:{"x":1},"b":{"$ref":"$[7]"}}"#,
            json!({"7": {"x": 1}, "b": {"x": 1}}),
        ),
        (
            r#"{"a":{"in":{"$ref":"$.z"}},"b":{"$ref":"$.a"},"z":{"x":1}}"#,
            json!({"a": {"in": {"x": 1}}, "b": {"in": {"x": 1}}, "z": {"x": 1}}),
        ),
        (
            r#"{"a":{"$ref":"$.b.in"},"b":{"$ref":"$.z"},"z":{"in":{"x":1}}}"#,
            json!({"a": {"x": 1}, "b": {"in": {"x": 1}}, "z": {"in": {"x": 1}}}),
        ),
    ] {
        assert_eq!(value(text), want, "{text}");
    }
}

#[test]
fn references_that_cannot_be_followed_are_refused() {
    for text in [
        r#"{"$ref":"$"}"#,
        r#"{"a":{"$ref":"$"}}"#,
        r#"{"a":{"$ref":".."}}"#,
        r#"{"a":{"$ref":"@"}}"#,
        r#"{"a":{"b":{"$ref":"$.a"}}}"#,
        r#"{"a":{"$ref":"$.b"},"b":{"$ref":"$.a"}}"#,
        r#"{"a":{"$ref":"$.nothing"}}"#,
        r#"{"a":{"$ref":"$.a[x]"}}"#,
        r#"{"a":{"$ref":7}}"#,
        r#"{{"$ref":"$.a"}:1}"#,
    ] {
        assert!(refused(text).contains("$ref"), "{text}");
    }
}

#[test]
fn references_cannot_make_a_short_text_grow_without_end() {
    let doubling: Vec<String> = (1..200)
        .map(|n| {
            format!(
                "\"k{n:03}\":[{{\"$ref\":\"$.k{:03}\"}},{{\"$ref\":\"$.k{:03}\"}}]",
                n - 1,
                n - 1
            )
        })
        .collect();
    let text = format!("{{\"k000\":[1,2,3],{}}}", doubling.join(","));
    assert!(refused(&text).contains("$ref"));
    let deep = format!(
        "{{\"a\":{}{},\"b\":{}{{\"$ref\":\"$.a\"}}{}}}",
        "[".repeat(40),
        "]".repeat(40),
        "[".repeat(40),
        "]".repeat(40),
    );
    assert!(refused(&deep).contains("$ref"));
}

#[test]
fn references_in_a_long_text_are_refused_before_a_tree_is_built() {
    let text = format!(
        "[{}{{\"$ref\":\"$[0]\"}}]",
        "[12345678901234],".repeat(70_000)
    );
    assert!(refused(&text).contains("$ref"));
}

#[test]
fn type_hints_are_plain_keys() {
    assert_eq!(value("{\"@type\":\"x.y.Z\"}"), json!({"@type": "x.y.Z"}));
}

#[test]
fn bare_keys_are_written_for_numbers_only() {
    let mut addrs = BTreeMap::new();
    addrs.insert(0i64, "ip:1");
    addrs.insert(-2, "x");
    let mut outer = BTreeMap::new();
    outer.insert("12", addrs);
    outer.insert("", BTreeMap::new());
    outer.insert("\"{", BTreeMap::new());
    let text = String::from_utf8(without_key_quotes(&outer)).unwrap();
    assert_eq!(text, "{\"\":{},\"\\\"{\":{},\"12\":{-2:\"x\",0:\"ip:1\"}}");
    assert_eq!(value(&text)["12"]["0"], json!("ip:1"));
}

#[test]
fn numbers_and_switches_are_read_from_text_too() {
    #[derive(serde::Deserialize)]
    struct Fields {
        #[serde(deserialize_with = "de::number")]
        n: i32,
        #[serde(deserialize_with = "de::switch")]
        s: bool,
    }
    for text in [
        r#"{"n":7,"s":true}"#,
        r#"{"n":"7","s":"TRUE"}"#,
        r#"{"n":7.0,"s":1}"#,
    ] {
        let read: Fields = from_slice(text.as_bytes()).unwrap();
        assert!(read.n == 7 && read.s, "{text}");
    }
    for text in [
        r#"{"n":2147483648,"s":true}"#,
        r#"{"n":1.5,"s":true}"#,
        r#"{"n":"x","s":true}"#,
        r#"{"n":1e300,"s":true}"#,
        r#"{"n":1,"s":2}"#,
        r#"{"n":1,"s":"yes"}"#,
    ] {
        assert!(from_slice::<Fields>(text.as_bytes()).is_err(), "{text}");
    }
}

/// A tree of values, with fastjson's spelling of it and the strict one.
fn tree() -> impl Strategy<Value = (String, Value)> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(|n| (n.to_string(), json!(n))),
        any::<bool>().prop_map(|b| (b.to_string(), json!(b))),
        ".{0,8}".prop_map(|s| (json!(s).to_string(), json!(s))),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        let key = prop_oneof![
            any::<i32>().prop_map(|n| (n.to_string(), n.to_string())),
            "[a-z\"\\\\]{0,6}".prop_map(|s| (json!(s).to_string(), s)),
            (any::<u8>(), "[a-z\"\\\\]{0,4}").prop_map(|(n, s)| {
                let text = json!({"q": n, "s": s}).to_string();
                (text.clone(), text)
            }),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(|items| {
                let text: Vec<_> = items.iter().map(|(text, _)| text.clone()).collect();
                let value: Vec<_> = items.into_iter().map(|(_, value)| value).collect();
                (format!("[{}]", text.join(",")), Value::Array(value))
            }),
            prop::collection::vec((key, inner), 0..6).prop_map(|members| {
                let text: Vec<_> = members
                    .iter()
                    .map(|((key, _), (text, _))| format!("{key}:{text}"))
                    .collect();
                let value: serde_json::Map<_, _> = members
                    .into_iter()
                    .map(|((_, key), (_, value))| (key, value))
                    .collect();
                (format!("{{{}}}", text.join(", ")), Value::Object(value))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn fastjson_spelling_reads_as_the_same_value((text, want) in tree()) {
        let read: Value = from_slice(text.as_bytes()).unwrap();
        prop_assert_eq!(read, want);
    }

    #[test]
    fn what_comes_out_is_read_back_unchanged((text, _) in tree()) {
        let once = lenient(text.as_bytes()).unwrap().into_owned();
        prop_assert!(matches!(lenient(&once), Ok(Cow::Borrowed(_))));
        prop_assert!(once.len() <= 2 * text.len());
    }
}
