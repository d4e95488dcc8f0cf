//! Configuration over the wire: change (25) and show (26).
//!
//! Which keys may change, and their bounds, is `config::LiveSettings`' business; here a change is
//! passed on to the parts that must hear of it. **Invariant:** no key of the table is a secret.

use std::sync::Arc;

use rmq_protocol::java_properties;

use super::body_of;
use crate::{
    answer::{Answer, Failure, success},
    core::Core,
    handler::Call,
    tuning,
};

/// Code 25.
pub(super) fn update(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let text = body_of(call, "key=value lines")?;
    let now = core.now();
    let changed = core
        .settings
        .update_durably(text, &core.overrides_path, now)?;
    tracing::info!(peer = %call.conn.peer_addr(), keys = ?changed, "configuration changed");
    if changed.contains_key("brokerPermission") {
        // NameServers take permissions of topics only from a newer table.
        core.topics.touch(now)?;
    }
    if changed.contains_key("brokerPermission") || changed.contains_key("namesrvAddr") {
        core.registrar.refresh();
    }
    tuning::apply(core).map_err(Failure::system)?;
    Ok(success())
}

/// Code 26.
pub(super) fn show(core: &Arc<Core>, _call: &Call<'_>) -> Answer {
    let text = java_properties::write(core.settings.get().entries());
    let version = String::from_utf8(core.settings.version().to_json()).unwrap_or_default();
    Ok(success().with_ext("version", version).with_body(text))
}

#[cfg(test)]
mod tests {
    use crate::config::Settings;

    #[test]
    fn no_key_that_is_shown_is_a_secret() {
        for key in Settings::KEYS {
            let name = key.name.to_lowercase();
            for word in ["secret", "password", "token", "credential", "accesskey"] {
                assert!(!name.contains(word), "{}", key.name);
            }
        }
    }
}
