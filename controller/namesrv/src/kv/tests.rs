//! The table's rules and the file's life: restart, backup, failed write.

use std::fs;

use super::*;

fn scratch() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kv").join("kvConfig.json");
    (folder, path)
}

#[test]
fn a_value_survives_a_restart_and_a_deleted_one_does_not_come_back() {
    let (_folder, path) = scratch();
    let kv = KvConfig::open(&path).unwrap();
    kv.put("ns", "kept", "1").unwrap();
    kv.put("ns", "gone", "2").unwrap();
    kv.delete("ns", "gone").unwrap();
    kv.delete("ns", "never there").unwrap();
    let again = KvConfig::open(&path).unwrap().table();
    assert_eq!(again.get("ns", "kept"), Some("1"));
    assert_eq!(again.get("ns", "gone"), None);
}

#[test]
fn blank_names_are_refused_and_an_empty_value_is_not() {
    let (_folder, path) = scratch();
    let kv = KvConfig::open(&path).unwrap();
    for (namespace, key) in [("", "k"), ("n", ""), (" ", "k"), ("n", "\t")] {
        let error = kv.put(namespace, key, "v").unwrap_err();
        assert!(
            matches!(error, ChangeError::Refused(PutError::Blank(_))),
            "{error}"
        );
    }
    kv.put("n", "k", "").unwrap();
    assert_eq!(kv.table().get("n", "k"), Some(""));
}

#[test]
fn a_table_beyond_its_bound_is_refused_and_unchanged() {
    let (_folder, path) = scratch();
    let kv = KvConfig::open(&path).unwrap();
    let error = kv.put("n", "k", &"v".repeat(9 * 1024 * 1024)).unwrap_err();
    assert!(matches!(
        error,
        ChangeError::Refused(PutError::TableFull { .. })
    ));
    let error = kv.put(&"n".repeat(2000), "k", "v").unwrap_err();
    assert!(matches!(
        error,
        ChangeError::Refused(PutError::NameTooLong { .. })
    ));
    assert_eq!(*kv.table(), KvTable::default());
}

#[test]
fn a_failed_write_is_an_error_and_changes_nothing() {
    let (_folder, path) = scratch();
    let kv = KvConfig::open(&path).unwrap();
    kv.put("n", "k", "old").unwrap();
    // A folder where the new file should be made: writing fails for root, too.
    fs::create_dir(path.with_file_name("kvConfig.json.tmp")).unwrap();
    for error in [
        kv.put("n", "k", "new").unwrap_err(),
        kv.delete("n", "k").unwrap_err(),
    ] {
        assert!(matches!(error, ChangeError::NotSaved(_)), "{error}");
    }
    assert_eq!(kv.table().get("n", "k"), Some("old"));
    assert_eq!(
        KvConfig::open(&path).unwrap().table().get("n", "k"),
        Some("old")
    );
}

#[test]
fn a_broken_or_missing_file_is_read_from_its_backup() {
    let (_folder, path) = scratch();
    let kv = KvConfig::open(&path).unwrap();
    kv.put("n", "k", "1").unwrap();
    kv.put("n", "k", "2").unwrap();
    for broken in [&b""[..], b"{\"configTa", b"[]", b"\0\0\0"] {
        fs::write(&path, broken).unwrap();
        assert_eq!(
            KvConfig::open(&path).unwrap().table().get("n", "k"),
            Some("1")
        );
    }
    fs::remove_file(&path).unwrap();
    let kv = KvConfig::open(&path).unwrap();
    assert_eq!(kv.table().get("n", "k"), Some("1"));
    kv.put("n", "k", "3").unwrap();
    assert_eq!(
        KvConfig::open(&path).unwrap().table().get("n", "k"),
        Some("3")
    );
}

#[test]
fn a_broken_file_without_a_backup_stops_the_start() {
    let (_folder, path) = scratch();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, b"{\"configTable\":{\"n\":").unwrap();
    let error = KvConfig::open(&path).unwrap_err();
    assert!(matches!(error, LoadError::Broken { .. }), "{error}");
}

#[test]
fn a_java_file_is_read_null_parts_and_all() {
    let (_folder, path) = scratch();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let texts: [&[u8]; 4] = [
        br#"{"configTable":{"ORDER_TOPIC_CONFIG":{"T":"broker-a:4"},"n":{"k":null,"":"x"}}}"#,
        br#"{"configTable":{"ORDER_TOPIC_CONFIG":{"T":"broker-a:4"},"":{"a":"b"}}}"#,
        br#"{"configTable":{"ORDER_TOPIC_CONFIG":{"T":"broker-a:4"},"n":null}}"#,
        br#"{"configTable":{"ORDER_TOPIC_CONFIG":{"T":"broker-a:4"}},"more":[1,{}]}"#,
    ];
    for text in texts {
        fs::write(&path, text).unwrap();
        let table = KvConfig::open(&path).unwrap().table();
        assert_eq!(table.get(ORDER_TOPIC_NAMESPACE, "T"), Some("broker-a:4"));
        assert_eq!(table.get("n", "k"), None);
        assert!(table.namespace("").is_none());
    }
    for text in [&b"{}"[..], b"{\"configTable\":null}"] {
        fs::write(&path, text).unwrap();
        assert_eq!(*KvConfig::open(&path).unwrap().table(), KvTable::default());
    }
}
