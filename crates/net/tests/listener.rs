//! Listeners against raw peers: framing, broken input, slow readers, idle reaping, shutdown.

#[cfg(test)]
mod common;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use common::{ECHO, IGNORE, KEEP, LARGE, PANIC, Peer, Server, block_on, frame, until};
use proptest::prelude::*;
use rmq_net::{BindError, IoThreads, ListenOptions, Listener, ReservedPort, SendError};
use rmq_protocol::remoting::{Command, Serializer};

#[test]
fn many_frames_in_one_write_are_served_in_order() {
    let server = Server::start();
    let mut peer = server.peer();
    let requests: Vec<_> = (0..500)
        .map(|i| Command::request(ECHO).with_body(format!("body {i}")))
        .collect();
    let bytes: Vec<u8> = requests
        .iter()
        .flat_map(|cmd| frame(cmd).to_vec())
        .collect();
    peer.write(&bytes);
    for request in &requests {
        let answer = peer.receive().unwrap();
        assert_eq!(
            (answer.opaque, answer.body),
            (request.opaque, request.body.clone())
        );
    }
    let largest = *server.toy.groups.lock().unwrap().iter().max().unwrap();
    assert!(largest > 1, "frames of one read must be served in groups");
}

#[test]
fn a_frame_sent_one_byte_at_a_time_is_served() {
    let server = Server::start();
    let mut peer = server.peer();
    let request = Command::request(ECHO).with_body("slow but whole");
    for byte in &frame(&request) {
        peer.write(&[*byte]);
    }
    assert_eq!(&peer.receive().unwrap().body[..], b"slow but whole");
}

#[test]
fn a_frame_larger_than_every_buffer_is_served() {
    let server = Server::start();
    let mut peer = server.peer();
    let body: Vec<u8> = (0..9_000_000_u32).map(|i| i as u8).collect();
    let answer = peer
        .call(&Command::request(ECHO).with_body(body.clone()))
        .unwrap();
    assert_eq!(answer.body, body);
    peer.assert_works();
}

#[test]
fn binary_headers_are_read_whatever_we_write() {
    let server = Server::start();
    let mut peer = server.peer();
    let mut bytes = bytes::BytesMut::new();
    Command::request(ECHO)
        .with_body("binary")
        .encode(Serializer::Binary, &mut bytes);
    peer.write(&bytes);
    assert_eq!(&peer.receive().unwrap().body[..], b"binary");
}

#[test]
fn one_way_requests_get_no_frame() {
    let server = Server::start();
    let mut peer = server.peer();
    peer.send(&Command::oneway(ECHO));
    peer.send(&Command::oneway(99));
    peer.assert_works();
    assert_eq!(server.toy.served.load(Ordering::SeqCst), 3);
}

fn broken_inputs() -> Vec<(&'static str, Vec<u8>)> {
    let word = |length: u32, mark: u32| [length.to_be_bytes(), mark.to_be_bytes()].concat();
    let binary = |header: &[u8]| {
        let mut bytes = word(4 + header.len() as u32, 0x0100_0000 | header.len() as u32);
        bytes.extend_from_slice(header);
        bytes
    };
    let head = [0, 1, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0];
    let with = |tail: &[i32]| {
        let tail = tail.iter().flat_map(|n| n.to_be_bytes());
        binary(&head.iter().copied().chain(tail).collect::<Vec<_>>())
    };
    vec![
        ("length 0", vec![0, 0, 0, 0]),
        ("length 1", vec![0, 0, 0, 1, 9]),
        ("length 2", vec![0, 0, 0, 2, 9, 9]),
        ("length 3", vec![0, 0, 0, 3, 9, 9, 9]),
        ("length 4 without a header", word(4, 0)),
        ("header far beyond the frame", word(20, 0x00FF_FFFF)),
        ("header one beyond the frame", word(20, 17)),
        (
            "smallest negative length",
            0x8000_0000_u32.to_be_bytes().to_vec(),
        ),
        ("length minus one", u32::MAX.to_be_bytes().to_vec()),
        (
            "one beyond the limit",
            (16 * 1024 * 1024 + 1_u32).to_be_bytes().to_vec(),
        ),
        ("unknown serializer", word(20, 0x0700_0004)),
        (
            "http get",
            b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n".to_vec(),
        ),
        (
            "http post",
            b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n".to_vec(),
        ),
        ("header that is no json", [&word(7, 3)[..], b"abc"].concat()),
        ("binary remark of -1", with(&[-1, 0])),
        ("binary remark of i32 max", with(&[i32::MAX, 0])),
        ("binary remark one too long", with(&[5, 0])),
        ("binary ext of -5", with(&[0, -5])),
        ("binary ext one too long", with(&[0, 1])),
        ("binary ext key beyond ext", with(&[0, 4, 0x7FFF_0000])),
        (
            "binary ext value of -1",
            with(&[0, 7, 0x0001_61FF, 0x00FF_FFFF]),
        ),
        ("binary header cut short", binary(&head[..5])),
    ]
}

#[test]
fn broken_frames_close_their_connection_and_no_other() {
    let server = Server::start();
    let mut other = server.peer();
    for (what, bytes) in broken_inputs() {
        let mut peer = server.peer();
        peer.assert_works();
        peer.write(&bytes);
        assert!(peer.receive().is_none(), "{what}: answered");
        other.assert_works();
    }
    let broken = server.listener.stats().broken;
    assert_eq!(broken, broken_inputs().len() as u64);
}

#[test]
fn good_requests_before_a_broken_frame_are_served() {
    let server = Server::start();
    let mut peer = server.peer();
    let mut bytes = frame(&Command::oneway(ECHO));
    bytes.extend_from_slice(b"GET /");
    peer.write(&bytes);
    assert!(peer.receive().is_none());
    assert_eq!(server.toy.served.load(Ordering::SeqCst), 1);
}

#[test]
fn a_panic_in_the_service_closes_that_connection_only() {
    let server = Server::start();
    let mut other = server.peer();
    let mut peer = server.peer();
    peer.assert_works();
    peer.send(&Command::request(PANIC));
    assert!(peer.receive().is_none());
    other.assert_works();
    server.peer().assert_works();
}

#[test]
fn a_peer_that_does_not_read_is_not_served_on() {
    let server = Server::start();
    let mut lazy = server.peer();
    lazy.stream
        .set_write_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let request = frame(&Command::request(LARGE).with_ext("n", "102400"));
    let mut sent = 0;
    // The 5,000 requests may not even fit into the socket once the server stops reading.
    while sent < 5_000 && lazy.stream.write_all(&request).is_ok() {
        sent += 1;
    }
    let mut other = server.peer();
    for _ in 0..200 {
        other.assert_works();
    }
    // Both sockets' kernel buffers and a group: far below the 5,000 x 100 KiB asked for.
    assert!(server.toy.served.load(Ordering::SeqCst) < 200 + 600);
}

#[test]
fn large_replies_end_their_group_and_the_rest_is_served_once_they_are_read() {
    let server = Server::start();
    let mut lazy = server.peer();
    let requests: Vec<_> = (0..40)
        .map(|index| {
            let large = Command::request(LARGE).with_ext("n", "4000000");
            let small = Command::request(ECHO).with_body("small");
            if index % 10 == 9 { small } else { large }
        })
        .collect();
    let bytes: Vec<u8> = requests
        .iter()
        .flat_map(|cmd| frame(cmd).to_vec())
        .collect();
    lazy.write(&bytes);
    until("the first is served", || {
        server.toy.served.load(Ordering::SeqCst) > 0
    });
    let mut other = server.peer();
    for _ in 0..200 {
        other.assert_works();
    }
    // What both sockets hold and one reply beyond it; all 40 stood in one read.
    let served = server.toy.served.load(Ordering::SeqCst) - 200;
    assert!(served <= 8, "{served} served for a peer that does not read");
    for request in &requests {
        let answer = lazy.receive().unwrap();
        assert_eq!(answer.opaque, request.opaque, "in order, each once");
        let bytes = if request.code == LARGE { 4_000_000 } else { 5 };
        assert_eq!(answer.body.len(), bytes);
    }
    assert_eq!(server.toy.served.load(Ordering::SeqCst), 240);
    lazy.assert_works();
}

#[test]
fn a_peer_that_asks_and_never_reads_is_closed_for_its_silence() {
    let server = Server::with(|options| options.idle_timeout = Duration::from_millis(40));
    let mut lazy = server.peer();
    let request = frame(&Command::request(LARGE).with_ext("n", "4000000"));
    lazy.write(&request.repeat(20));
    until("it is closed", || {
        let stats = server.listener.stats();
        (stats.idle, stats.open) == (1, 0)
    });
    assert_eq!(server.toy.closed.load(Ordering::SeqCst), 1);
    assert!(server.toy.served.load(Ordering::SeqCst) < 20);
}

#[test]
fn replies_from_elsewhere_to_a_peer_that_does_not_read_are_bounded() {
    let server = Server::with(|options| options.outbound_bytes_max = 1 << 20);
    let mut lazy = server.peer();
    lazy.assert_works();
    let conn = server.toy.any_connection().unwrap();
    let reply = Command::success(1).with_body(vec![0; 64 * 1024]);
    let mut outcome = Ok(());
    until("the bound is reached", || {
        outcome = conn.send(&reply);
        outcome.is_err()
    });
    assert_eq!(outcome, Err(SendError::Full { bytes_max: 1 << 20 }));
    until("the connection is closed", || {
        server.listener.stats().open == 0
    });
    assert_eq!(conn.send(&reply), Err(SendError::Closed));
}

#[test]
fn replies_from_another_thread_arrive() {
    let server = Server::start();
    let mut peer = server.peer();
    for _ in 0..10 {
        peer.send(&Command::request(KEEP));
    }
    let mut answered = 0;
    until("all kept requests are there", || {
        answered += server.toy.answer_kept();
        answered == 10
    });
    for _ in 0..10 {
        assert_eq!(&peer.receive().unwrap().body[..], b"kept");
    }
}

#[test]
fn replies_from_other_threads_reach_every_connection_however_they_interleave() {
    let server = Server::start();
    let mut peers: Vec<_> = (0..64).map(|_| server.peer()).collect();
    for round in 0..20 {
        for peer in &mut peers {
            peer.send(&Command::request(KEEP));
        }
        let mut answered = 0;
        until("all kept requests of the round are answered", || {
            let halves = std::thread::scope(|scope| {
                let other = scope.spawn(|| server.toy.answer_kept());
                server.toy.answer_kept() + other.join().unwrap()
            });
            answered += halves;
            answered == peers.len()
        });
        for peer in &mut peers {
            let answer = peer.receive().unwrap();
            assert_eq!(&answer.body[..], b"kept", "round {round}");
        }
    }
}

#[test]
fn the_end_of_a_peer_is_told_to_the_service_once() {
    let server = Server::start();
    let mut peer = server.peer();
    peer.assert_works();
    drop(peer);
    until("closed is called", || {
        server.toy.closed.load(Ordering::SeqCst) == 1
    });
    assert!(server.toy.any_connection().is_none());
    until("the table is empty", || server.listener.stats().open == 0);
}

#[test]
fn silent_connections_are_reaped() {
    let server = Server::with(|options| options.idle_timeout = Duration::from_millis(40));
    let mut peers: Vec<_> = (0..100).map(|_| server.peer()).collect();
    for peer in &mut peers {
        // Half a length word, as in a connection lost in the middle. It may be reaped already.
        let _ = peer.stream.write_all(&[0, 0, 1]);
    }
    for peer in &mut peers {
        assert!(peer.receive().is_none());
    }
    until("none is open", || server.listener.stats().open == 0);
    assert_eq!(server.listener.stats().idle, 100);
}

#[test]
fn connections_beyond_the_bound_are_closed_at_once() {
    let server = Server::with(|options| options.connections_max = 3);
    let mut kept: Vec<_> = (0..3).map(|_| server.peer()).collect();
    kept.iter_mut().for_each(Peer::assert_works);
    assert!(server.peer().receive().is_none());
    assert_eq!(server.listener.stats().refused, 1);
    drop(kept.pop());
    until("a place is free", || server.listener.stats().open == 2);
    server.peer().assert_works();
}

#[test]
fn a_taken_port_is_an_error_that_names_it() {
    let server = Server::start();
    let options = ListenOptions::new(server.listener.local_addr());
    let error = Listener::bind(&server.io, options, Arc::<common::Toy>::default()).unwrap_err();
    assert!(matches!(error, BindError::Listen { .. }));
    assert!(error.to_string().contains(&server.addr()), "{error}");
}

#[test]
fn zero_threads_is_an_error() {
    assert!(IoThreads::start(0, "none").is_err());
}

#[test]
fn pause_lets_answers_leave_and_shutdown_closes() {
    let server = Server::start();
    let mut peer = server.peer();
    peer.send(&Command::request(KEEP));
    until("the request is kept", || {
        !server.toy.kept.lock().unwrap().is_empty()
    });
    server.listener.pause();
    let addr = server.listener.local_addr();
    until("the port is closed", || {
        std::net::TcpStream::connect(addr).is_err()
    });
    server.toy.answer_kept();
    let reader = std::thread::spawn(move || (peer.receive().unwrap(), peer.receive()));
    block_on(server.listener.shutdown());
    let (answer, end) = reader.join().unwrap();
    assert_eq!(&answer.body[..], b"kept");
    assert!(end.is_none());
    assert!(server.toy.any_connection().is_none());
}

#[test]
fn shutdown_does_not_wait_for_a_peer_that_does_not_read() {
    let server = Server::start();
    let mut lazy = server.peer();
    lazy.send(&Command::request(LARGE).with_ext("n", "14000000"));
    until("served", || server.toy.served.load(Ordering::SeqCst) == 1);
    block_on(server.listener.shutdown());
    assert_eq!(server.toy.closed.load(Ordering::SeqCst), 1);
}

#[test]
fn shutdown_sends_a_large_reply_whole_even_with_requests_unread() {
    let server = Server::start();
    let mut peer = server.peer();
    peer.send(&Command::request(LARGE).with_ext("n", "14000000"));
    until("served", || server.toy.served.load(Ordering::SeqCst) == 1);
    for _ in 0..100 {
        peer.send(&Command::request(IGNORE));
    }
    let reader = std::thread::spawn(move || peer.receive().map(|answer| answer.body.len()));
    block_on(server.listener.shutdown());
    assert_eq!(reader.join().unwrap(), Some(14_000_000));
}

#[test]
fn dropping_the_threads_closes_everything() {
    let server = Server::start();
    let mut peer = server.peer();
    peer.assert_works();
    drop(server.io);
    assert!(peer.receive().is_none());
    assert_eq!(server.toy.closed.load(Ordering::SeqCst), 1);
}

#[test]
fn two_hundred_sockets_that_open_and_close_at_random_leave_nothing_behind() {
    let server = Server::start();
    let addr = server.listener.local_addr();
    let threads: Vec<_> = (0..4)
        .map(|seed| {
            std::thread::spawn(move || {
                for round in 0..50_usize {
                    let mut peer = Peer::connect(addr);
                    match (round + seed) % 4 {
                        0 => peer.assert_works(),
                        1 => peer.send(&Command::request(KEEP)),
                        2 => peer.write(&[0, 0, 0]),
                        _ => {}
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    until("all are gone", || {
        server.toy.closed.load(Ordering::SeqCst) == 200
    });
    until("none is open", || server.listener.stats().open == 0);
    assert_eq!(server.listener.stats().accepted, 200);
    server.peer().assert_works();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn requests_cut_anywhere_are_served_once_each(
        sizes in prop::collection::vec(0_usize..40_000, 1..12),
        cuts in prop::collection::vec(1_usize..50_000, 1..20),
    ) {
        let server = Server::start();
        let mut peer = server.peer();
        let requests: Vec<_> = sizes
            .iter()
            .map(|size| Command::request(ECHO).with_body(vec![*size as u8; *size]))
            .collect();
        let bytes: Vec<u8> = requests.iter().flat_map(|cmd| frame(cmd).to_vec()).collect();
        let mut writer = peer.stream.try_clone().unwrap();
        let sender = std::thread::spawn(move || {
            let (mut rest, mut cuts) = (&bytes[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let (now, later) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                writer.write_all(now).unwrap();
                rest = later;
            }
        });
        for request in &requests {
            let answer = peer.receive().unwrap();
            prop_assert_eq!(answer.opaque, request.opaque);
            prop_assert_eq!(&answer.body, &request.body);
        }
        sender.join().unwrap();
    }

    #[test]
    fn random_bytes_never_hurt_another_connection(noise in prop::collection::vec(any::<u8>(), 0..300)) {
        let server = Server::start();
        let mut peer = server.peer();
        let _ = peer.stream.write_all(&noise);
        server.peer().assert_works();
    }
}

#[test]
fn a_reserved_port_is_given_to_nobody_else_and_can_be_listened_on() {
    let reserved = ReservedPort::take("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = reserved.addr();
    assert_ne!(addr.port(), 0);
    // Whoever does not share gets it neither by number …
    let plain = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    assert!(plain.bind(&addr.into()).is_err());
    // … nor by asking for any free one.
    let other = ReservedPort::take("127.0.0.1:0".parse().unwrap()).unwrap();
    assert_ne!(other.addr(), addr);
    let server = Server::with(|options| options.addr = addr);
    drop(reserved);
    server.peer().assert_works();
    assert!(ReservedPort::take(addr).is_err(), "somebody listens there");
}
