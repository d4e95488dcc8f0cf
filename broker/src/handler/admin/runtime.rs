//! Figures of the broker: run-time table (28) and windows of one counter (315).
//!
//! What the Java broker measures and this one does not have (timer wheel, transient pool, ack queue)
//! is 0, so that tools that read a key find it.

use std::{collections::BTreeMap, sync::Arc};

use rmq_protocol::{
    body::KvTable,
    header::ViewBrokerStats,
    remoting::{VERSION, version_name},
};
use rmq_types::{Timestamp, system};

use crate::{
    answer::{Answer, Failure, success},
    core::{Core, lock},
    handler::Call,
    stats::Counter,
};

/// Samples of 10, 60 and 600 seconds.
const WINDOWS: [usize; 3] = [1, 6, 60];

/// Keys whose value is always 0 here.
const ZEROES: [&str; 20] = [
    "ackThreadPoolQueueCapacity",
    "ackThreadPoolQueueHeadWaitTimeMills",
    "ackThreadPoolQueueSize",
    "dispatchMaxBuffer",
    "EndTransactionQueueSize",
    "EndTransactionThreadPoolQueueCapacity",
    "getMessageEntireTimeMax",
    "litePullThreadPoolQueueHeadWaitTimeMills",
    "litePullThreadPoolQueueSize",
    "pageCacheLockTimeMills",
    "pullThreadPoolQueueHeadWaitTimeMills",
    "putMessageEntireTimeMax",
    "queryThreadPoolQueueHeadWaitTimeMills",
    "remainTransientStoreBufferNumbs",
    "sendThreadPoolQueueHeadWaitTimeMills",
    "timerCongestNum",
    "timerDequeueTps",
    "timerEnqueueTps",
    "timerOffsetBehind",
    "timerReadBehind",
];

/// Code 28.
pub(super) fn info(core: &Arc<Core>, _call: &Call<'_>) -> Answer {
    let mut table = Table(BTreeMap::new());
    for key in ZEROES {
        table.put(key, 0);
    }
    table.put("brokerActive", !core.is_stopping());
    table.put("brokerVersion", VERSION);
    table.put("brokerVersionDesc", version_name(VERSION));
    times(core, &mut table);
    rates(core, &mut table);
    totals(core, &mut table);
    store(core, &mut table);
    queues(core, &mut table);
    delays(core, &mut table);
    Ok(success().with_body(KvTable { table: table.0 }.to_json()))
}

struct Table(BTreeMap<String, String>);

impl Table {
    #[expect(
        clippy::needless_pass_by_value,
        reason = "values are numbers and fresh texts"
    )]
    fn put(&mut self, key: &str, value: impl ToString) {
        self.0.insert(key.to_owned(), value.to_string());
    }
}

fn times(core: &Core, table: &mut Table) {
    let now = core.now();
    let seconds = now.since(core.started_at).max(0) / 1000;
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    table.put("bootTimestamp", core.started_at.millis());
    table.put(
        "runtime",
        format!("[ {days} days, {hours} hours, {minutes} minutes, {rest} seconds ]"),
    );
    let start = core
        .settings
        .get()
        .start_accept_send_request_time_stamp
        .get();
    table.put("startAcceptSendRequestTimeStamp", start);
    let earliest = core.store.earliest_time().map_or(-1, Timestamp::millis);
    table.put("earliestMessageTimeStamp", earliest);
}

fn rates(core: &Core, table: &mut Table) {
    let now = core.now();
    let stats = &core.stats;
    let triple = |counters: &[&Counter]| {
        WINDOWS
            .map(|samples| {
                let sum: f64 = counters
                    .iter()
                    .map(|counter| counter.per_second(now, samples))
                    .sum();
                sum.to_string()
            })
            .join(" ")
    };
    table.put("putTps", triple(&[&stats.puts]));
    table.put("getTransferredTps", triple(&[&stats.gets]));
    table.put("getFoundTps", triple(&[&stats.get_found]));
    table.put("getMissTps", triple(&[&stats.get_miss]));
    table.put("getTotalTps", triple(&[&stats.get_found, &stats.get_miss]));
}

fn totals(core: &Core, table: &mut Table) {
    let stats = &core.stats;
    let (puts, bytes) = (stats.puts.total(), stats.put_bytes.total());
    table.put("putMessageTimesTotal", puts);
    table.put("putMessageSizeTotal", bytes);
    table.put("putMessageAverageSize", bytes as f64 / puts.max(1) as f64);
    table.put("putMessageFailedTimes", stats.put_failures.total());
    table.put("putMessageDistributeTime", "not measured");
    let days = stats.days();
    table.put("msgPutTotalTodayNow", stats.user_puts.total());
    table.put("msgPutTotalTodayMorning", days.today_morning.0);
    table.put("msgPutTotalYesterdayMorning", days.yesterday_morning.0);
    table.put("msgGetTotalTodayNow", stats.user_gets.total());
    table.put("msgGetTotalTodayMorning", days.today_morning.1);
    table.put("msgGetTotalYesterdayMorning", days.yesterday_morning.1);
}

fn store(core: &Core, table: &mut Table) {
    let state = core.store.state();
    let ratio = f64::from(state.disk_used_percent) / 100.0;
    table.put("commitLogDiskRatio", ratio);
    table.put("consumeQueueDiskRatio", ratio);
    table.put("commitLogMinOffset", state.log_min);
    table.put("commitLogMaxOffset", state.log_end);
    table.put("dispatchBehindBytes", state.index_behind);
    let unflushed = state.log_end.saturating_sub(state.durable);
    table.put("remainHowManyDataToFlush", readable(unflushed));
    table.put("remainHowManyDataToCommit", readable(0));
    let (all, free) = core.store.disk_space().unwrap_or_default();
    let capacity = format!("Total : {}, Free : {}.", readable(all), readable(free));
    table.put("commitLogDirCapacity", capacity);
}

fn queues(core: &Core, table: &mut Table) {
    let settings = core.settings.get();
    let admin = settings.admin_queue_capacity.get();
    let pulls = settings.held_pulls_max.get();
    table.put("sendThreadPoolQueueSize", core.parked.len());
    table.put(
        "sendThreadPoolQueueCapacity",
        settings.parked_sends_max.get(),
    );
    table.put("pullThreadPoolQueueSize", lock(&core.holds).len());
    table.put("pullThreadPoolQueueCapacity", pulls);
    table.put("litePullThreadPoolQueueCapacity", pulls);
    table.put("queryThreadPoolQueueSize", core.workers.queued());
    table.put("queryThreadPoolQueueCapacity", admin);
}

fn delays(core: &Core, table: &mut Table) {
    for (level, offset) in core.delays.snapshot().offset_table {
        let queue = u32::try_from(level - 1).unwrap_or(u32::MAX);
        let max = core
            .store
            .max_queue_offset(system::SCHEDULE_TOPIC, queue)
            .unwrap_or(0);
        table.put(
            &format!("scheduleMessageOffset_{level}"),
            format!("{offset},{max}"),
        );
    }
}

/// `1.5 GiB`, as Java's tools show bytes.
fn readable(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (mut value, mut unit) = (bytes as f64, ' ');
    for next in ['K', 'M', 'G', 'T', 'P', 'E'] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{value:.1} {unit}iB")
}

/// Code 315.
pub(super) fn view_stats(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let header: ViewBrokerStats<'_> = call.decode()?;
    let found = core
        .stats
        .view(core.now(), &header.stats_name, &header.stats_key);
    let data = found.ok_or_else(|| {
        Failure::system(format!(
            "The stats <{}> <{}> not exist",
            header.stats_name, header.stats_key
        ))
    })?;
    Ok(success().with_body(data.to_json()))
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn bytes_are_shown_in_the_largest_unit_that_fits() {
        assert_eq!(readable(0), "0 B");
        assert_eq!(readable(1023), "1023 B");
        assert_eq!(readable(1536), "1.5 KiB");
        assert_eq!(readable(5 << 40), "5.0 TiB");
    }
}
