//! Fuzz targets: functions that take any bytes and panic only where a promise is broken.
//!
//! **Invariant:** each target takes every input there is, does work in proportion to its length, and
//! keeps nothing. The tests drive them with random bytes, with random JSON-like text and with valid
//! inputs that were changed, cut and joined; a fuzzer can drive them through the `fuzz` feature.

mod bodies;
mod messages;
mod wire;

pub use bodies::{fuzz_bodies, fuzz_json, fuzz_properties, fuzz_registration};
pub use messages::{fuzz_batch, fuzz_ids, fuzz_message_properties, fuzz_records};
pub use wire::{fuzz_binary_header, fuzz_frames, fuzz_json_header};

/// Every target, one after the other.
pub fn fuzz_all(data: &[u8]) {
    for target in [
        fuzz_frames,
        fuzz_json_header,
        fuzz_binary_header,
        fuzz_records,
        fuzz_batch,
        fuzz_message_properties,
        fuzz_ids,
        fuzz_json,
        fuzz_bodies,
        fuzz_registration,
        fuzz_properties,
    ] {
        target(data);
    }
}

#[cfg(test)]
mod tests;
