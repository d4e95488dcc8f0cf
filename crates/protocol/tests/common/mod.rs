//! What the golden tests and the `golden` example share: the fixtures, and our side of each.
//!
//! A fixture line is `name hex`; e2e/golden writes the files with the official classes.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "two tests and one example each use a part of this module"
)]

use std::fmt::Write;

pub mod bodies;
pub mod frames;
pub mod pop;

/// The lines of one fixture file.
pub fn lines(text: &str) -> Vec<(String, Vec<u8>)> {
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(|line| {
            let (name, hex) = line.split_once(' ').expect("a line is: name hex");
            (name.to_owned(), unhex(hex.trim()))
        })
        .collect()
}

/// The bytes of one line.
pub fn fixture(text: &str, name: &str) -> Option<Vec<u8>> {
    lines(text)
        .into_iter()
        .find(|(one, _)| one == name)
        .map(|(_, bytes)| bytes)
}

/// Frames.
pub const FRAMES: &str = include_str!("../fixtures/frames.golden");
/// Bodies of clients, routes and registration.
pub const BODIES: &str = include_str!("../fixtures/bodies.golden");
/// Bodies of the admin tools.
pub const ADMIN_BODIES: &str = include_str!("../fixtures/admin_bodies.golden");
/// Records, ids, properties.
pub const RECORDS: &str = include_str!("../fixtures/records.golden");
/// Handles, texts, records and bodies of pop.
pub const POP: &str = include_str!("../fixtures/pop.golden");

/// Lower-case hexadecimal text.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hexadecimal"))
        .collect()
}
