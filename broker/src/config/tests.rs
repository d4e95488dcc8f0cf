//! The table, the two file forms and changes over the wire.

use super::{
    ConfigError, KeyError, LiveSettings, Settings, UpdateError, load::Loaded, parse_properties,
};

fn parse(text: &str) -> Result<Loaded, ConfigError> {
    let mut loaded = Loaded::default();
    parse_properties(&mut loaded, text).map(|()| loaded)
}

#[test]
fn a_java_file_is_read_and_keys_without_effect_are_named() {
    let loaded =
        parse("brokerName=b\nflushDiskType = SYNC_FLUSH\nsendMessageThreadPoolNums=4").unwrap();
    assert_eq!(loaded.settings.broker_name, "b");
    assert_eq!(loaded.settings.flush_disk_type, super::FlushDiskType::Sync);
    assert_eq!(loaded.without_effect, ["sendMessageThreadPoolNums"]);
}

#[test]
fn a_misspelt_key_is_refused_with_the_nearest_one() {
    let error = parse("brokerIp1=10.0.0.1").unwrap_err().to_string();
    assert!(error.contains("brokerIP1"), "{error}");
}

#[test]
fn values_out_of_bounds_say_what_is_expected() {
    for text in [
        "listenPort=70000",
        "listenPort=abc",
        "maxMessageSize=-1",
        "flushDiskType=FOO",
    ] {
        assert!(
            matches!(
                parse(text),
                Err(ConfigError::Key {
                    source: KeyError::Value(_),
                    ..
                })
            ),
            "{text}"
        );
    }
}

#[test]
fn paths_addresses_and_identity_cannot_be_changed_over_the_wire() {
    let live = LiveSettings::new(Settings::default());
    for key in [
        "storePathRootDir",
        "rocketmqHome",
        "brokerName",
        "listenPort",
        "configBlackList",
        "brokerConfigPath",
        "filterServerNums",
        "bindAddress",
    ] {
        let outcome = live.update(format!("traceOn=false\n{key}=1").as_bytes());
        assert!(matches!(outcome, Err(UpdateError::Forbidden(_))), "{key}");
    }
    assert!(live.get().trace_on, "nothing was applied in part");
}

#[test]
fn a_bad_value_or_unknown_key_changes_nothing() {
    let live = LiveSettings::new(Settings::default());
    assert!(matches!(
        live.update(b"traceOn=false\nfileReservedTime=-5"),
        Err(UpdateError::Value(_))
    ));
    assert!(matches!(
        live.update(b"traceOn=false\nnoSuchKey=1"),
        Err(UpdateError::Unknown(_))
    ));
    assert!(matches!(live.update(b""), Err(UpdateError::Syntax(_))));
    assert!(live.get().trace_on);
}

#[test]
fn a_good_change_counts_at_once() {
    let live = LiveSettings::new(Settings::default());
    live.update(b"autoCreateTopicEnable=false\nfileReservedTime=48")
        .unwrap();
    assert!(!live.get().auto_create_topic_enable);
    assert_eq!(live.get().file_reserved_time.get(), 48);
}

#[test]
fn every_key_reads_back_what_it_prints() {
    let mut settings = Settings::default();
    for (key, text) in Settings::default().entries() {
        settings
            .set(key, &text)
            .expect("a key of the table")
            .expect("its own default");
    }
}

#[test]
fn a_java_promise_that_would_be_false_here_is_refused_with_the_reason_and_what_to_do() {
    for (text, says) in [
        ("aclEnable=true", "may do everything"),
        ("authenticationEnabled=true", "may do everything"),
        ("authorizationEnabled=TRUE", "may do everything"),
        ("tls.server.mode=enforcing", "not encrypted"),
        ("useTLS=true", "not encrypted"),
        ("brokerRole=SYNC_MASTER", "ASYNC_MASTER"),
        ("inSyncReplicas=2", "no replicas"),
        ("enableControllerMode=true", "keep this broker on Java"),
        ("enableDLegerCommitLog=true", "keep this broker on Java"),
        ("duplicationEnable=true", "keep this broker on Java"),
        ("storeType=defaultRocksDB", "RocksDB"),
        ("readOnlyCommitLogStorePaths=/old", "/commitlog"),
        (
            "cleanFileForciblyEnable=false",
            "diskSpaceCleanForciblyRatio",
        ),
        ("fetchNamesrvAddrByAddressServer=true", "namesrvAddr"),
    ] {
        let error = parse(&format!("\n{text}")).unwrap_err().to_string();
        assert!(error.starts_with(&format!("line 2: {text}: ")), "{error}");
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn java_values_that_are_true_here_are_taken_without_a_warning() {
    let loaded = parse(
        "aclEnable=false\nauthenticationEnabled=False\nauthorizationEnabled=false\n\
         enableControllerMode=false\nenableDLegerCommitLog=false\nduplicationEnable=false\n\
         storeType=default\ntls.server.mode=permissive\nbrokerRole=ASYNC_MASTER\n\
         messageStorePlugIn=\ninSyncReplicas=1\n",
    )
    .unwrap();
    assert_eq!(loaded.without_effect, Vec::<String>::new());
}

#[test]
fn a_commit_log_elsewhere_is_refused_and_one_that_is_linked_or_in_place_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let (root, elsewhere) = (dir.path().join("store"), dir.path().join("log"));
    std::fs::create_dir_all(&root).unwrap();
    std::fs::create_dir_all(&elsewhere).unwrap();
    let check = |log: &str| {
        // The root may come after the log, and from an argument.
        let mut loaded = parse(&format!("storePathCommitLog={log}")).unwrap();
        let root = root.display().to_string();
        loaded.set("storePathRootDir", &root).unwrap();
        loaded.check_places().map_err(|error| error.to_string())
    };
    let text = |path: &std::path::Path| path.display().to_string();
    check(&format!("{}/", text(&root.join("commitlog")))).unwrap();
    let error = check(&text(&elsewhere)).unwrap_err();
    assert!(error.contains("storePathCommitLog="), "{error}");
    let place = text(&root.join("commitlog"));
    assert!(
        error.contains(&format!("move or link the folder to {place}")),
        "{error}"
    );
    check(&format!("{place},{}", text(&elsewhere))).unwrap_err();
    std::os::unix::fs::symlink(&elsewhere, root.join("commitlog")).unwrap();
    check(&text(&elsewhere)).unwrap();
}

#[test]
fn keys_of_access_control_are_known_and_their_secrets_never_shown() {
    let secret = "S3cr3tWord";
    let text = format!(
        "initAuthenticationUser={{\"username\":\"a\",\"password\":\"{secret}\"}}\n\
         innerClientAuthenticationCredentials={{\"accessKey\":\"a\",\"secretKey\":\"{secret}\"}}\n\
         authConfigPath=/auth\ntls.server.keyPassword={secret}\nnamesrvDomain=jmenv\n"
    );
    let loaded = parse(&text).unwrap();
    assert_eq!(
        loaded.without_effect,
        [
            "initAuthenticationUser",
            "innerClientAuthenticationCredentials",
            "authConfigPath",
            "tls.server.keyPassword",
            "namesrvDomain"
        ]
    );
    assert!(!format!("{loaded:?}").contains(secret));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("broker.yaml");
    for yaml in [
        format!("init-authentication-user:\n  username: a\n  password: {secret}\n"),
        format!("init-authentication-user: \"{secret}\nbroker-name: [\n"),
        format!("init-authentication-user: {{password: {secret}\n"),
        format!("init-authentication-user: a: {secret}\n"),
    ] {
        std::fs::write(&file, yaml).unwrap();
        let error = super::load(&file).unwrap_err();
        assert!(
            !format!("{error} {error:?}").contains(secret),
            "{error} {error:?}"
        );
    }
}

/// A library's word for its own options has stood in this message.
#[test]
fn a_key_that_stands_twice_in_our_form_is_named_with_both_lines() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("broker.yaml");
    let refusal = |text: &str| {
        std::fs::write(&file, text).unwrap();
        super::load(&file).unwrap_err().to_string()
    };
    assert_eq!(
        refusal("broker-name: a\nlisten-port: 1\n# again\n\"broker-name\": b\n"),
        "line 4: the key broker-name stands already on line 1: keep one of them"
    );
    assert_eq!(
        refusal("listen-port: 1\nbroker-name: a\nbrokerName: b\n"),
        "line 3: the key brokerName stands already on line 2: keep one of them"
    );
    // A longer key that starts alike is another one.
    assert_eq!(
        refusal("broker-name-prefix: a\nbroker-name: a\nbroker-name: b\n"),
        "line 3: the key broker-name stands already on line 2: keep one of them"
    );
    let wrong = refusal("broker-name-prefix: x\nlisten-port: 70000\nbroker-name: [\n");
    assert!(
        !wrong.contains("Policy") && !wrong.contains("serde"),
        "{wrong}"
    );
}

#[test]
fn an_empty_file_of_our_form_is_all_defaults() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("broker.yaml");
    std::fs::write(&file, "# nothing yet\n").unwrap();
    let loaded = super::load(&file).unwrap();
    assert_eq!(loaded.settings.entries(), Settings::default().entries());
}

#[test]
fn no_key_is_listed_twice() {
    let mut known: Vec<_> = Settings::KEYS.iter().map(|info| info.name).collect();
    known.retain(|key| *key != "brokerRole");
    known.extend(super::refused::keys());
    known.extend(super::inert::KEYS);
    let count = known.len();
    known.sort_unstable();
    known.dedup();
    assert_eq!(known.len(), count);
}

#[test]
fn a_key_on_the_black_list_cannot_be_changed_over_the_wire() {
    let loaded = parse("configBlackList=configBlackList; autoCreateTopicEnable").unwrap();
    let live = LiveSettings::new(loaded.settings);
    for text in ["autoCreateTopicEnable=false", "configBlackList="] {
        let outcome = live.update(text.as_bytes());
        assert!(matches!(outcome, Err(UpdateError::Forbidden(_))), "{text}");
    }
    live.update(b"traceOn=false").unwrap();
    assert!(live.get().auto_create_topic_enable);
}
