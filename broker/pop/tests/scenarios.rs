//! Single promises, one test each; field cases are named by what was seen in the field.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test code outside of test functions"
)]

mod world;

use rmq_pop::{
    AckOutcome, Action, Actions, Begin, FinishError, Handle, Init, Nothing, Options, Popped, Queue,
    Read,
    polls::{Arrival, Patience, PollFilter, PollKey, PollLimits, Polls, is_late, patience},
};
use rmq_types::{GroupName, Moment, QueueOffset, Timestamp, TopicName};
use world::{RETRY, World, small};

fn world(messages: usize) -> World {
    let mut world = World::new(Options::default(), false, 1);
    world.send_many(0, messages);
    world
}

fn ordered(messages: usize) -> World {
    let mut world = World::new(Options::default(), true, 1);
    world.send_many(0, messages);
    world
}

fn ids(list: &[world::Held]) -> Vec<u32> {
    list.iter().map(|held| held.id).collect()
}

#[test]
fn a_checkpoint_that_is_acked_while_buffered_costs_no_record() {
    let mut world = world(64);
    for _ in 0..20 {
        for held in world.pop(0, 32, 60_000, None).unwrap_or_default() {
            assert!(world.ack(held));
        }
    }
    world.advance(120_000);
    assert!(world.pending.is_empty() && world.disk.revive.is_empty());
    assert_eq!(world.committed(0), 64);
}

#[test]
fn acks_later_than_the_buffers_time_are_not_lost() {
    let mut world = world(32);
    let held = world.pop(0, 32, 120_000, None).unwrap();
    for one in held {
        world.advance(2_000);
        world.run(usize::MAX);
        assert!(world.ack(one));
        world.run(usize::MAX);
    }
    world.crash(0);
    world.advance(300_000);
    world.settle();
    assert!(
        world.disk.logs[&RETRY].is_empty(),
        "an acked message came again"
    );
    world.check_commits();
}

#[test]
fn two_changes_in_one_millisecond_keep_both_messages() {
    let mut world = world(2);
    let held = world.pop(0, 2, 10_000, None).unwrap();
    let first = world.change(held[0], 20_000).unwrap();
    let second = world.change(held[1], 20_000).unwrap();
    assert_ne!((first.handle, first.id), (second.handle, second.id));
    world.advance(19_999);
    world.settle();
    assert!(world.disk.logs[&RETRY].is_empty());
    world.advance(1);
    world.settle();
    assert_eq!(world.disk.logs[&RETRY].len(), 2);
}

#[test]
fn an_ack_by_the_new_handle_counts_and_the_old_handle_is_harmless() {
    let mut world = world(1);
    let old = world.pop(0, 1, 10_000, None).unwrap()[0];
    let new = world.change(old, 20_000).unwrap();
    assert!(!world.ack(old));
    assert_eq!(world.in_flight(0), 1);
    assert!(world.ack(new));
    assert!(!world.ack(new));
    world.advance(60_000);
    world.settle();
    assert!(world.disk.logs[&RETRY].is_empty());
}

#[test]
fn exactly_the_unacked_messages_return_once_a_round() {
    let mut world = world(100);
    let mut odd = Vec::new();
    while let Ok(list) = world.pop(0, 32, 10_000, None) {
        for held in list {
            if held.id % 2 == 0 {
                world.ack(held);
            } else {
                odd.push(held.id);
            }
        }
    }
    world.advance(10_000);
    world.settle();
    let back: Vec<u32> = world.disk.logs[&RETRY].iter().map(|one| one.id).collect();
    assert_eq!(back, odd);
    assert_eq!(world.committed(0), 100);
}

#[test]
fn messages_that_the_filter_leaves_out_are_neither_in_flight_nor_redelivered() {
    let mut world = world(0);
    (0..100).for_each(|_| {
        world.send(0, false);
    });
    world.send_many(0, 1);
    let held = world.pop(0, 32, 10_000, None).unwrap();
    assert_eq!((held.len(), world.in_flight(0)), (1, 1));
    assert_eq!(world.committed(0), 100);
    assert!(world.ack(held[0]));
    assert_eq!(world.committed(0), 101);
}

#[test]
fn after_a_reset_old_acks_do_nothing_and_reading_begins_at_the_new_offset() {
    let mut world = world(10);
    let held = world.pop(0, 10, 10_000, None).unwrap();
    let mut out = Actions::new();
    let queue = world.queues.get_mut(&0).unwrap();
    queue.reset(QueueOffset::new(0), &mut out);
    assert!(out.contains(&Action::Commit(QueueOffset::new(0))));
    for one in &held {
        assert!(!world.ack(*one));
    }
    assert_eq!(world.committed(0), 0);
    let again = world.begin(0, &world.ask(10, 10_000, None));
    assert!(matches!(again, Begin::Read(order) if order.from.get() == 0));
}

#[test]
fn a_reset_acks_the_records_of_what_it_forgets_and_refuses_the_pop_under_way() {
    let mut world = world(10);
    world.pop(0, 5, 60_000, None).unwrap();
    world.advance(10_000);
    world.run(usize::MAX);
    let Begin::Read(order) = world.begin(0, &world.ask(5, 10_000, None)) else {
        panic!("there are messages");
    };
    let mut out = Actions::new();
    let queue = world.queues.get_mut(&0).unwrap();
    queue.reset(QueueOffset::new(3), &mut out);
    let acks = out
        .iter()
        .filter(|one| matches!(one, Action::WriteAcks(write) if write.messages.len() == 5));
    assert_eq!(acks.count(), 1);
    assert!(out.iter().any(|one| matches!(one, Action::Resolved { .. })));
    assert_eq!(world.finish(0, &order), Err(FinishError::Stale));
}

#[test]
fn a_topic_made_again_begins_anew_and_handles_of_the_old_one_are_void() {
    let mut world = world(5);
    let held = world.pop(0, 5, 10_000, None).unwrap();
    let mut out = Actions::new();
    world.queues.get_mut(&0).unwrap().deleted(&mut out);
    world.disk.offsets.clear();
    world.disk.logs.insert(0, Vec::new());
    world.send_many(0, 2);
    let again = world.pop(0, 5, 10_000, None).unwrap();
    assert_eq!(again.len(), 2);
    assert!(!world.ack(held[0]) && world.ack(again[0]));
}

#[test]
fn a_queue_that_was_cut_is_read_from_its_new_end_and_claims_behind_it_are_void() {
    let mut world = world(6);
    world.pop(0, 6, 10_000, None).unwrap();
    world.disk.logs.get_mut(&0).unwrap().truncate(2);
    let ask = world.ask(6, 10_000, None);
    let Begin::Read(order) = world.begin(0, &ask) else {
        panic!("the store decides where it ends");
    };
    assert_eq!(world.finish(0, &order), Ok(Popped::Again));
    assert_eq!(world.in_flight(0), 2);
    world.send_many(0, 1);
    assert_eq!(world.pop(0, 6, 10_000, None).unwrap().len(), 1);
}

#[test]
fn messages_of_a_queue_that_is_not_read_any_more_are_acked_and_redelivered_all_the_same() {
    let mut world = World::new(Options::default(), false, 2);
    world.send_many(1, 2);
    let held = world.pop(1, 2, 10_000, None).unwrap();
    // The topic has one read queue now: nobody pops queue 1, its state goes on.
    assert!(world.ack(held[0]));
    world.advance(10_000);
    world.settle();
    assert_eq!(world.disk.logs[&RETRY].len(), 1);
    assert_eq!(world.committed(1), 2);
}

#[test]
fn a_pop_of_a_client_that_is_gone_holds_its_queue_no_longer_than_the_lock() {
    let mut world = world(3);
    let ask = world.ask(3, 10_000, None);
    let Begin::Read(first) = world.begin(0, &ask) else {
        panic!("there are messages");
    };
    assert_eq!(world.begin(0, &ask), Begin::Nothing(Nothing::Locked));
    world.queues.get_mut(&0).unwrap().abandon(first.ticket);
    let Begin::Read(second) = world.begin(0, &ask) else {
        panic!("the lock was given back");
    };
    world.advance(Options::default().lock_millis);
    assert_eq!(world.pop(0, 3, 10_000, None).unwrap().len(), 3);
    assert_eq!(world.finish(0, &second), Err(FinishError::Stale));
}

#[test]
fn a_failed_copy_is_tried_again_until_it_works() {
    let mut world = world(1);
    world.pop(0, 1, 1_000, None).unwrap();
    world.fail_writes = true;
    for _ in 0..20 {
        world.advance(1_000);
        world.run(usize::MAX);
    }
    assert!(world.disk.logs[&RETRY].is_empty());
    world.fail_writes = false;
    for _ in 0..200 {
        world.advance(1_000);
        world.run(usize::MAX);
    }
    assert_eq!(world.disk.logs[&RETRY].len(), 1);
}

#[test]
fn a_message_that_is_gone_is_dropped_and_its_neighbour_is_not_taken_for_it() {
    let mut world = world(3);
    world.pop(0, 3, 1_000, None).unwrap();
    world.disk.min = 1;
    world.advance(1_000);
    world.settle();
    let back: Vec<u32> = world.disk.logs[&RETRY].iter().map(|one| one.id).collect();
    assert_eq!(back, [1, 2]);
    assert_eq!(world.committed(0), 3);
}

#[test]
fn an_ack_with_an_offset_wrapped_by_32_bits_changes_nothing() {
    let mut world = world(4);
    let held = world.pop(0, 4, 1_000, None).unwrap();
    let forged = Handle {
        offset: QueueOffset::new(held[3].handle.offset.get() + (1 << 32)),
        ..held[3].handle
    };
    let mut out = Actions::new();
    let queue = world.queues.get_mut(&0).unwrap();
    assert_eq!(queue.ack(forged, &mut out), AckOutcome::Stale);
    let far = (0..100_000).map(|one| QueueOffset::new(one * 7919 + 4));
    assert_eq!(queue.ack_batch(far, held[0].handle.pop_time, &mut out), 0);
    assert!(out.is_empty());
}

#[test]
fn steps_of_the_wall_clock_move_no_due_time() {
    for step in [-3_600_000, 3_600_000] {
        let mut world = world(1);
        world.pop(0, 1, 10_000, None).unwrap();
        world.skew = step;
        world.advance(9_999);
        assert!(
            world
                .pending
                .iter()
                .all(|(_, one)| !matches!(one, Action::Redeliver(_)))
        );
        world.advance(1);
        world.settle();
        assert_eq!(world.disk.logs[&RETRY].len(), 1);
    }
}

#[test]
fn after_a_restart_with_the_clock_set_back_no_message_waits_longer_than_its_invisible_time() {
    let mut world = world(1);
    world.pop(0, 1, 30_000, None).unwrap();
    world.advance(10_000);
    world.run(usize::MAX);
    world.clock_is_wrong();
    world.skew = -86_400_000;
    world.crash(0);
    world.advance(30_000);
    world.settle();
    assert_eq!(world.disk.logs[&RETRY].len(), 1);
}

#[test]
fn an_overflowing_buffer_writes_new_checkpoints_at_once_and_then_gives_nothing() {
    let mut world = World::new(small(), false, 1);
    world.send_many(0, 100);
    world.fail_writes = true;
    for _ in 0..4 {
        world.pop(0, 1, 60_000, None).unwrap();
    }
    assert!(world.pending.is_empty());
    world.pop(0, 1, 60_000, None).unwrap();
    assert!(matches!(world.pending[0].1, Action::WriteCheckpoint(_)));
    for _ in 0..3 {
        world.pop(0, 1, 60_000, None).unwrap();
    }
    assert_eq!(
        world.pop(0, 1, 60_000, None).unwrap_err(),
        Nothing::BufferFull
    );
    world.fail_writes = false;
    world.run(usize::MAX);
    assert!(world.pop(0, 1, 60_000, None).is_ok());
}

#[test]
fn at_the_limit_of_messages_in_flight_a_queue_gives_nothing_until_one_is_acked() {
    let mut world = World::new(small(), false, 1);
    world.send_many(0, 100);
    let mut held = Vec::new();
    let refused = loop {
        match world.pop(0, 5, 60_000, None) {
            Ok(list) => held.extend(list),
            Err(why) => break why,
        }
        world.run(usize::MAX);
    };
    assert_eq!((refused, held.len()), (Nothing::InFlightFull, 40));
    world.ack(held[7]);
    assert_eq!(world.pop(0, 5, 60_000, None).unwrap().len(), 1);
}

#[test]
fn a_million_messages_in_flight_one_by_one_take_at_most_200_bytes_each() {
    let count = 1_000_000u64;
    let mut queue = Queue::new(Options {
        buffered_max: 2_000_000,
        ..Options::default()
    });
    let mut out = Actions::new();
    let world = World::new(Options::default(), false, 1);
    let ask = world.ask(1, 60_000, None);
    let bounds = rmq_pop::Bounds {
        max: QueueOffset::new(count),
        ..world.bounds(0)
    };
    for offset in 0..count {
        let Begin::Read(order) = queue.begin_pop(world.now(), &ask, &bounds, &mut out) else {
            panic!("nothing at {offset}");
        };
        let read = Read {
            offsets: &[order.from],
            next: QueueOffset::new(offset + 1),
        };
        queue
            .finish_pop(world.now(), order.ticket, &read, &mut out)
            .unwrap();
        out.clear();
    }
    let figures = queue.figures();
    assert_eq!(figures.in_flight as u64, count);
    assert!(figures.bytes as u64 <= 200 * count, "{}", figures.bytes);
}

#[test]
fn the_same_attempt_of_an_ordered_pop_gets_its_messages_again_and_another_one_waits() {
    let mut world = ordered(2);
    let first = world.pop(0, 1, 10_000, Some("x")).unwrap();
    let again = world.pop(0, 1, 10_000, Some("x")).unwrap();
    assert_eq!(ids(&first), ids(&again));
    assert!(
        world.batches[1].counts.is_empty(),
        "it is the same delivery"
    );
    let other = world.pop(0, 1, 10_000, Some("y"));
    assert!(matches!(other, Err(Nothing::OrderBlocked(_))));
    assert!(!world.ack(first[0]) && world.ack(again[0]));
    assert_eq!(ids(&world.pop(0, 1, 10_000, Some("y")).unwrap()), [1]);
}

#[test]
fn an_ack_in_the_middle_of_an_ordered_batch_is_kept_and_nothing_behind_it_comes_before() {
    let mut world = ordered(5);
    let held = world.pop(0, 3, 10_000, None).unwrap();
    assert!(world.ack(held[1]));
    assert_eq!(world.committed(0), 0);
    assert!(world.pop(0, 3, 10_000, None).is_err());
    world.advance(10_000);
    assert!(
        world.wakes > 0,
        "waiting pops are told that the batch is free"
    );
    let again = world.pop(0, 3, 10_000, None).unwrap();
    assert_eq!(ids(&again), [0, 2]);
    let counts: Vec<u32> = world.batches[1].counts.iter().map(|one| one.1).collect();
    assert_eq!((counts, world.batches[1].count_min), (vec![1, 1], 1));
    assert!(world.pop(0, 3, 10_000, None).is_err());
    assert!(world.ack(again[0]));
    assert_eq!(world.committed(0), 2);
    assert!(world.ack(again[1]));
    assert_eq!(world.committed(0), 3);
    assert_eq!(ids(&world.pop(0, 3, 10_000, None).unwrap()), [3, 4]);
}

#[test]
fn an_ordered_message_that_always_fails_goes_to_the_dead_letters_and_frees_its_queue() {
    let mut world = ordered(2);
    world.retry_max = Some(3);
    for _ in 0..4 {
        assert_eq!(ids(&world.pop(0, 1, 3_000, None).unwrap()), [0]);
        world.advance(3_000);
        world.settle();
    }
    assert!(world.disk.dead.contains(&0));
    assert_eq!(ids(&world.pop(0, 1, 3_000, None).unwrap()), [1]);
}

#[test]
fn with_two_retries_a_message_is_delivered_three_times_and_then_a_dead_letter() {
    let mut world = world(1);
    world.retry_max = Some(2);
    world.pop(0, 1, 3_000, None).unwrap();
    for _ in 0..5 {
        world.advance(3_000);
        world.settle();
        let _ = world.pop(RETRY, 1, 3_000, None);
    }
    assert_eq!(world.deliveries(0), 3);
    assert!(world.disk.dead.contains(&0));
}

#[test]
fn a_group_that_no_longer_consumes_in_order_loses_nothing_of_its_batch() {
    let mut world = ordered(3);
    let held = world.pop(0, 2, 10_000, None).unwrap();
    world.ordered = false;
    assert_eq!(ids(&world.pop(0, 2, 10_000, None).unwrap()), [2]);
    assert!(world.ack(held[0]), "its handle still counts");
    world.drain();
}

#[test]
fn a_new_group_begins_where_its_first_pop_says() {
    let world = world(5);
    for (init, in_memory, from) in [
        (Init::Min, true, 0),
        (Init::Max, true, 0),
        (Init::Max, false, 4),
    ] {
        let mut queue = Queue::new(Options::default());
        let mut ask = world.ask(1, 1_000, None);
        ask.init = init;
        let bounds = rmq_pop::Bounds {
            first_in_memory: in_memory,
            ..world.bounds(0)
        };
        let mut out = Actions::new();
        let begin = queue.begin_pop(world.now(), &ask, &bounds, &mut out);
        assert!(matches!(begin, Begin::Read(order) if order.from.get() == from));
        assert_eq!(out, [Action::Commit(QueueOffset::new(from))]);
    }
}

#[test]
fn a_peek_changes_nothing_and_sees_the_first_unacked_message_of_an_ordered_group() {
    let mut world = ordered(3);
    let held = world.pop(0, 2, 10_000, None).unwrap();
    world.ack(held[0]);
    let before = world.queues[&0].figures();
    assert_eq!(world.queues[&0].peek_from(&world.bounds(0)).get(), 1);
    assert_eq!(world.queues[&0].figures(), before);
}

fn names() -> (TopicName, GroupName) {
    (
        TopicName::parse("t").unwrap(),
        GroupName::parse("g").unwrap(),
    )
}

#[test]
fn waiting_pops_are_bounded_by_key_and_in_all() {
    let (topic, group) = names();
    let mut polls = Polls::new(PollLimits {
        of_key: 2,
        total: 3,
    });
    let key = |queue| PollKey {
        topic: &topic,
        group: &group,
        queue,
    };
    let end = Moment::from_millis(9);
    let mut hold = |queue| polls.hold(key(queue), end, PollFilter::All).is_ok();
    assert!(hold(None) && hold(None) && !hold(None));
    assert!(hold(Some(1)) && !hold(Some(1)));
}

#[test]
fn an_arrival_wakes_one_pop_of_every_queue_and_one_of_its_own_if_their_filter_takes_it() {
    let (topic, group) = names();
    let mut polls = Polls::new(PollLimits::default());
    let key = |queue| PollKey {
        topic: &topic,
        group: &group,
        queue,
    };
    let end = Moment::from_millis(9);
    let picky = polls
        .hold(key(None), end, PollFilter::Tags([5].into()))
        .unwrap();
    let any = polls.hold(key(None), end, PollFilter::All).unwrap();
    let own = polls.hold(key(Some(3)), end, PollFilter::All).unwrap();
    let mut woken = Vec::new();
    let arrival = |offset| Arrival {
        topic: "t",
        queue: 3,
        offset,
        tags_code: Some(7),
    };
    polls.arrived(arrival(1), &mut woken);
    assert_eq!(woken, [any, own]);
    polls.arrived(arrival(2), &mut woken);
    assert_eq!((woken.len(), polls.held(key(None))), (2, 1));
    polls.arrived(arrival(800), &mut woken);
    assert_eq!(woken.last(), Some(&picky));
    assert!(polls.is_empty() && !polls.cancel(picky));
}

#[test]
fn a_redelivery_wakes_a_waiting_pop_and_time_wakes_the_rest() {
    let (topic, group) = names();
    let mut polls = Polls::new(PollLimits::default());
    let key = |queue| PollKey {
        topic: &topic,
        group: &group,
        queue,
    };
    let own = polls
        .hold(key(Some(2)), Moment::from_millis(20), PollFilter::All)
        .unwrap();
    let any = polls
        .hold(key(None), Moment::from_millis(10), PollFilter::All)
        .unwrap();
    let late = polls
        .hold(key(None), Moment::from_millis(15), PollFilter::All)
        .unwrap();
    let mut woken = Vec::new();
    polls.wake("t", "g", None, &mut woken);
    assert_eq!(woken, [any]);
    polls.expire(Moment::from_millis(15), &mut woken);
    assert_eq!(woken, [any, late]);
    polls.wake("t", "g", None, &mut woken);
    assert_eq!(woken, [any, late, own]);
    assert_eq!(polls.next_deadline(), None);
}

#[test]
fn a_pop_waits_no_longer_than_it_asked_for_whatever_its_clock_says() {
    let mut world = world(0);
    world.steady = 1_000;
    let now = world.now();
    let wall = now.wall.millis();
    let until = |millis| Patience::Until(Moment::from_millis(millis));
    assert_eq!(patience(now, 0, 15_000), until(15_950));
    assert_eq!(patience(now, wall, 15_000), until(15_950));
    assert_eq!(patience(now, wall + 3_600_000, 15_000), until(15_950));
    assert_eq!(patience(now, wall - 14_000, 15_000), until(1_950));
    assert_eq!(patience(now, wall - 3_600_000, 15_000), Patience::None);
    assert_eq!(patience(now, wall, 0), Patience::None);
    assert!(is_late(now, wall - 3_600_000, 15_000));
    assert!(!is_late(now, 0, 15_000) && !is_late(now, wall, i64::MAX));
    assert_eq!(Timestamp::from_millis(wall), now.wall);
}
