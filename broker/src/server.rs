//! The broker's ports: every request of a connection's buffer goes to its handler from here.

use std::{sync::Arc, time::Instant};

use rmq_net::{Connection, Outbox, Request, Service};
use rmq_protocol::remoting::{Command, request_code, response_code};
use rmq_types::Timestamp;

use crate::{
    answer::{Answer, Failure},
    core::{Core, lock},
    handler::{Call, Handler, Kind, handler_of, pop, pull, send},
    metrics::Outcome,
};

/// What listens on the main port, or (`fast`) on the port two below, which serves all but pulls.
#[derive(Debug)]
pub(crate) struct Server {
    core: Arc<Core>,
    fast: bool,
}

impl Server {
    /// A service for one port.
    #[must_use]
    pub(crate) fn new(core: Arc<Core>, fast: bool) -> Self {
        Self { core, fast }
    }

    fn serve_one(
        &self,
        (conn, since): (&Arc<Connection>, Instant),
        request: &Request<'_>,
        out: &mut Outbox,
    ) {
        let call = Call {
            conn,
            header: &request.header,
            body: request.body,
            since,
        };
        let code = request.header.code;
        if pull::is_pull(code) && !self.fast {
            if request.wants_reply() {
                pull::serve(&self.core, &call, out);
            }
            return;
        }
        if pop::is_direct(code) && !(self.fast && pop::is_pop(code)) {
            pop::serve_direct(&self.core, &call, out);
            return;
        }
        match handler_of(code) {
            Some(Kind::Quick(handler)) => {
                let answer = handler(&self.core, &call);
                reply(&self.core, &call, answer, out);
            }
            Some(Kind::Slow(handler)) => self.run_on_worker(&call, handler, out),
            None => {
                let failure = Failure::new(
                    response_code::REQUEST_CODE_NOT_SUPPORTED,
                    format!(" request type {code} not supported"),
                );
                reply(&self.core, &call, Err(failure), out);
            }
        }
    }

    fn run_on_worker(&self, call: &Call<'_>, handler: Handler, out: &mut Outbox) {
        let settings = self.core.settings.get();
        let longest = match call.header.code {
            request_code::HEART_BEAT => 31_000,
            _ => settings.wait_time_mills_in_admin_queue.get(),
        };
        let max = settings.admin_queue_capacity.get() as usize;
        let (core, conn) = (Arc::clone(&self.core), Arc::clone(call.conn));
        let header = call.header.clone().into_owned();
        let body = bytes::Bytes::copy_from_slice(call.body);
        let (queued_at, since) = (core.now(), call.since);
        let outcome = self.core.workers.run(max, move || {
            let call = Call {
                conn: &conn,
                header: &header,
                body: &body,
                since,
            };
            let answer = match waited_too_long(&core, queued_at, longest) {
                Some(failure) => Err(failure),
                None => handler(&core, &call),
            };
            let mut answered = call.answered(code_of(&answer));
            if let Some(command) = finish(&call, answer) {
                answered.outcome = Outcome::written(&conn.send(&command));
            }
            core.rpc.record(answered, since.elapsed(), 1);
        });
        if let Err(failure) = outcome {
            reply(&self.core, call, Err(failure), out);
        }
    }
}

fn waited_too_long(core: &Core, queued_at: Timestamp, longest: i64) -> Option<Failure> {
    let waited = core.now().since(queued_at);
    (waited > longest).then(|| {
        Failure::new(
            response_code::SYSTEM_BUSY,
            format!(
                "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, \
                 period in queue: {waited}ms, size of queue: {}",
                core.workers.queued()
            ),
        )
    })
}

fn code_of(answer: &Answer) -> i32 {
    match answer {
        Ok(command) => command.code,
        Err(failure) => failure.code,
    }
}

/// Answers at once.
fn reply(core: &Core, call: &Call<'_>, answer: Answer, out: &mut Outbox) {
    let answered = call.answered(code_of(&answer));
    if let Some(command) = finish(call, answer) {
        out.send(&command);
    }
    core.rpc.record(answered, call.since.elapsed(), 1);
}

/// The command to send, if anybody waits for one.
fn finish(call: &Call<'_>, answer: Answer) -> Option<Command> {
    if call.header.is_oneway() {
        return None;
    }
    Some(match answer {
        Ok(mut command) => {
            command.opaque = call.header.opaque;
            command
        }
        Err(failure) => {
            Command::response(call.header.opaque, failure.code).with_remark(failure.remark)
        }
    })
}

impl Service for Server {
    fn serve(&self, conn: &Arc<Connection>, requests: &[Request<'_>], out: &mut Outbox) {
        let since = Instant::now();
        let mut rest = requests;
        while let Some(first) = rest.first() {
            if out.is_full() {
                // Comes again once the peer has taken what is written so far.
                out.leave(rest.len());
                return;
            }
            let sends = rest
                .iter()
                .take_while(|request| send::is_send(request.header.code))
                .count();
            if sends > 0 {
                let (group, others) = rest.split_at(sends);
                send::serve(&self.core, (conn, since), group, out);
                rest = others;
            } else {
                self.serve_one((conn, since), first, out);
                rest = rest.get(1..).unwrap_or_default();
            }
        }
    }

    fn closed(&self, conn: &Arc<Connection>) {
        forget_connection(&self.core, conn.id().0);
    }
}

/// Takes a closed connection out of every table.
pub(crate) fn forget_connection(core: &Arc<Core>, connection: u64) {
    {
        let mut holds = lock(&core.holds);
        holds.forget(connection);
        core.arrivals.set_waiting(holds.len());
    }
    core.pops.waits.forget(connection);
    lock(&core.producers).leave_all(connection);
    let left = lock(&core.consumers).leave_all(connection);
    for group in left {
        core.notify_members(&group);
    }
}
