//! The checker must see every way in which a broker can fail; and nothing where it did not.

use super::*;

const A: Queue = Queue { topic: 0, queue: 0 };
const B: Queue = Queue { topic: 0, queue: 1 };

fn at(offset: i64, number: u64) -> Found {
    Found {
        offset,
        message: Some((number, A)),
        physical: 1_000 + offset,
    }
}

/// Messages 10, 11, 12 acknowledged at offsets 0, 1, 2 of queue A.
fn three() -> Ledger {
    let mut ledger = Ledger::default();
    for (offset, number) in [(0, 10), (1, 11), (2, 12)] {
        let stored = Stored {
            number,
            physical: 1_000 + offset,
        };
        ledger.acknowledged(1, A, offset, stored);
    }
    ledger
}

/// What is told when the queue is read so.
fn told(found: &[Found]) -> Vec<String> {
    let mut ledger = three();
    let end = found.last().map_or(0, |last| last.offset + 1);
    ledger.extend(1, A, end, found);
    texts(&ledger)
}

fn texts(ledger: &Ledger) -> Vec<String> {
    ledger.faults().0.iter().map(ToString::to_string).collect()
}

#[test]
fn all_in_its_place_is_no_fault_with_or_without_a_message_that_was_not_answered() {
    let all = [at(0, 10), at(1, 11), at(2, 12)];
    assert!(told(&all).is_empty());
    let more = [at(0, 10), at(1, 11), at(2, 12), at(3, 99)];
    assert!(told(&more).is_empty());
    let mut ledger = three();
    ledger.extend(1, A, 4, &more);
    ledger.compare(2, A, 0, &more);
    assert_eq!(texts(&ledger), [""; 0]);
    assert_eq!(ledger.acknowledged_count(), 3);
    assert_eq!(ledger.found_count(), 4);
    assert_eq!(ledger.next(A), 4);
}

#[test]
fn a_lost_message_at_the_end_is_named() {
    assert_eq!(
        told(&[at(0, 10), at(1, 11)]),
        ["round 1: topic kill-0 queue 0 offset 2: message 12 is lost: the queue ends at 2"]
    );
    assert_eq!(told(&[]).len(), 3);
}

#[test]
fn a_lost_message_in_the_middle_is_a_gap_and_a_shifted_rest_is_replaced() {
    assert_eq!(
        told(&[at(0, 10), at(2, 12)]),
        ["round 1: topic kill-0 queue 0 offset 1: missing: the next one found is 2"]
    );
    let shifted = told(&[at(0, 10), at(1, 12)]);
    assert_eq!(
        shifted,
        [
            "round 1: topic kill-0 queue 0 offset 1: message 12 is in the place of message 11",
            "round 1: topic kill-0 queue 0 offset 2: message 12 is lost: the queue ends at 2"
        ]
    );
}

#[test]
fn a_moved_message_is_named_in_both_places() {
    let swapped = told(&[at(0, 11), at(1, 10), at(2, 12)]);
    assert_eq!(
        swapped,
        [
            "round 1: topic kill-0 queue 0 offset 0: message 11 is in the place of message 10",
            "round 1: topic kill-0 queue 0 offset 1: message 10 is in the place of message 11"
        ]
    );
}

#[test]
fn a_message_that_is_there_twice_is_named_with_both_places() {
    assert_eq!(
        told(&[at(0, 10), at(1, 11), at(2, 12), at(3, 11)]),
        [
            "round 1: topic kill-0 queue 0 offset 3: message 11 is also at topic kill-0 queue 0 offset 1"
        ]
    );
    let mut ledger = three();
    ledger.extend(1, A, 3, &[at(0, 10), at(1, 11), at(2, 12)]);
    ledger.extend(1, B, 1, &[at(0, 12)]);
    assert_eq!(
        texts(&ledger),
        [
            "round 1: topic kill-0 queue 1 offset 0: message 12 was sent to topic kill-0 queue 0",
            "round 1: topic kill-0 queue 1 offset 0: message 12 is also at topic kill-0 queue 0 offset 2"
        ]
    );
}

#[test]
fn a_broken_body_is_seen_whether_or_not_it_was_acknowledged() {
    let broken = |offset| Found {
        message: None,
        ..at(offset, 0)
    };
    assert_eq!(
        told(&[at(0, 10), broken(1), at(2, 12), broken(3)]),
        [
            "round 1: topic kill-0 queue 0 offset 1: the body of message 11 is broken",
            "round 1: topic kill-0 queue 0 offset 3: a body that nobody sent"
        ]
    );
}

#[test]
fn an_offset_that_is_told_twice_is_seen_before_and_after_reading() {
    let mut ledger = three();
    let again = Stored {
        number: 50,
        physical: 0,
    };
    ledger.acknowledged(1, A, 1, again);
    assert_eq!(
        texts(&ledger),
        ["round 1: topic kill-0 queue 0 offset 1: messages 11 and 50 were both acknowledged here"]
    );
    let mut ledger = three();
    ledger.extend(1, A, 3, &[at(0, 10), at(1, 11), at(2, 12)]);
    ledger.acknowledged(2, A, 0, again);
    assert_eq!(
        texts(&ledger),
        ["round 2: topic kill-0 queue 0 offset 0: messages 10 and 50 were both acknowledged here"]
    );
}

#[test]
fn another_place_in_the_log_than_the_answer_told_is_a_fault() {
    let moved = Found {
        physical: 5,
        ..at(1, 11)
    };
    assert_eq!(
        told(&[at(0, 10), moved, at(2, 12)]),
        [
            "round 1: topic kill-0 queue 0 offset 1: the answer told log offset 1001, the record says 5"
        ]
    );
}

#[test]
fn a_queue_that_does_not_end_where_it_says_is_a_fault() {
    let mut ledger = three();
    ledger.extend(1, A, 7, &[at(0, 10), at(1, 11), at(2, 12)]);
    assert_eq!(
        texts(&ledger),
        ["round 1: topic kill-0 queue 0 offset 3: the last message is here, the queue's end is 7"]
    );
}

#[test]
fn what_was_found_once_must_be_found_for_ever() {
    let all = [at(0, 10), at(1, 11), at(2, 12)];
    let second_look = |start, found: &[Found]| {
        let mut ledger = three();
        ledger.extend(1, A, 3, &all);
        ledger.compare(9, A, start, found);
        texts(&ledger)
    };
    assert_eq!(second_look(0, &all), [""; 0]);
    assert_eq!(
        second_look(0, &all[..2]),
        ["round 9: topic kill-0 queue 0 offset 2: message 12 is lost: the queue ends at 2"]
    );
    assert_eq!(
        second_look(0, &[at(0, 10), at(1, 77), at(2, 12)]),
        ["round 9: topic kill-0 queue 0 offset 1: message 77 is in the place of message 11"]
    );
    assert_eq!(
        second_look(1, &[at(1, 11), at(2, 12)]),
        [
            "round 9: topic kill-0 queue 0 offset 0: the queue begins at 1",
            "round 9: topic kill-0 queue 0 offset 0: missing: the next one found is 1"
        ]
    );
    assert_eq!(
        second_look(0, &[at(0, 10), at(1, 11), at(2, 12), at(3, 13)]).len(),
        1
    );
}

#[test]
fn faults_are_bounded_and_counted() {
    let mut ledger = three();
    for offset in 0..200 {
        let found = Found {
            message: None,
            ..at(offset, 0)
        };
        ledger.extend(1, B, offset + 1, &[found]);
    }
    assert_eq!(ledger.faults().0.len(), FAULTS_MAX);
    assert_eq!(ledger.faults().1, 200);
}
