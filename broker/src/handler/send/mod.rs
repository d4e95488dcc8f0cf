//! Sends: codes 10, 310 and 320, alone or in groups.
//!
//! All sends that one read brought are checked, then appended under one lock of the store, then
//! answered in one write. A send whose topic or group must be made first is taken by a worker.

mod check;
mod delay;
mod prepare;
mod scan;

use std::{sync::Arc, time::Instant};

use bytes::BytesMut;
use rmq_net::{Connection, Outbox, Request};
use rmq_protocol::{
    message::OffsetId,
    remoting::{Command, Header, ResponseWriter, request_code, response_code},
};
use rmq_store::{AppendError, Appended};
use rmq_types::{CommitLogOffset, Timestamp};

use crate::{
    answer::Failure,
    config::{FlushDiskType, Settings},
    core::Core,
    handler::Call,
    metrics::{Answered, Outcome, Tally, TopicTraffic},
    parked::ParkedGroup,
    stats::Stats,
};

use check::topic_for_send;
pub(crate) use delay::rest;
pub(crate) use prepare::{Group, Prepared, Refusal};

/// Whether a code is one of the sends that go in groups.
pub(crate) const fn is_send(code: i32) -> bool {
    matches!(
        code,
        request_code::SEND_MESSAGE
            | request_code::SEND_MESSAGE_V2
            | request_code::SEND_BATCH_MESSAGE
    )
}

/// What is needed to answer one send.
#[derive(Debug)]
pub(crate) struct SendReply {
    /// Number of the request.
    pub opaque: i32,
    /// Its code.
    pub code: i32,
    /// Offset ids of all its messages.
    pub msg_id: String,
    /// The queue.
    pub queue_id: u32,
    /// Index of its first message.
    pub queue_offset: u64,
    /// Unique key of its first message.
    pub transaction_id: String,
}

/// Serves consecutive sends of one connection.
pub(crate) fn serve(
    core: &Arc<Core>,
    (conn, since): (&Arc<Connection>, Instant),
    requests: &[Request<'_>],
    out: &mut Outbox,
) {
    let mut tally = Tally::new(&core.rpc, since);
    let settings = core.settings.get();
    let now = core.now();
    if let Some(failure) = refusal(core, &settings, now) {
        for request in requests {
            tally.add(answered(&request.header, failure.code));
            if request.wants_reply() {
                write_failure(out.buffer(), request.header.opaque, &failure);
            }
        }
        return;
    }
    let mut group = Group::new(core, &settings, now);
    for request in requests {
        let call = Call {
            conn,
            header: &request.header,
            body: request.body,
            since,
        };
        match group.add(&call) {
            Ok(()) => {}
            Err(Refusal::NeedsWork) => defer(core, &call, out),
            Err(Refusal::Failure(failure)) => {
                core.stats.put_failures.add(1, 1);
                tally.add(call.answered(failure.code));
                if request.wants_reply() {
                    write_failure(out.buffer(), request.header.opaque, &failure);
                }
            }
        }
    }
    let late = finish(core, (&settings, &mut tally), group, out.buffer());
    park(core, &settings, (conn, since), late);
}

/// Runs one send on a worker, where its topic may be made.
fn defer(core: &Arc<Core>, call: &Call<'_>, out: &mut Outbox) {
    let owned = (
        Arc::clone(core),
        Arc::clone(call.conn),
        call.header.clone().into_owned(),
    );
    let since = call.since;
    let body = bytes::Bytes::copy_from_slice(call.body);
    let queue_max = core.settings.get().admin_queue_capacity.get() as usize;
    let outcome = core.workers.run(queue_max, move || {
        let (core, conn, header) = owned;
        let call = Call {
            conn: &conn,
            header: &header,
            body: &body,
            since,
        };
        serve_off_thread(&core, &call);
    });
    if let Err(failure) = outcome {
        let answered = call.answered(failure.code);
        core.rpc.record(answered, since.elapsed(), 1);
        if !call.header.is_oneway() {
            write_failure(out.buffer(), call.header.opaque, &failure);
        }
    }
}

fn serve_off_thread(core: &Arc<Core>, call: &Call<'_>) {
    let settings = core.settings.get();
    let mut tally = Tally::new(&core.rpc, call.since);
    let mut out = BytesMut::new();
    let mut group = Group::on_worker(core, &settings, core.now());
    let failure = topic_for_send(core, &settings, call)
        .and_then(|()| match group.add(call) {
            Ok(()) => Ok(()),
            Err(Refusal::Failure(failure)) => Err(failure),
            Err(Refusal::NeedsWork) => Err(Failure::system("the topic was deleted meanwhile")),
        })
        .err();
    if let Some(failure) = failure {
        core.stats.put_failures.add(1, 1);
        tally.add(call.answered(failure.code));
        if !call.header.is_oneway() {
            write_failure(&mut out, call.header.opaque, &failure);
        }
    } else {
        let late = finish(core, (&settings, &mut tally), group, &mut out);
        park(core, &settings, (call.conn, call.since), late);
    }
    if !out.is_empty() {
        let _ = call.conn.send_frame(&out);
    }
}

/// Why no send is taken at all right now.
fn refusal(core: &Core, settings: &Settings, now: Timestamp) -> Option<Failure> {
    if core.is_stopping() {
        return Some(Failure::new(
            response_code::SERVICE_NOT_AVAILABLE,
            "the broker is shutting down, retry another one",
        ));
    }
    if now.millis() < settings.start_accept_send_request_time_stamp.get() {
        return Some(Failure::system(
            "broker unable to service, until the configured time",
        ));
    }
    if settings.flush_disk_type == FlushDiskType::Sync
        && core.parked.len() >= settings.parked_sends_max.get() as usize
    {
        return Some(Failure::new(
            response_code::SYSTEM_BUSY,
            "[REJECTREQUEST]system busy, start flow control for a while",
        ));
    }
    None
}

/// Appends a group and answers what can be answered now; gives back what waits for its flush.
fn finish(
    core: &Core,
    (settings, tally): (&Settings, &mut Tally<'_>),
    group: Group<'_>,
    out: &mut BytesMut,
) -> Option<(CommitLogOffset, Vec<SendReply>)> {
    let appended = group.append(core);
    let sync = settings.flush_disk_type == FlushDiskType::Sync;
    let mut late: Option<(CommitLogOffset, Vec<SendReply>)> = None;
    let mut traffic = LastTopic::new(&core.stats);
    for (prepared, results) in appended.iter() {
        let first = match outcome(results) {
            Ok(first) => first,
            Err(error) => {
                core.stats.put_failures.add(1, 1);
                let failure = Failure::from(error);
                tally.add(prepared.answered(failure.code));
                if prepared.wants_reply {
                    write_failure(out, prepared.opaque, &failure);
                }
                continue;
            }
        };
        traffic.count(prepared, results);
        if !prepared.wants_reply {
            tally.add(prepared.answered(response_code::SUCCESS));
            continue;
        }
        if sync && prepared.wait {
            let end = results.iter().flatten().map(|appended| appended.end).max();
            let entry = late.get_or_insert_with(|| (first.end, Vec::new()));
            entry.0 = entry.0.max(end.unwrap_or(first.end));
            entry.1.push(reply(core, prepared, first, results));
            continue;
        }
        tally.add(prepared.answered(response_code::SUCCESS));
        if results.len() == 1 {
            write_single(core, settings, prepared, first, out);
        } else {
            write_reply(
                settings,
                &reply(core, prepared, first, results),
                response_code::SUCCESS,
                out,
            );
        }
    }
    late
}

fn answered(header: &Header<'_>, response: i32) -> Answered {
    Answered {
        request: header.code,
        response,
        held: false,
        outcome: Outcome::of(header.is_oneway()),
    }
}

fn outcome(results: &[Result<Appended, AppendError>]) -> Result<&Appended, &AppendError> {
    if let Some(Err(error)) = results.iter().find(|result| result.is_err()) {
        return Err(error);
    }
    match results.first() {
        Some(Ok(first)) => Ok(first),
        Some(Err(error)) => Err(error),
        None => Err(&AppendError::ShutDown),
    }
}

fn park(
    core: &Core,
    settings: &Settings,
    (conn, since): (&Arc<Connection>, Instant),
    late: Option<(CommitLogOffset, Vec<SendReply>)>,
) {
    let Some((end, replies)) = late else { return };
    let deadline = core.now().plus_millis(settings.sync_flush_timeout.get());
    core.parked.park(ParkedGroup {
        end,
        since,
        deadline,
        conn: Arc::clone(conn),
        replies,
    });
    // The flush may have passed before the group was parked.
    let durable = core.store.durable_offset();
    if durable >= end {
        crate::arrival::answer_parked(core, core.parked.take_durable(durable));
    }
}

/// Counts what was stored; sends of one read mostly go to one topic, which is looked up once.
struct LastTopic<'a> {
    stats: &'a Stats,
    last: Option<Arc<TopicTraffic>>,
}

impl<'a> LastTopic<'a> {
    fn new(stats: &'a Stats) -> Self {
        Self { stats, last: None }
    }

    fn count(&mut self, prepared: &Prepared<'_>, results: &[Result<Appended, AppendError>]) {
        let topic = prepared.stored_in();
        let messages = results.len() as u64;
        let sizes = results.iter().flatten();
        let bytes = sizes.map(|appended| u64::from(appended.bytes)).sum();
        let traffic = match self.last.take() {
            Some(last) if last.topic() == topic => last,
            _ => self.stats.topic(topic),
        };
        traffic.add(prepared.kind, messages, bytes);
        self.last = Some(traffic);
        self.stats.stored_anywhere(topic, messages, bytes);
    }
}

fn reply(
    core: &Core,
    prepared: &Prepared<'_>,
    first: &Appended,
    results: &[Result<Appended, AppendError>],
) -> SendReply {
    let mut msg_id = String::with_capacity(33 * results.len());
    for appended in results.iter().flatten() {
        if !msg_id.is_empty() {
            msg_id.push(',');
        }
        offset_id(core, appended.offset).write(&mut msg_id);
    }
    SendReply {
        opaque: prepared.opaque,
        code: prepared.code,
        msg_id,
        queue_id: prepared.answer_queue,
        queue_offset: first.queue_offset.get(),
        transaction_id: prepared.unique_key.clone(),
    }
}

pub(crate) fn offset_id(core: &Core, offset: CommitLogOffset) -> OffsetId {
    OffsetId {
        host: core.identity.address,
        offset: offset.get() as i64,
    }
}

/// The hot answer: one message, nothing kept.
fn write_single(
    core: &Core,
    settings: &Settings,
    prepared: &Prepared<'_>,
    first: &Appended,
    out: &mut BytesMut,
) {
    let mut id = String::with_capacity(56);
    offset_id(core, first.offset).write(&mut id);
    write_fields(
        settings,
        out,
        (prepared.opaque, response_code::SUCCESS),
        &id,
        (prepared.answer_queue, first.queue_offset.get()),
        &prepared.unique_key,
    );
}

/// Writes the answer to a send that is stored.
pub(crate) fn write_reply(settings: &Settings, reply: &SendReply, code: i32, out: &mut BytesMut) {
    write_fields(
        settings,
        out,
        (reply.opaque, code),
        &reply.msg_id,
        (reply.queue_id, reply.queue_offset),
        &reply.transaction_id,
    );
}

fn write_fields(
    settings: &Settings,
    out: &mut BytesMut,
    (opaque, code): (i32, i32),
    msg_id: &str,
    (queue_id, queue_offset): (u32, u64),
    transaction_id: &str,
) {
    out.reserve(384);
    let mut writer = ResponseWriter::new(out, opaque, code);
    writer
        .text("MSG_REGION", &settings.region_id)
        .text("TRACE_ON", if settings.trace_on { "true" } else { "false" })
        .text("msgId", msg_id)
        .number("queueId", i64::from(queue_id))
        .number("queueOffset", queue_offset as i64);
    if !transaction_id.is_empty() {
        writer.text("transactionId", transaction_id);
    }
    writer.finish(None, []);
}

/// Writes a refusal.
pub(crate) fn write_failure(out: &mut BytesMut, opaque: i32, failure: &Failure) {
    Command::response(opaque, failure.code)
        .with_remark(failure.remark.as_str())
        .encode(rmq_protocol::remoting::Serializer::Json, out);
}
