//! The table, the two file forms and changes over the wire.

use super::{ConfigError, LiveSettings, Settings, UpdateError, load::Loaded, parse_properties};

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
        assert!(matches!(parse(text), Err(ConfigError::Value(_))), "{text}");
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
