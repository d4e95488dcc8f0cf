//! Popping (200050), and asking whether there is something to pop (200054), with long polling.
//!
//! A pop that finds nothing waits in `pop::waits`; an arrival, a redelivery or an ordered batch that
//! is free again makes it look once more. **Invariant:** who is put among the waiting looks once
//! more afterwards, so nothing that came in between is waited for; and who is woken while others are
//! served on the same thread waits for its turn, so waking never goes deep.

mod ack;
mod admit;
mod answer;
mod change;
mod look;

use std::{cell::RefCell, sync::Arc, time::Instant};

use bytes::BytesMut;
use rmq_net::{Connection, Outbox};
use rmq_pop::polls::{Patience, PollingFull, patience};
use rmq_protocol::remoting::{request_code, response_code};
use rmq_types::Moment;

pub(crate) use ack::batch_ack;
pub(crate) use look::{polling_info, rollback};

use super::{Call, send::write_failure};
use crate::{
    answer::Failure,
    core::Core,
    metrics::{Answered, Outcome},
    pop::{Held, Wish, WishKind, is_ready, take},
};
use ack::ack;
use admit::{Admitted, admit, group_of};
use change::change_invisible;
use look::peek;

/// Looks at the queues before a pop is put among the waiting, or answered.
const ROUNDS: usize = 4;

/// Whether a code is one of those that may wait.
pub(crate) const fn is_pop(code: i32) -> bool {
    matches!(code, request_code::POP_MESSAGE | request_code::NOTIFICATION)
}

/// Whether a code is served by functions that write their answers themselves.
pub(crate) const fn is_direct(code: i32) -> bool {
    is_pop(code)
        || matches!(
            code,
            request_code::ACK_MESSAGE
                | request_code::PEEK_MESSAGE
                | request_code::CHANGE_MESSAGE_INVISIBLETIME
        )
}

/// Serves a request whose code is direct.
pub(crate) fn serve_direct(core: &Arc<Core>, call: &Call<'_>, out: &mut Outbox) {
    let wants_reply = !call.header.is_oneway();
    match call.header.code {
        request_code::ACK_MESSAGE => ack(core, call, out.buffer()),
        request_code::CHANGE_MESSAGE_INVISIBLETIME => change_invisible(core, call, out),
        // The others take nothing back: without an answer they mean nothing.
        request_code::PEEK_MESSAGE if wants_reply => peek(core, call, out),
        _ if wants_reply => serve(core, call, out),
        _ => {}
    }
}

/// Who asks.
#[derive(Clone, Debug)]
struct Asker {
    conn: Arc<Connection>,
    opaque: i32,
    code: i32,
    since: Instant,
    held: bool,
}

/// Serves one pop or notification.
fn serve(core: &Arc<Core>, call: &Call<'_>, out: &mut Outbox) {
    match admit(core, call) {
        Ok(Some(admitted)) => begin(core, call, admitted, out.buffer()),
        Ok(None) => defer(core, call, out),
        Err(failure) => refuse(core, call, &failure, out.buffer()),
    }
}

fn begin(core: &Core, call: &Call<'_>, admitted: Admitted, out: &mut BytesMut) {
    let asker = Asker {
        conn: Arc::clone(call.conn),
        opaque: call.header.opaque,
        code: call.header.code,
        since: call.since,
        held: false,
    };
    let now = core.pops.now(core);
    let until = match patience(now, admitted.born, admitted.poll_millis) {
        Patience::Until(deadline) if !core.is_stopping() => Some(deadline),
        Patience::Until(_) | Patience::None => None,
    };
    attempt(core, &asker, admitted.wish, until, out);
}

fn refuse(core: &Core, call: &Call<'_>, failure: &Failure, out: &mut BytesMut) {
    write_failure(out, call.header.opaque, failure);
    let answered = call.answered(failure.code);
    core.rpc.record(answered, call.since.elapsed(), 1);
}

/// A pop whose group must be made first.
fn defer(core: &Arc<Core>, call: &Call<'_>, out: &mut Outbox) {
    let outcome = on_worker(core, call, |core, call, buffer| {
        let group = group_of(call.header);
        let admitted = core.find_group(&group).and_then(|_| {
            let admitted = admit(core, call)?;
            admitted.ok_or_else(|| Failure::no_group(&group))
        });
        match admitted {
            Ok(admitted) => begin(core, call, admitted, buffer),
            Err(failure) => refuse(core, call, &failure, buffer),
        }
    });
    if let Err(failure) = outcome {
        refuse(core, call, &failure, out.buffer());
    }
}

/// Runs `job` on a worker, since it may wait for the disk, and sends what it writes; an error if too
/// many wait already.
fn on_worker(
    core: &Arc<Core>,
    call: &Call<'_>,
    job: impl FnOnce(&Arc<Core>, &Call<'_>, &mut BytesMut) + Send + 'static,
) -> Result<(), Failure> {
    let (shared, conn) = (Arc::clone(core), Arc::clone(call.conn));
    let (header, since) = (call.header.clone().into_owned(), call.since);
    let queue_max = core.settings.get().admin_queue_capacity.get() as usize;
    core.workers.run(queue_max, move || {
        let call = Call {
            conn: &conn,
            header: &header,
            body: &[],
            since,
        };
        let mut buffer = BytesMut::new();
        job(&shared, &call, &mut buffer);
        if !buffer.is_empty() {
            let _ = conn.send_frame(&buffer);
        }
    })
}

/// Answers with what there is, or lets the request wait.
fn attempt(core: &Core, asker: &Asker, wish: Wish, until: Option<Moment>, out: &mut BytesMut) {
    let mut wish = wish;
    for _ in 0..ROUNDS {
        if try_answer(core, asker, &wish, out) {
            return;
        }
        let Some(deadline) = until else { break };
        let held = Held {
            conn: Arc::clone(&asker.conn),
            opaque: asker.opaque,
            code: asker.code,
            since: asker.since,
            deadline,
            wish: wish.clone(),
        };
        let id = match core.pops.waits.hold(held) {
            Ok(id) => id,
            Err((_, full)) => {
                answer_full(core, asker, &wish, full, out);
                return;
            }
        };
        core.pops.alarms.note_deadline(deadline);
        if !asker.conn.is_open() {
            core.pops.waits.forget(asker.conn.id().0);
            return;
        }
        if !is_ready(core, &wish) {
            return;
        }
        // Whoever took it meanwhile answers it.
        let Some(held) = core.pops.waits.cancel(id) else {
            return;
        };
        wish = held.wish;
    }
    answer_nothing(core, asker, &wish, out);
}

/// Answers if there is something.
fn try_answer(core: &Core, asker: &Asker, wish: &Wish, out: &mut BytesMut) -> bool {
    match wish.kind {
        WishKind::Notification => {
            if !is_ready(core, wish) {
                return false;
            }
            answer::notification(asker.opaque, (true, false), out);
        }
        WishKind::Pop { .. } => {
            let taken = take(core, wish);
            if taken.count == 0 {
                return false;
            }
            if wish.order {
                core.pops.note_order();
            }
            answer::messages(core, asker.opaque, wish, &taken, out);
            if taken.rest > 0 {
                // There is something for another one too.
                let (topic, group) = (&wish.topic.topic_name, &wish.group.group_name);
                let woken = core.pops.waits.wake(topic, group, wish.queue);
                serve_woken(core, woken);
            }
        }
    }
    note(core, asker, response_code::SUCCESS);
    true
}

fn answer_nothing(core: &Core, asker: &Asker, wish: &Wish, out: &mut BytesMut) {
    let code = match wish.kind {
        WishKind::Notification => {
            answer::notification(asker.opaque, (false, false), out);
            response_code::SUCCESS
        }
        WishKind::Pop { .. } => {
            let failure = Failure::new(response_code::POLLING_TIMEOUT, "no message came in time");
            write_failure(out, asker.opaque, &failure);
            failure.code
        }
    };
    note(core, asker, code);
}

fn answer_full(core: &Core, asker: &Asker, wish: &Wish, full: PollingFull, out: &mut BytesMut) {
    let code = match wish.kind {
        WishKind::Notification => {
            answer::notification(asker.opaque, (false, true), out);
            response_code::SUCCESS
        }
        WishKind::Pop { .. } => {
            let failure = Failure::new(response_code::POLLING_FULL, full.to_string());
            write_failure(out, asker.opaque, &failure);
            failure.code
        }
    };
    note(core, asker, code);
}

fn note(core: &Core, asker: &Asker, response: i32) {
    let answered = Answered {
        request: asker.code,
        response,
        held: asker.held,
        outcome: Outcome::Success,
    };
    core.rpc.record(answered, asker.since.elapsed(), 1);
}

thread_local! {
    /// Those that are to be served on this thread; `None` while nobody is.
    static WOKEN: RefCell<Option<Vec<Held>>> = const { RefCell::new(None) };
}

/// Lets those that were woken look again.
pub(crate) fn serve_woken(core: &Core, woken: Vec<Held>) {
    if woken.is_empty() {
        return;
    }
    let first = WOKEN.with_borrow_mut(|list| {
        let first = list.is_none();
        list.get_or_insert_default().extend(woken);
        first
    });
    if !first {
        return;
    }
    while let Some(held) = WOKEN.with_borrow_mut(|list| list.as_mut().and_then(Vec::pop)) {
        let deadline = held.deadline;
        look_again(core, held, Some(deadline));
    }
    WOKEN.set(None);
}

/// Answers one whose wait is over, with what there is.
pub(crate) fn answer_now(core: &Core, held: Held) {
    look_again(core, held, None);
}

/// Answers one without looking, for the shutdown.
pub(crate) fn answer_last(core: &Core, held: &Held) {
    let mut out = BytesMut::new();
    answer_nothing(core, &asker_of(held), &held.wish, &mut out);
    let _ = held.conn.send_frame(&out);
}

fn asker_of(held: &Held) -> Asker {
    Asker {
        conn: Arc::clone(&held.conn),
        opaque: held.opaque,
        code: held.code,
        since: held.since,
        held: true,
    }
}

fn look_again(core: &Core, held: Held, until: Option<Moment>) {
    // Nobody is there to take what it would get.
    if !held.conn.is_open() {
        return;
    }
    let asker = asker_of(&held);
    let mut out = BytesMut::new();
    let mut wish = held.wish;
    let name = &wish.topic.topic_name;
    match (
        core.topics.get(name),
        core.groups.get(&wish.group.group_name),
    ) {
        (Some(topic), Some(group)) => {
            (wish.topic, wish.group) = (topic, group);
            attempt(core, &asker, wish, until, &mut out);
        }
        (None, _) => {
            let failure = Failure::no_topic(name);
            write_failure(&mut out, asker.opaque, &failure);
            note(core, &asker, failure.code);
        }
        (_, None) => {
            let failure = Failure::no_group(&wish.group.group_name);
            write_failure(&mut out, asker.opaque, &failure);
            note(core, &asker, failure.code);
        }
    }
    if !out.is_empty()
        && let Err(error) = asker.conn.send_frame(&out)
    {
        tracing::debug!(peer = %asker.conn.peer_addr(), %error, "a woken pop was not answered");
    }
}
