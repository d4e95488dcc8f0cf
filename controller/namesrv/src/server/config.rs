//! Options over the wire: change (318) and read back (319).
//!
//! **Invariant:** no file is touched, and a refused change leaves everything as it was.

use rmq_protocol::remoting::response_code;

use super::{
    call::{Call, Handled, Refusal, echo},
    core::Core,
    housekeeper::Job,
};

pub(super) fn update(core: &Core, call: &Call<'_>) -> Handled {
    let updated = {
        let mut state = core.write();
        let updated = state.options.updated(call.body);
        updated.map(|options| {
            state.table.set_policy(options.live.policy());
            state.options = options;
        })
    };
    let peer = call.conn.peer_addr();
    match updated {
        Ok(()) => {
            tracing::info!(%peer, "options changed over the wire");
            // A full queue is looked at soon enough: the thread reads the interval on every job.
            let _ = core.jobs.push(Job::Rescan);
            Ok(call.success())
        }
        Err(error) => {
            tracing::warn!(%peer, %error, "change of options refused");
            let code = if error.is_forbidden() {
                response_code::NO_PERMISSION
            } else {
                response_code::SYSTEM_ERROR
            };
            Err(Refusal::new(code, echo(&error.to_string())))
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "all handlers have one shape")]
pub(super) fn get(core: &Core, call: &Call<'_>) -> Handled {
    let text = core.read().options.to_properties();
    Ok(call.success().with_body(text))
}
