//! Handles built from a pop's answer, as the Java proxy builds them.

use std::borrow::Cow;

use super::*;

fn record<'a>(topic: &'a str, offset: i64, properties: &'a [u8]) -> Record<'a> {
    Record {
        body_crc: 0,
        queue_id: 3,
        flag: 0,
        queue_offset: offset,
        physical_offset: 7_000 + offset,
        sys_flag: 0,
        born_at: 1,
        born_host: ([127, 0, 0, 1], 1).into(),
        stored_at: 2,
        store_host: ([127, 0, 0, 1], 10911).into(),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body: b"b",
        topic,
        properties,
    }
}

fn answer<'a>(starts: &'a str, counts: Option<&'a str>) -> PopMessageResponse<'a> {
    PopMessageResponse {
        pop_time: 1_000,
        invisible_time: 60_000,
        revive_qid: 2,
        rest_num: 0,
        start_offset_info: Some(Cow::Borrowed(starts)),
        msg_offset_info: None,
        order_count_info: counts.map(Cow::Borrowed),
    }
}

#[test]
fn a_handle_has_the_queues_checkpoint_and_the_messages_own_places() {
    let answer = answer("0 3 40;1 3 9", None);
    let handles = Handles::new(&answer, "broker-a").unwrap();
    let text = handles.of(&record("t", 41, b"")).unwrap();
    assert_eq!(text, "40 1000 60000 2 0 broker-a 3 41 7041");
    let text = handles.of(&record("%RETRY%g_t", 9, b"")).unwrap();
    assert_eq!(text, "9 1000 60000 2 1 broker-a 3 9 7009");
}

#[test]
fn a_retried_message_keeps_the_brokers_own_handle() {
    let answer = answer("0 3 40", None);
    let handles = Handles::new(&answer, "broker-a").unwrap();
    let properties = b"POP_CK\x015 6 7 1 2 broker-a 0 5\x02";
    let text = handles.of(&record("t", 41, properties)).unwrap();
    assert_eq!(text, "5 6 7 1 2 broker-a 0 5 7041");
    assert!(handles.of(&record("t", 41, b"POP_CK\x01x\x02")).is_err());
}

#[test]
fn the_count_of_a_message_is_its_own_before_that_of_its_queue() {
    let answer = answer("0 3 40", Some("0 3 1;0 qo3%41 4"));
    let handles = Handles::new(&answer, "b").unwrap();
    assert_eq!(handles.consumed(&record("t", 41, b"")), 4);
    assert_eq!(handles.consumed(&record("t", 42, b"")), 1);
}

#[test]
fn texts_that_name_a_queue_twice_are_the_brokers_fault() {
    let answer = answer("0 3 40;0 3 41", None);
    let refusal = Handles::new(&answer, "b").unwrap_err();
    assert_eq!(refusal.code, Code::InternalServerError);
}

#[test]
fn forged_cut_and_old_handles_are_invalid() {
    let now = Timestamp::from_millis(61_000);
    for text in [
        "",
        "x",
        "40 1000 60000 2 0 b 3",
        "40 1000 60000 2 5 b 3 41",
        "-4 1000 60001 2 0 b 3 41",
        "40 1000 60000 2 0 b 3 41 7041",
        "40 1000 99999999999999999999 2 0 b 3 41",
    ] {
        let refusal = parse(text, now).unwrap_err();
        assert_eq!(refusal.code, Code::InvalidReceiptHandle, "{text}");
    }
    assert!(parse("40 1000 60001 2 0 b 3 41 7041", now).is_ok());
    let eternal = format!("40 {} {} 2 0 b 3 41", i64::MAX, i64::MAX);
    assert!(parse(&eternal, now).is_ok());
}

#[test]
fn after_a_change_the_message_is_a_checkpoint_of_its_own() {
    let old = "40 1000 60000 2 1 b 3 41 7041";
    let old = ReceiptHandle::parse(old).unwrap();
    let answer = ChangeInvisibleTimeResponse {
        pop_time: 5_000,
        invisible_time: 30_000,
        revive_qid: 6,
    };
    assert_eq!(changed(&old, &answer), "41 5000 30000 6 1 b 3 41 7041");
}
