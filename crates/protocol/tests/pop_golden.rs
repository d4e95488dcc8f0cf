//! Pop: what the official Java classes write is read, and what we write has their very bytes.

mod common;

use common::{POP, fixture, lines, pop};
use rmq_protocol::pop::{
    ACK_TAG, BATCH_ACK_TAG, BatchAckRequest, CHECKPOINT_TAG, OrderInfoFile, ReceiptHandle,
    ReviveRecord, parse_message_offsets, parse_order_counts, parse_start_offsets,
};

/// Java builds these two for itself only; and the file is written in another layout.
const NOT_OURS: [&str; 2] = ["polling_key", "batch_ack_key"];

fn text(name: &str) -> String {
    String::from_utf8(fixture(POP, name).expect(name)).expect("a text")
}

#[test]
fn handles_texts_names_and_records_have_javas_very_bytes() {
    for (name, ours) in pop::all() {
        if name != "pop.OrderInfo" {
            assert_eq!(String::from_utf8(ours).unwrap(), text(name), "{name}");
        }
    }
}

#[test]
fn every_pop_fixture_has_a_counterpart() {
    let known: Vec<&str> = pop::all().into_iter().map(|(name, _)| name).collect();
    for (name, _) in lines(POP) {
        assert!(
            known.contains(&name.as_str()) || NOT_OURS.contains(&name.as_str()),
            "{name}"
        );
    }
}

#[test]
fn javas_handles_and_offset_texts_read_as_what_they_were() {
    for (name, handle) in pop::handles() {
        assert_eq!(ReceiptHandle::parse(&text(name)).unwrap(), handle, "{name}");
    }
    let starts = parse_start_offsets(&text("start_offset_info")).unwrap();
    assert_eq!(starts.len(), 3);
    assert_eq!(starts[2].offset, 5_000_000_000);
    let offsets = parse_message_offsets(&text("msg_offset_info")).unwrap();
    assert_eq!(offsets[0].offsets, [100, 101, 104]);
    let counts = parse_order_counts(&text("order_count_info")).unwrap();
    let counts: Vec<_> = counts.iter().map(|one| (one.offset, one.count)).collect();
    assert_eq!(counts, [(Some(100), 3), (Some(101), 1), (None, 1)]);
}

#[test]
fn javas_records_and_bodies_read_as_what_they_were() {
    let read = |tag, name| ReviveRecord::decode(tag, text(name).as_bytes()).unwrap();
    assert_eq!(
        read(CHECKPOINT_TAG, "pop.CheckPoint"),
        ReviveRecord::Checkpoint(pop::checkpoint())
    );
    assert_eq!(
        read(CHECKPOINT_TAG, "pop.CheckPoint.again"),
        ReviveRecord::Checkpoint(pop::checkpoint_again())
    );
    assert_eq!(read(ACK_TAG, "pop.Ack"), ReviveRecord::Ack(pop::ack()));
    assert_eq!(
        read(BATCH_ACK_TAG, "pop.BatchAck"),
        ReviveRecord::BatchAck(pop::batch_ack())
    );
    let request = BatchAckRequest::from_json(text("pop.BatchAckRequest").as_bytes()).unwrap();
    assert_eq!(request, pop::request());
    let file = OrderInfoFile::from_json(text("pop.OrderInfo").as_bytes()).unwrap();
    assert_eq!(file, pop::order_info());
    let batch = &file.table["TopicTest@cg"][&2];
    assert_eq!(batch.absolute_offsets(), Some(vec![100, 101, 104]));
}
