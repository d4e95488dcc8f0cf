//! Settings that running parts must be told when they change.

use std::time::Duration;

use rmq_store::{ReadLimits, Tuning};

use crate::{
    broker::delete_hours,
    config::Settings,
    core::{Core, lock},
};

/// The store's options that may change while it is open.
pub(crate) fn of_store(settings: &Settings) -> Result<Tuning, String> {
    let number = |value: i64| usize::try_from(value).unwrap_or(0);
    Ok(Tuning {
        reserved_for: Duration::from_hours(settings.file_reserved_time.get() as u64),
        delete_when: delete_hours(&settings.delete_when)?,
        disk_max_used_percent: settings.disk_max_used_space_ratio.get() as u8,
        disk_force_clean_percent: settings.disk_space_clean_forcibly_ratio.get() as u8,
        disk_full_percent: settings.disk_space_warning_level_ratio.get() as u8,
        message_bytes_max: number(settings.max_message_size.get()),
        read_limits: ReadLimits {
            memory_messages: number(settings.max_transfer_count_in_memory.get()),
            memory_bytes: number(settings.max_transfer_bytes_in_memory.get()),
            disk_messages: number(settings.max_transfer_count_on_disk.get()),
            disk_bytes: number(settings.max_transfer_bytes_on_disk.get()),
            ..ReadLimits::default()
        },
        flush_interval: Duration::from_millis(settings.flush_interval_commit_log.get() as u64),
    })
}

/// Passes the settings in force on.
pub(crate) fn apply(core: &Core) -> Result<(), String> {
    let settings = core.settings.get();
    core.store.retune(of_store(&settings)?);
    lock(&core.holds).set_max(settings.held_pulls_max.get() as usize);
    Ok(())
}
