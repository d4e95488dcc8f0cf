//! Walks the records of one log file.
//!
//! **Invariant:** a record is given only if it states its own offset, its parts fill its size, and it
//! passes its CRC where asked. What no CRC covers shows a torn write by its zeros: neither a topic nor
//! the end of a properties text holds one. Does not follow to the next file.

use rmq_protocol::message::record::{self, Record};

/// What stands at a position of a file.
#[derive(Debug)]
pub(crate) enum Entry<'a> {
    /// A record and its length.
    Record(Record<'a>, usize),
    /// The file ends here; the next record starts the next file.
    Filler,
    /// Neither: the end of the log, or damage.
    End,
}

/// Reads the entry at `position` of a file that starts at `base`.
pub(crate) fn entry_at(bytes: &[u8], base: u64, position: usize, check_crc: bool) -> Entry<'_> {
    let Some(rest) = bytes.get(position..) else {
        return Entry::End;
    };
    if let Some((_, record::MAGIC_FILLER)) = record::peek(rest) {
        return Entry::Filler;
    }
    match Record::decode(rest) {
        Ok((record, len))
            if record.physical_offset == (base + position as u64) as i64
                && record.queue_offset >= 0
                && !is_torn(&record)
                && (!check_crc || record.verify_body().is_ok()) =>
        {
            Entry::Record(record, len)
        }
        _ => Entry::End,
    }
}

/// Whether the part behind the body ends in zeros, as a write cut at a sector leaves it. Appends refuse
/// such properties, so no sound record looks like this.
fn is_torn(record: &Record<'_>) -> bool {
    record.topic.bytes().any(|byte| byte == 0) || record.properties.last() == Some(&0)
}
