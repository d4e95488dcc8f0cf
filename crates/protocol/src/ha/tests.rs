//! Byte tables, round trips, cut and hostile input of the replication stream.

use bytes::BytesMut;
use proptest::prelude::*;

use super::*;

fn replica_bytes(frame: &ReplicaFrame) -> Vec<u8> {
    let mut out = BytesMut::new();
    frame.write(&mut out);
    out.to_vec()
}

#[test]
fn a_replicas_handshake_has_javas_sixteen_bytes() {
    let frame = ReplicaFrame::Handshake {
        sync_from_last_file: true,
        async_learner: false,
        broker_id: 2,
    };
    let bytes = replica_bytes(&frame);
    assert_eq!(bytes, [0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    assert_eq!(take_from_replica(&bytes), Ok(Taken::Frame(frame, 16)));
}

#[test]
fn a_replicas_acknowledgement_has_javas_twelve_bytes() {
    let frame = ReplicaFrame::Transfer { max_offset: 0x0102 };
    let bytes = replica_bytes(&frame);
    assert_eq!(bytes, [0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1, 2]);
    assert_eq!(take_from_replica(&bytes), Ok(Taken::Frame(frame, 12)));
}

#[test]
fn a_masters_handshake_has_javas_twenty_bytes_and_twelve_an_epoch() {
    let epochs = [
        EpochStart {
            epoch: 1,
            start_offset: 0,
        },
        EpochStart {
            epoch: 3,
            start_offset: 256,
        },
    ];
    let mut out = BytesMut::new();
    write_handshake(512, 3, &epochs, &mut out);
    let mut wanted = vec![0, 0, 0, 1, 0, 0, 0, 24];
    wanted.extend([0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3]);
    wanted.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    wanted.extend([0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 1, 0]);
    assert_eq!(out[..], wanted);
    let read = take_from_master(&out);
    let frame = MasterFrame::Handshake {
        max_offset: 512,
        last_epoch: 3,
        epochs: epochs.to_vec(),
    };
    assert_eq!(read, Ok(Taken::Frame(frame, 44)));
}

#[test]
fn a_masters_transfer_has_javas_thirty_six_bytes_and_its_part_of_the_log() {
    let head = TransferHead {
        offset: 256,
        epoch: 3,
        epoch_start: 16,
        confirm_offset: 255,
    };
    let mut out = BytesMut::new();
    head.write(2, &mut out);
    out.extend_from_slice(b"ab");
    let mut wanted = vec![0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1, 0];
    wanted.extend([0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 16]);
    wanted.extend([0, 0, 0, 0, 0, 0, 0, 255, b'a', b'b']);
    assert_eq!(out[..], wanted);
    let frame = MasterFrame::Transfer { head, body: b"ab" };
    assert_eq!(take_from_master(&out), Ok(Taken::Frame(frame, 38)));
}

#[test]
fn scanners_and_lengths_that_no_peer_sends_are_refused_with_the_first_bytes() {
    assert!(matches!(
        take_from_replica(b"GET / HTTP/1.1"),
        Err(HaError::State(_))
    ));
    assert!(matches!(take_from_master(b"POST"), Err(HaError::State(_))));
    for states in [[0, 0, 0, 0], [0, 0, 0, 3], [0, 0, 0, 4], [255; 4]] {
        assert!(take_from_replica(&states).is_err());
        assert!(take_from_master(&states).is_err());
    }
    for length in [[0xFF, 0xFF, 0xFF, 0xFF], [0x7F, 0xFF, 0xFF, 0xFF]] {
        for state in [1, 2] {
            let mut bytes = vec![0, 0, 0, state];
            bytes.extend(length);
            assert!(matches!(
                take_from_master(&bytes),
                Err(HaError::Range { .. })
            ));
        }
    }
    let negative = [0, 0, 0, 2, 255, 255, 255, 255, 255, 255, 255, 255];
    assert!(matches!(
        take_from_replica(&negative),
        Err(HaError::Range { .. })
    ));
    let flag = [0, 0, 0, 1, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    assert!(matches!(
        take_from_replica(&flag),
        Err(HaError::Range { .. })
    ));
}

#[test]
fn epochs_that_do_not_rise_are_refused() {
    let mut out = BytesMut::new();
    let twice = EpochStart {
        epoch: 1,
        start_offset: 0,
    };
    write_handshake(0, 1, &[twice, twice], &mut out);
    assert!(matches!(
        take_from_master(&out),
        Err(HaError::Epochs { .. })
    ));
}

#[test]
fn the_epoch_file_has_javas_text() {
    let entries = [
        EpochStart {
            epoch: 7,
            start_offset: 7000,
        },
        EpochStart {
            epoch: 8,
            start_offset: 8000,
        },
    ];
    let text = "2\n773307083\n7-7000\n8-8000\n";
    assert_eq!(write_epoch_file(&entries), text);
    assert_eq!(read_epoch_file(text.as_bytes()), Ok(entries.to_vec()));
    assert_eq!(
        read_epoch_file(b"2\n0\n7-7000\n8-8000\n"),
        Ok(entries.to_vec()),
        "0 is not checked"
    );
    assert_eq!(read_epoch_file(b"0\n0\n"), Ok(Vec::new()));
    let dos = "2\r\n773307083\r\n7-7000\r\n8-8000\r\n";
    assert_eq!(read_epoch_file(dos.as_bytes()), Ok(entries.to_vec()));
}

#[test]
fn a_changed_epoch_file_gives_nothing() {
    let cases: [&[u8]; 9] = [
        b"",
        b"x\n0\n",
        b"1\n",
        b"1\nx\n7-7000\n",
        b"2\n773307083\n7-7000\n8-8001\n",
        b"2\n773307083\n7-7000\n",
        b"1\n0\n7000\n",
        b"2\n0\n8-8000\n7-7000\n",
        b"1\n0\n7--1\n",
    ];
    for case in cases {
        let read = read_epoch_file(case);
        assert!(
            read.is_err(),
            "{:?} gave {read:?}",
            String::from_utf8_lossy(case)
        );
    }
    assert_eq!(
        read_epoch_file(&vec![b'1'; EPOCH_FILE_BYTES_MAX + 1]),
        Err(EpochFileError::TooLong(EPOCH_FILE_BYTES_MAX + 1))
    );
}

fn replica_frame() -> impl Strategy<Value = ReplicaFrame> {
    prop_oneof![
        ("[a-zA-Z0-9_.-]{1,100}", 0..i64::MAX, any::<i32>()).prop_filter_map(
            "a name",
            |(group, broker_id, master_epoch)| {
                let group = rmq_types::BrokerName::parse(&group).ok()?;
                Some(ReplicaFrame::Hello(Hello {
                    group,
                    broker_id,
                    master_epoch,
                }))
            }
        ),
        (any::<bool>(), any::<bool>(), 0..i64::MAX).prop_map(
            |(sync_from_last_file, async_learner, broker_id)| ReplicaFrame::Handshake {
                sync_from_last_file,
                async_learner,
                broker_id,
            }
        ),
        (0..i64::MAX).prop_map(|max_offset| ReplicaFrame::Transfer { max_offset }),
    ]
}

fn epochs() -> impl Strategy<Value = Vec<EpochStart>> {
    prop::collection::vec((1..5_i32, 0..1000_i64), 0..20).prop_map(|steps| {
        let mut at = EpochStart {
            epoch: 0,
            start_offset: 0,
        };
        let entries = steps.into_iter().map(|(epoch, bytes)| {
            at.epoch += epoch;
            at.start_offset += bytes;
            at
        });
        entries.collect()
    })
}

proptest! {
    #[test]
    fn replica_frames_survive_and_every_cut_of_them_is_incomplete(
        frame in replica_frame(), cut in 0_usize..200, after in prop::collection::vec(any::<u8>(), 0..8),
    ) {
        let mut bytes = replica_bytes(&frame);
        let length = bytes.len();
        if cut < length {
            let taken = take_from_replica(&bytes[..cut]).unwrap();
            let Taken::Incomplete { needed } = taken else { panic!("a frame of a part") };
            prop_assert!(needed > cut && needed <= length);
        }
        bytes.extend(after);
        prop_assert_eq!(take_from_replica(&bytes), Ok(Taken::Frame(frame, length)));
    }

    #[test]
    fn master_frames_survive_and_every_cut_of_them_is_incomplete(
        epochs in epochs(),
        body in prop::collection::vec(any::<u8>(), 0..100),
        numbers in (0..1_i64 << 60, any::<i32>(), 0..1_i64 << 60, -1..1_i64 << 60),
        cut in 0_usize..400,
    ) {
        let (offset, epoch, epoch_start, confirm_offset) = numbers;
        let head = TransferHead { offset, epoch, epoch_start, confirm_offset };
        let mut transfer = BytesMut::new();
        head.write(body.len() as u32, &mut transfer);
        transfer.extend_from_slice(&body);
        let length = transfer.len();
        prop_assert_eq!(
            take_from_master(&transfer),
            Ok(Taken::Frame(MasterFrame::Transfer { head, body: &body }, length))
        );
        let mut handshake = BytesMut::new();
        write_handshake(offset, epoch, &epochs, &mut handshake);
        let whole = MasterFrame::Handshake { max_offset: offset, last_epoch: epoch, epochs };
        let length = handshake.len();
        prop_assert_eq!(take_from_master(&handshake), Ok(Taken::Frame(whole, length)));
        for bytes in [transfer, handshake] {
            if cut < bytes.len() {
                let taken = take_from_master(&bytes[..cut]).unwrap();
                let Taken::Incomplete { needed } = taken else { panic!("a frame of a part") };
                prop_assert!(needed > cut && needed <= bytes.len());
            }
        }
    }

    #[test]
    fn any_bytes_give_a_frame_inside_the_buffer_or_an_error(
        state in prop_oneof![Just(1_u8), Just(2), Just(0x52)],
        mut bytes in prop::collection::vec(any::<u8>(), 4..80),
    ) {
        bytes[..4].copy_from_slice(&[0, 0, 0, state]);
        if let Ok(Taken::Frame(_, length)) = take_from_replica(&bytes) {
            prop_assert!(length <= bytes.len());
        }
        if let Ok(Taken::Frame(_, length)) = take_from_master(&bytes) {
            prop_assert!(length <= bytes.len());
        }
    }

    #[test]
    fn the_epoch_file_gives_back_what_was_written_and_notices_a_flipped_digit(
        epochs in epochs(), at in any::<prop::sample::Index>(),
    ) {
        let text = write_epoch_file(&epochs);
        prop_assert_eq!(read_epoch_file(text.as_bytes()), Ok(epochs.clone()));
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        if bytes[at].is_ascii_digit() {
            bytes[at] = b'0' + (bytes[at] - b'0' + 1) % 10;
            if let Ok(read) = read_epoch_file(&bytes) {
                // Only a checksum that becomes 0 is not noticed.
                prop_assert!(read == epochs, "{read:?}");
            }
        }
    }
}
