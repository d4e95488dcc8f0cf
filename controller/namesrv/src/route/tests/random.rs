//! Random sequences of events against a plain model: who is alive.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Event {
    Register {
        group: u8,
        id: u64,
        connection: u64,
        topics: u8,
        acting: bool,
    },
    Unregister {
        group: u8,
        id: u64,
        connection: u64,
    },
    Heartbeat {
        group: u8,
        id: u64,
    },
    Close {
        connection: u64,
    },
    Pass {
        seconds: i64,
    },
    DeleteTopic {
        topic: u8,
    },
    Wipe {
        group: u8,
    },
}

fn event() -> impl Strategy<Value = Event> {
    let group = 0..3u8;
    let id = 0..3u64;
    let connection = 1..6u64;
    prop_oneof![
        4 => (group.clone(), id.clone(), connection.clone(), 0..4u8, any::<bool>()).prop_map(
            |(group, id, connection, topics, acting)| Event::Register {
                group, id, connection, topics, acting,
            }
        ),
        1 => (group.clone(), id.clone(), connection.clone())
            .prop_map(|(group, id, connection)| Event::Unregister { group, id, connection }),
        1 => (group.clone(), id).prop_map(|(group, id)| Event::Heartbeat { group, id }),
        1 => connection.prop_map(|connection| Event::Close { connection }),
        1 => (1..40i64).prop_map(|seconds| Event::Pass { seconds }),
        1 => (0..4u8).prop_map(|topic| Event::DeleteTopic { topic }),
        1 => group.prop_map(|group| Event::Wipe { group }),
    ]
}

/// Who is alive: heard at, over which connection.
#[derive(Default)]
struct Model {
    now: i64,
    alive: BTreeMap<(u8, u64), (i64, u64)>,
}

fn name(group: u8) -> String {
    format!("g{group}")
}

fn play(table: &mut RouteTable, model: &mut Model, event: Event) {
    match event {
        Event::Register {
            group,
            id,
            connection,
            topics,
            acting,
        } => {
            let mut registration = broker(&name(group), id);
            registration.connection = ConnectionToken(connection);
            registration.acting_master = Some(acting);
            registration.version = version(i64::from(topics));
            registration.topics = (0..topics).map(|at| topic(&format!("t{at}"))).collect();
            let known = model.alive.contains_key(&(group, id));
            let outcome = table.register(at(model.now), &registration);
            assert_eq!(outcome.is_ok(), known || topics != 1);
            if outcome.is_ok() {
                model.alive.insert((group, id), (model.now, connection));
            }
        }
        Event::Unregister {
            group,
            id,
            connection,
        } => {
            let addr = format!("{}-{id}:10911", name(group));
            let word = Unregister {
                cluster: "c",
                broker: &name(group),
                addr: &addr,
                connection: ConnectionToken(connection),
            };
            let expected = model
                .alive
                .get(&(group, id))
                .is_some_and(|(_, over)| *over <= connection);
            assert_eq!(table.unregister(word).is_some(), expected);
            if expected {
                model.alive.remove(&(group, id));
            }
        }
        Event::Heartbeat { group, id } => {
            let addr = format!("{}-{id}:10911", name(group));
            let known = table.heartbeat(at(model.now), "c", &name(group), &addr);
            let entry = model.alive.get_mut(&(group, id));
            assert_eq!(known, entry.is_some());
            if let Some(entry) = entry {
                entry.0 = model.now;
            }
        }
        Event::Close { connection } => {
            table.connection_closed(ConnectionToken(connection));
            model.alive.retain(|_, (_, over)| *over != connection);
        }
        Event::Pass { seconds } => {
            for _ in 0..seconds {
                model.now += 1_000;
                table.expire(at(model.now), 1_000);
            }
            let now = model.now;
            model.alive.retain(|_, (heard, _)| now - *heard <= 120_000);
        }
        Event::DeleteTopic { topic } => table.delete_topic(&format!("t{topic}"), None),
        Event::Wipe { group } => {
            table.wipe_write_perm(&name(group));
        }
    }
}

fn check(table: &mut RouteTable, model: &Model) {
    assert_eq!(table.broker_count(), model.alive.len());
    for group in 0..3u8 {
        let ids: Vec<u64> = model
            .alive
            .keys()
            .filter(|(of, _)| *of == group)
            .map(|(_, id)| *id)
            .collect();
        let found: Vec<u64> = table
            .members(&name(group))
            .addresses
            .iter()
            .map(|(id, _)| *id)
            .collect();
        assert_eq!(found, ids, "members of group {group}");
    }
    for topic in 0..4u8 {
        let topic = format!("t{topic}");
        let Some(route) = table.route(&topic, None) else {
            continue;
        };
        assert!(!route.queue_datas.is_empty());
        let named: Vec<_> = route
            .queue_datas
            .iter()
            .map(|queues| &queues.broker_name)
            .collect();
        let reachable: Vec<_> = route
            .broker_datas
            .iter()
            .map(|data| &data.broker_name)
            .collect();
        assert_eq!(named, reachable, "every queue has a broker");
        assert!(
            route
                .broker_datas
                .iter()
                .all(|data| !data.broker_addrs.is_empty())
        );
        for flavour in [Flavour::Standard, Flavour::Legacy] {
            let fresh = match flavour {
                Flavour::Standard => route.to_json(),
                Flavour::Legacy => route.to_json_legacy(),
            };
            let answer = table.answer(&topic, flavour, None).unwrap();
            assert_eq!(answer, fresh, "a prepared answer is never stale");
        }
    }
}

proptest! {
    #[test]
    fn routes_follow_the_living_through_any_sequence(
        events in proptest::collection::vec(event(), 1..60),
        acting in any::<bool>(),
    ) {
        let policy = Policy { support_acting_master: acting, ..Policy::default() };
        let mut table = RouteTable::new(policy);
        let mut model = Model::default();
        table.expire(at(0), 1_000);
        for event in events {
            play(&mut table, &mut model, event);
            check(&mut table, &model);
        }
    }

    #[test]
    fn a_live_master_is_in_the_route_of_each_topic_it_registered(
        topics in 2..20usize,
        rounds in 1..5i64,
    ) {
        let mut table = RouteTable::default();
        for round in 0..rounds {
            let mut registration = broker("a", 0);
            registration.version = version(round);
            registration.topics = (0..topics).map(|at| topic(&format!("t{at}"))).collect();
            table.register(at(round * 30_000), &registration).unwrap();
            table.expire(at(round * 30_000), 30_000);
            for topic in 0..topics {
                prop_assert_eq!(addresses(&table, &format!("t{topic}"), "a").len(), 1);
            }
        }
    }
}
