//! `consumerOrderInfo.json`: what ordered groups have in flight, in Java's form.
//!
//! **Invariant:** the file may be older than a mark; then the mark's wait stands for the batch. A
//! file that cannot be read, nor its copy, stops the start: it is never taken for empty.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use rmq_pop::{OrderMessage, OrderState};
use rmq_protocol::pop::{OrderInfo, OrderInfoFile};
use rmq_types::{QueueOffset, Timestamp};

use super::Pops;
use crate::metadata::{LoadError, PersistError, read_json, write_json};

/// The file, under `config/`.
pub(super) const FILE: &str = "consumerOrderInfo.json";

/// A batch of the file: topic, group, queue.
pub(super) type Saved = (String, String, u32, OrderState);

impl Pops {
    pub(super) fn load_orders(&self) -> Result<Vec<Saved>, LoadError> {
        let file = read_json(&self.orders_path, OrderInfoFile::from_json)?.unwrap_or_default();
        let mut list = Vec::new();
        for (key, queues) in file.table {
            let Some((topic, group)) = key.split_once('@') else {
                continue;
            };
            for (queue, info) in queues {
                if let (Ok(queue), Some(state)) = (u32::try_from(queue), state_of(&info)) {
                    list.push((topic.to_owned(), group.to_owned(), queue, state));
                }
            }
        }
        Ok(list)
    }

    /// Writes the file if a batch changed since the last time.
    pub(crate) fn flush_orders(&self) -> Result<(), PersistError> {
        if !self.orders_changed.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let mut file = OrderInfoFile::default();
        for cell in self.cells.all() {
            let Some(state) = cell.lock().queue.order_state() else {
                continue;
            };
            let key = format!("{}@{}", cell.place.stored, cell.place.group);
            let queues = file.table.entry(key).or_default();
            queues.insert(cell.place.queue as i32, info_of(&state));
        }
        write_json(&self.orders_path, &file.to_json_pretty())
            .inspect_err(|_| self.orders_changed.store(true, Ordering::Release))
    }
}

fn info_of(state: &OrderState) -> OrderInfo {
    let first = state.messages.first().map_or(0, |one| one.offset.get());
    let (mut commit_bits, mut offsets) = (0, Vec::with_capacity(state.messages.len()));
    let (mut consumed, mut visible) = (BTreeMap::new(), BTreeMap::new());
    let usual = state.pop_time.plus_millis(state.invisible_millis.into());
    for (index, one) in state.messages.iter().enumerate() {
        let offset = one.offset.get();
        offsets.push(if index == 0 { offset } else { offset - first } as i64);
        commit_bits |= i64::from(one.acked) << index;
        if one.count > 0 {
            consumed.insert(offset as i64, i32::try_from(one.count).unwrap_or(i32::MAX));
        }
        if one.visible_at != usual {
            visible.insert(offset as i64, one.visible_at.millis());
        }
    }
    OrderInfo {
        attempt_id: state.attempt.clone(),
        commit_bits,
        invisible_time: Some(state.invisible_millis.into()),
        last_consumed: state.pop_time.millis(),
        offsets,
        consumed: Some(consumed).filter(|map| !map.is_empty()),
        next_visible: Some(visible).filter(|map| !map.is_empty()),
        pop_time: state.pop_time.millis(),
    }
}

fn state_of(info: &OrderInfo) -> Option<OrderState> {
    let offsets = info.absolute_offsets()?;
    let end = offsets.last()? + 1;
    let invisible = info.invisible_time.unwrap_or(0).clamp(0, u32::MAX.into());
    let usual = Timestamp::from_millis(info.pop_time).plus_millis(invisible);
    let number = |map: &Option<BTreeMap<i64, i32>>, offset| {
        let found = map.as_ref().and_then(|map| map.get(&offset));
        found.map_or(0, |&count| u32::try_from(count).unwrap_or(0))
    };
    let message = |(index, &offset): (usize, &u64)| {
        let key = offset as i64;
        let changed = info.next_visible.as_ref().and_then(|map| map.get(&key));
        OrderMessage {
            offset: QueueOffset::new(offset),
            acked: index < 63 && info.commit_bits >> index & 1 == 1,
            count: number(&info.consumed, key),
            visible_at: changed.map_or(usual, |&at| Timestamp::from_millis(at)),
        }
    };
    Some(OrderState {
        attempt: info.attempt_id.clone(),
        pop_time: Timestamp::from_millis(info.pop_time),
        invisible_millis: invisible as u32,
        messages: offsets.iter().enumerate().map(message).collect(),
        end: QueueOffset::new(end),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_reads_back_as_it_was_written() {
        let at = Timestamp::from_millis;
        let message = |offset, acked, count, visible| OrderMessage {
            offset: QueueOffset::new(offset),
            acked,
            count,
            visible_at: at(visible),
        };
        let state = OrderState {
            attempt: Some("a".to_owned()),
            pop_time: at(1000),
            invisible_millis: 500,
            messages: vec![
                message(7, false, 2, 1500),
                message(8, true, 0, 1500),
                message(11, false, 0, 9000),
            ],
            end: QueueOffset::new(12),
        };
        assert_eq!(state_of(&info_of(&state)), Some(state));
        assert_eq!(state_of(&OrderInfo::default()), None);
    }
}
