//! Targets for frames and headers, of both serializers.
//!
//! **Invariant:** what was read and is written again, in either serializer, reads as the same; no
//! frame reaches beyond the bytes there are, and no header's text is longer than its bytes allow.
//! Bodies are not looked into here.

use bytes::{Bytes, BytesMut};
use rmq_types::limits::HEADER_BYTES_MAX;

use crate::{
    header::{self, DecodeHeader, EncodeHeader},
    remoting::{
        Command, ExtFields, FRAME_PREFIX_BYTES, Header, RawFrame, Serializer, Split, split_frame,
    },
};

/// Longest frame that [`fuzz_frames`] takes: small, so that random lengths meet the limit.
const FRAME_MAX: usize = 64 * 1024;
/// A byte that is no UTF-8 becomes a replacement character of three.
const TEXT_GROWTH_MAX: usize = 3;
/// The shortest field there is: `"":1`, its comma left out.
const FIELD_BYTES_MIN: usize = 4;

/// Any bytes are split into frames that lie inside of them, wait for more bytes than there are, or
/// are refused; whatever has a header is written and split again as the same.
pub fn fuzz_frames(data: &[u8]) {
    let mut rest = data;
    loop {
        match split_frame(rest, FRAME_MAX) {
            Err(_) => return,
            Ok(Split::Incomplete { needed }) => {
                assert!(needed > rest.len(), "what is there is not waited for");
                assert!(needed <= FRAME_MAX + 4, "no frame beyond the limit");
                return;
            }
            Ok(Split::Frame { frame, consumed }) => {
                let whole = &rest[..consumed];
                let parts = FRAME_PREFIX_BYTES + frame.header.len() + frame.body.len();
                assert_eq!(consumed, parts, "the parts fill the frame");
                prefixes(whole);
                frame_again(frame);
                rest = &rest[consumed..];
            }
        }
    }
}

/// A frame without its last byte asks for exactly the frame; with any further byte it is the same.
fn prefixes(whole: &[u8]) {
    let cut = split_frame(&whole[..whole.len() - 1], FRAME_MAX);
    assert!(
        matches!(cut, Ok(Split::Incomplete { needed }) if needed == whole.len()),
        "a cut frame is incomplete, not {cut:?}"
    );
    let longer = [whole, &[0xFF]].concat();
    let same = split_frame(&longer, FRAME_MAX);
    assert!(
        matches!(same, Ok(Split::Frame { consumed, .. }) if consumed == whole.len()),
        "what follows a frame changes nothing, not {same:?}"
    );
}

fn frame_again(frame: RawFrame<'_>) {
    fuzz_header(frame.serializer, frame.header);
    let Ok(command) = Command::decode(frame) else {
        return;
    };
    assert_eq!(&command.body[..], frame.body);
    written_again(&command, Serializer::Json);
    written_again(&command, Serializer::Binary);
}

/// Any bytes are refused as a JSON header or read as one that survives being written.
pub fn fuzz_json_header(data: &[u8]) {
    fuzz_header(Serializer::Json, data);
}

/// Any bytes are refused as a binary header or read as one that survives being written.
pub fn fuzz_binary_header(data: &[u8]) {
    fuzz_header(Serializer::Binary, data);
}

fn fuzz_header(serializer: Serializer, data: &[u8]) {
    let Ok(header) = Header::decode(serializer, data) else {
        return;
    };
    let fields: usize = header.ext.iter().map(|(k, v)| k.len() + v.len()).sum();
    let text = fields + header.remark.as_deref().map_or(0, str::len);
    assert!(text <= TEXT_GROWTH_MAX * data.len(), "text is bounded");
    let most = data.len() / FIELD_BYTES_MIN;
    assert!(header.ext.len() <= most, "the number of fields is bounded");
    typed(&header.ext);
    let command = Command::from_parts(header, Bytes::from_static(b"body"));
    written_again(&command, Serializer::Json);
    written_again(&command, Serializer::Binary);
}

/// Writes a command and reads it again.
fn written_again(command: &Command, wanted: Serializer) {
    let mut out = BytesMut::new();
    command.encode(wanted, &mut out);
    let split = split_frame(&out, out.len());
    let Ok(Split::Frame { frame, consumed }) = split else {
        // Escapes make a header longer; one that was near the limit may pass it.
        let header_bytes = out.len() - command.body.len() - FRAME_PREFIX_BYTES;
        assert!(header_bytes > HEADER_BYTES_MAX, "our own frame: {split:?}");
        return;
    };
    assert_eq!(consumed, out.len(), "one frame, nothing behind it");
    let again = Command::decode(frame).expect("our own header is read");
    let is_binary = frame.serializer == Serializer::Binary;
    assert_eq!(
        (again.flag, again.opaque, again.language, again.version),
        (
            command.flag,
            command.opaque,
            command.language,
            command.version
        )
    );
    assert_eq!(again.body, command.body);
    if is_binary {
        // 16 bits of the code are written; the reader may know which longer code they stand for.
        assert_eq!(again.code as i16, command.code as i16);
        let remark = command.remark.as_deref().filter(|text| !text.is_empty());
        assert_eq!(again.remark.as_deref(), remark);
        let named = command.ext.iter().filter(|(name, _)| !name.is_empty());
        assert!(again.ext.iter().eq(named), "fields survive");
    } else {
        assert_eq!(again.code, command.code);
        assert_eq!(again.remark, command.remark);
        assert_eq!(again.ext, command.ext);
    }
    typed(&again.ext);
}

/// Every typed header that reads from the fields reads the same from what it writes.
fn typed(ext: &ExtFields<'_>) {
    macro_rules! trips {
        ($($name:ident)+) => { $(
            if let Ok(value) = header::$name::decode(ext) {
                let mut written = ExtFields::new();
                value.encode(&mut written);
                let again = header::$name::decode(&written);
                assert_eq!(again.as_ref(), Ok(&value), "a typed header survives");
            }
        )+ };
    }
    trips! {
        UnregisterClient ConsumerGroupHeader ProducerGroupHeader GetConsumerRunningInfo
        ConsumeDirectly GetConsumerStatus GroupHeader GetAllGroups DeleteGroup GroupForbidden
        GetRoute RegisterBroker RegisterBrokerResponse BrokerHeader QueryDataVersionResponse
        BrokerHeartbeat GetBrokerMemberGroup DeleteTopicFromNameServer GetTopicsByCluster
        BrokerNameHeader WipeWritePermResponse AddWritePermResponse PutKv KvKey GetKvResponse
        KvNamespace NotifyMinBrokerIdChange QueryConsumerOffset UpdateConsumerOffset SearchOffset
        GetMaxOffset QueueHeader OffsetResponse TimestampResponse ResetOffset CloneGroupOffset
        QueryCorrectionOffset PullMessage PullMessageResponse ViewMessage QueryMessage
        QueryMessageResponse QueryConsumeQueue SendMessageV1 SendMessageV2 SendMessageResponse
        PushReplyMessage SendBack EndTransaction RecallMessage GetConsumeStats
        GetBrokerConsumeStats ViewBrokerStats QueryConsumeTimeSpan QuerySubscription CreateTopic
        TopicHeader GetAllTopics
    }
}
