//! Keys, files and live changes.

use std::path::Path;

use proptest::prelude::*;

use super::{keys, *};

fn options() -> NamesrvOptions {
    NamesrvOptions::new(Path::new("/data"))
}

#[test]
fn a_java_file_is_read_with_comments_and_both_separators() {
    let text = "# a comment\n! another\n\nlistenPort = 9999\r\nbindAddress:127.0.0.1\n\
                orderMessageEnable true\nkvConfigPath=/a/\\\n   b.json\n";
    let parsed = options().parse(text).unwrap();
    assert_eq!(
        parsed.options.listen_addr(),
        "127.0.0.1:9999".parse().unwrap()
    );
    assert_eq!(parsed.options.kv_path, Path::new("/a/b.json"));
    assert!(parsed.options.live.order_message_enable);
    assert!(parsed.notes.is_empty());
}

#[test]
fn java_tuning_keys_are_read_and_said_to_have_no_effect() {
    let parsed = options()
        .parse("serverWorkerThreads=16\nrocketmqHome=/opt/rocketmq\n")
        .unwrap();
    assert_eq!(parsed.options, options());
    assert_eq!(parsed.notes.len(), 2);
    assert!(parsed.notes[0].starts_with("line 1: serverWorkerThreads"));
}

#[test]
fn an_unknown_key_is_refused_with_its_line_and_the_nearest_known_one() {
    let error = options().parse("\nlistnPort=1\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 2: unknown key listnPort, did you mean listenPort?"
    );
}

#[test]
fn impossible_values_are_refused_with_what_is_possible() {
    for text in [
        "listenPort=70000",
        "listenPort=-1",
        "scanNotActiveBrokerInterval=-5",
        "scanNotActiveBrokerInterval=0",
        "orderMessageEnable=yes",
        "bindAddress=nowhere",
        "connectionsMax=0",
        "enableControllerInNamesrv=true",
        "clusterTest=true",
        "useTLS=true",
    ] {
        assert!(
            matches!(options().parse(text), Err(ConfigError::Value { .. })),
            "{text}"
        );
    }
    assert!(options().parse("enableControllerInNamesrv=false").is_ok());
}

#[test]
fn our_own_form_says_the_same_in_kebab_case() {
    let yaml = "# a comment\nlisten-port: 9999\nbind-address: 127.0.0.1\nuse-tls: false\n\
                order-message-enable: true\nkv-config-path: \"/a/b.json\"\n\
                server-worker-threads: 16\n";
    let java = "listenPort=9999\nbindAddress=127.0.0.1\nuseTLS=false\n\
                orderMessageEnable=true\nkvConfigPath=/a/b.json\n";
    let parsed = options().parse_as(Form::Yaml, yaml).unwrap();
    assert_eq!(parsed.options, options().parse(java).unwrap().options);
    assert_eq!(
        parsed.notes,
        ["line 7: server-worker-threads tunes the Java server and has no effect here"]
    );
    for empty in ["", "# nothing\n"] {
        let parsed = options().parse_as(Form::Yaml, empty).unwrap();
        assert_eq!(parsed.options, options());
    }
}

#[test]
fn every_key_has_a_spelling_of_its_own_in_our_form() {
    let mut spellings = std::collections::BTreeSet::new();
    for key in keys::all() {
        let spelling = yaml::kebab_case(key.name);
        for name in [spelling.as_str(), key.name] {
            let found = keys::find_in(Form::Yaml, name).unwrap();
            assert_eq!(found.name, key.name);
        }
        assert!(spellings.insert(spelling), "{}", key.name);
    }
}

#[test]
fn our_own_form_refuses_what_javas_refuses_in_its_own_spelling() {
    let cases = [
        (
            "bind-address: 127.0.0.1\nlistn-port: 1\n",
            "line 2: unknown key listn-port, did you mean listen-port?",
        ),
        (
            "listen-port-max: 1\nlisten-port: 70000\n",
            "line 1: unknown key listen-port-max, did you mean listen-port?",
        ),
        (
            "\"listen-port\": 70000\n",
            "line 1: listen-port = \"70000\" is refused: it must be a number from 0 to 65535",
        ),
        (
            "\nlisten-port: [1, 2]\n",
            "line 2: listen-port = \"[1,2]\" is refused: it must be a text, a number, true or false",
        ),
        (
            "listen-port:\n",
            "line 1: listen-port = \"null\" is refused: it must be a text, a number, true or false",
        ),
    ];
    for (text, wanted) in cases {
        let error = options().parse_as(Form::Yaml, text).unwrap_err();
        assert_eq!(error.to_string(), wanted);
    }
    for text in ["listenPort=1", "- a", "a: ["] {
        let error = options().parse_as(Form::Yaml, text).unwrap_err();
        assert!(matches!(error, ConfigError::Yaml(_)), "{text}: {error}");
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
}

#[test]
fn the_form_follows_the_files_ending() {
    for (name, form) in [
        ("a/namesrv.yaml", Form::Yaml),
        ("namesrv.yml", Form::Yaml),
        ("namesrv.conf", Form::Properties),
        ("yaml", Form::Properties),
    ] {
        assert_eq!(Form::of(Path::new(name)), form, "{name}");
    }
}

#[test]
fn broken_escapes_and_missing_keys_are_syntax_errors_with_a_line() {
    for text in ["=2", "kvConfigPath=\\u12", "\nkvConfigPath=\\ud800"] {
        let error = options().parse(text).unwrap_err();
        assert!(error.to_string().starts_with("line "), "{error}");
    }
}

#[test]
fn what_is_printed_reads_back_as_the_same_options() {
    let mut changed = options();
    changed.kv_path = "odd \\ path\twith\nall".into();
    changed.black_list = vec!["a".into(), "b".into()];
    changed.live.support_acting_master = true;
    let text = changed.to_properties();
    assert_eq!(options().parse(&text).unwrap().options, changed);
}

#[test]
fn live_keys_change_and_read_back() {
    let updated = options()
        .updated(
            b"enableTopicList=false\nscanNotActiveBrokerInterval=1000\nwaitSecondsForService=3",
        )
        .unwrap();
    assert!(!updated.live.enable_topic_list);
    let text = updated.to_properties();
    assert!(
        text.contains("scanNotActiveBrokerInterval=1000\n"),
        "{text}"
    );
}

#[test]
fn paths_and_the_black_list_are_forbidden_even_beside_legal_keys() {
    for key in [
        "configStorePath",
        "kvConfigPath",
        "rocketmqHome",
        "configBlackList",
        "someOtherPath",
    ] {
        let error = options()
            .updated(format!("enableTopicList=false\n{key}=/tmp/x").as_bytes())
            .unwrap_err();
        assert!(error.is_forbidden(), "{key}: {error}");
    }
    let mut own = options();
    own.black_list = vec!["enableTopicList".into()];
    assert!(
        own.updated(b"enableTopicList=false")
            .unwrap_err()
            .is_forbidden()
    );
}

#[test]
fn a_change_that_cannot_be_made_is_refused_with_the_reason() {
    let cases = [
        (
            "listenPort=1",
            "listenPort cannot be changed while the server runs",
        ),
        ("unknownKey=1", "unknown key unknownKey"),
        (
            "defaultThreadPoolQueueCapacity=0",
            "cannot be changed while the server runs",
        ),
        (
            "scanNotActiveBrokerInterval=-5",
            "it must be a number from 10 to 3600000",
        ),
        ("enableTopicList=maybe", "it must be true or false"),
    ];
    for (text, reason) in cases {
        let error = options().updated(text.as_bytes()).unwrap_err();
        assert!(!error.is_forbidden());
        assert!(error.to_string().contains(reason), "{error}");
    }
    let long = format!("enableTopicList={}", "x".repeat(70_000));
    assert!(matches!(
        options().updated(long.as_bytes()),
        Err(UpdateError::TooLong { .. })
    ));
}

#[test]
fn no_key_stands_in_the_table_twice() {
    let mut names: Vec<&str> = keys::all().map(|key| key.name).collect();
    let before = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), before);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_a_panic(text in ".{0,200}") {
        let _ = options().parse(&text);
        let _ = options().parse_as(Form::Yaml, &text);
        let _ = options().updated(text.as_bytes());
    }
}

#[test]
fn a_key_that_stands_twice_in_our_form_is_named_with_both_lines() {
    let text = "listen-port: 1\n# again\n\"listen-port\": 2\n";
    let error = options().parse_as(Form::Yaml, text).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 3: the key listen-port stands already on line 1: keep one of them"
    );
}
