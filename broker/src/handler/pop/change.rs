//! Changing how long a message stays invisible (200053).
//!
//! **Invariant:** success is answered only when the new time holds even after a kill: where an older
//! record speaks for the message, the new one is written before.

use std::sync::Arc;

use bytes::BytesMut;
use rmq_net::Outbox;
use rmq_pop::{ChangeAsk, ChangeError, Changed, Invisible};
use rmq_protocol::{
    header::{ChangeInvisibleTime, ChangeInvisibleTimeResponse},
    remoting::{Command, Serializer, response_code},
};

use super::{
    ack::{Named, named},
    on_worker,
};
use crate::{
    answer::{Answer, Failure, success},
    config::FlushDiskType,
    core::Core,
    handler::{Call, send::write_failure},
    namespace,
    pop::step_on,
};

impl From<ChangeError> for Failure {
    fn from(error: ChangeError) -> Self {
        let code = match error {
            ChangeError::NotInFlight { .. } => response_code::NO_MESSAGE,
            ChangeError::Busy { .. } => response_code::SYSTEM_BUSY,
        };
        Self::new(code, error.to_string())
    }
}

/// Code 200053. With `SYNC_FLUSH` it runs on a worker, since it may wait for the disk.
pub(super) fn change_invisible(core: &Arc<Core>, call: &Call<'_>, out: &mut Outbox) {
    if core.settings.get().flush_disk_type != FlushDiskType::Sync {
        let answer = change(core, call);
        write(core, call, answer, out.buffer());
        return;
    }
    let outcome = on_worker(core, call, |core, call, buffer| {
        write(core, call, change(core, call), buffer);
    });
    if let Err(failure) = outcome {
        write(core, call, Err(failure), out.buffer());
    }
}

fn write(core: &Core, call: &Call<'_>, answer: Answer, out: &mut BytesMut) {
    let opaque = call.header.opaque;
    let code = match answer {
        Ok(mut command) => {
            command.opaque = opaque;
            if !call.header.is_oneway() {
                command.encode(Serializer::Json, out);
            }
            response_code::SUCCESS
        }
        Err(failure) => {
            if !call.header.is_oneway() {
                write_failure(out, opaque, &failure);
            }
            failure.code
        }
    };
    core.rpc
        .record(call.answered(code), call.since.elapsed(), 1);
}

fn change(core: &Core, call: &Call<'_>) -> Answer {
    let mut header: ChangeInvisibleTime<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    namespace::join(&call.header.ext, &mut header.consumer_group);
    let named = named(
        core,
        call,
        (&header.topic, &header.consumer_group),
        (header.queue_id, header.offset, &header.extra_info),
        -1,
    )?;
    let invisible = Invisible::of_change(header.invisible_time)
        .map_err(|error| Failure::parameter(error.to_string()))?;
    let not_in_flight = ChangeError::NotInFlight {
        offset: named.handle.offset,
    };
    let Some(cell) = &named.cell else {
        return Err(not_in_flight.into());
    };
    let ask = ChangeAsk {
        handle: named.handle,
        invisible,
    };
    if named.receipt.is_order() {
        return change_order(core, &named, ask);
    }
    let (changed, carried) = step_on(core, cell, |queue, now, out| {
        queue.change_invisible(now, ask, out)
    });
    let changed = changed?;
    if let Some(key) = changed.record {
        let sync = core.settings.get().flush_disk_type == FlushDiskType::Sync;
        if carried.has_failed(key) || sync && core.store.flush().is_err() {
            return Err(Failure::system(
                "the new time could not be written: either may hold",
            ));
        }
    }
    Ok(answer_of(&changed))
}

fn change_order(core: &Core, named: &Named<'_>, ask: ChangeAsk) -> Answer {
    let Some(cell) = &named.cell else {
        return Err(ChangeError::NotInFlight {
            offset: ask.handle.offset,
        }
        .into());
    };
    core.pops.note_order();
    let (changed, _) = step_on(core, cell, |queue, now, out| {
        if queue.committed().is_some_and(|at| ask.handle.offset < at) {
            return Ok(None);
        }
        queue.change_order(now, ask, out).map(Some)
    });
    Ok(match changed? {
        Some(changed) => answer_of(&changed),
        // Consumed already: there is nothing to change, and nothing wrong.
        None => success().with_header(&ChangeInvisibleTimeResponse {
            pop_time: 0,
            invisible_time: 0,
            revive_qid: 0,
        }),
    })
}

fn answer_of(changed: &Changed) -> Command {
    success().with_header(&ChangeInvisibleTimeResponse {
        pop_time: changed.pop_time.millis(),
        invisible_time: changed.invisible_millis.into(),
        revive_qid: changed.revive_queue,
    })
}
