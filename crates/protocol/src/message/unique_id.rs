//! The client's message id (`MessageClientIDSetter`): hexadecimal text of
//!
//! | part | bytes |
//! |---|---|
//! | ip | 4 or 16 |
//! | process id, low bits | 2 |
//! | hash that tells makers of one process apart | 4 |
//! | ms since the start of the month | 4 |
//! | counter | 2 |
//!
//! **Invariant:** two ids of one maker differ while fewer than 65,536 are made in a millisecond.
//! Month starts are UTC here. Ids of other makers are opaque unless they parse. Reads no clock.

use std::{
    net::IpAddr,
    sync::atomic::{AtomicU16, Ordering},
};

use rmq_types::Timestamp;

use super::hex::{self, HexError};

const DAY_MS: i64 = 86_400_000;

/// Makes ids for one process.
#[derive(Debug)]
pub struct UniqueIds {
    prefix: String,
    counter: AtomicU16,
}

impl UniqueIds {
    /// `maker` tells several makers of one process apart.
    #[must_use]
    pub fn new(ip: IpAddr, process: u32, maker: u32) -> Self {
        let mut prefix = String::with_capacity(44);
        match ip {
            IpAddr::V4(ip) => hex::write(&ip.octets(), &mut prefix),
            IpAddr::V6(ip) => hex::write(&ip.octets(), &mut prefix),
        }
        hex::write(&(process as u16).to_be_bytes(), &mut prefix);
        hex::write(&maker.to_be_bytes(), &mut prefix);
        Self {
            prefix,
            counter: AtomicU16::new(0),
        }
    }

    /// Appends a new id to `out`.
    pub fn write(&self, now: Timestamp, out: &mut String) {
        let since = now.since(month_start(now)) as u32;
        out.push_str(&self.prefix);
        hex::write(&since.to_be_bytes(), out);
        let count = self.counter.fetch_add(1, Ordering::Relaxed);
        hex::write(&count.to_be_bytes(), out);
    }

    /// A new id.
    #[must_use]
    pub fn make(&self, now: Timestamp) -> String {
        let mut id = String::with_capacity(self.prefix.len() + 12);
        self.write(now, &mut id);
        id
    }
}

/// The parts of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniqueId {
    /// Address of the maker.
    pub ip: IpAddr,
    /// Low bits of its process id.
    pub process: u16,
    /// Which maker in the process.
    pub maker: u32,
    /// Ms since the start of the month, unsigned: a month has more than 31 bits of them.
    pub since_month_start: u32,
    /// Counter.
    pub counter: u16,
}

impl UniqueId {
    /// Reads 32 or 56 characters of either case.
    pub fn parse(text: &str) -> Result<Self, HexError> {
        if text.len() != 32 && text.len() != 56 {
            return Err(HexError::Length {
                length: text.len(),
                expected: "32 or 56",
            });
        }
        let mut buffer = [0u8; 28];
        let bytes = hex::read(text, &mut buffer)?;
        let (host, tail) = bytes.split_at(bytes.len() - 12);
        let ip = match (<[u8; 4]>::try_from(host), <[u8; 16]>::try_from(host)) {
            (Ok(v4), _) => IpAddr::from(v4),
            (_, Ok(v6)) => IpAddr::from(v6),
            _ => return Err(HexError::Range { field: "ip" }),
        };
        let word = |at: usize| [tail[at], tail[at + 1], tail[at + 2], tail[at + 3]];
        Ok(Self {
            ip,
            process: u16::from_be_bytes([tail[0], tail[1]]),
            maker: u32::from_be_bytes(word(2)),
            since_month_start: u32::from_be_bytes(word(6)),
            counter: u16::from_be_bytes([tail[10], tail[11]]),
        })
    }

    /// When the id was made, seen from `now`: this month, or the one before if that would be ahead.
    #[must_use]
    pub fn made_at(&self, now: Timestamp) -> Timestamp {
        let this = month_start(now);
        let made = this.plus_millis(i64::from(self.since_month_start));
        if made <= now {
            return made;
        }
        month_start(this.plus_millis(-1)).plus_millis(i64::from(self.since_month_start))
    }
}

/// Midnight UTC of the first day of `now`'s month.
fn month_start(now: Timestamp) -> Timestamp {
    let days = now.millis().div_euclid(DAY_MS);
    // Days since 0000-03-01 make months of a 400-year era countable without a table.
    let shifted = days + 719_468;
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5;
    Timestamp::from_millis((days - day) * DAY_MS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn month_starts_are_right_around_leap_days() {
        let at = |millis| month_start(Timestamp::from_millis(millis)).millis();
        assert_eq!(at(0), 0);
        assert_eq!(at(1_709_210_096_000), 1_706_745_600_000);
        assert_eq!(at(1_709_251_200_000), 1_709_251_200_000);
        assert_eq!(at(1_735_689_599_999), 1_733_011_200_000);
    }

    #[test]
    fn a_thousand_ids_differ_and_keep_the_layout() {
        let ids = UniqueIds::new("10.1.2.3".parse().unwrap(), 70_000, 7);
        let now = Timestamp::from_millis(1_735_689_599_999);
        let made: std::collections::HashSet<_> = (0..1000).map(|_| ids.make(now)).collect();
        assert_eq!(made.len(), 1000);
        for id in made {
            let parts = UniqueId::parse(&id).unwrap();
            assert_eq!((parts.process, parts.maker), (4464, 7));
            assert_eq!(parts.made_at(now), now);
        }
    }

    #[test]
    fn an_id_of_the_last_month_is_dated_there() {
        let ids = UniqueIds::new("10.1.2.3".parse().unwrap(), 1, 7);
        let made = Timestamp::from_millis(1_709_251_200_000 - 60_000);
        let id = UniqueId::parse(&ids.make(made)).unwrap();
        assert_eq!(
            id.made_at(Timestamp::from_millis(1_709_251_200_000 + 60_000)),
            made
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,60}", now in any::<i32>()) {
            if let Ok(id) = UniqueId::parse(&text) {
                let _ = id.made_at(Timestamp::from_millis(i64::from(now) * 1000));
            }
        }
    }
}
