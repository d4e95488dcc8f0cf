//! A gate that lets a few log lines through per window, so that a port scan cannot fill a disk.
//!
//! Invariant: at most `LINES_MAX` lines per window; what was held back is told with the next line.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

const LINES_MAX: u32 = 10;
const WINDOW: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct State {
    since: Instant,
    lines: u32,
    held_back: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct QuietLog(Mutex<State>);

impl QuietLog {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State {
            since: Instant::now(),
            lines: 0,
            held_back: 0,
        }))
    }

    /// `Some(n)` if a line may be written now; `n` lines were held back before it.
    pub(crate) fn allow(&self) -> Option<u64> {
        self.allow_at(Instant::now())
    }

    fn allow_at(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(state.since) >= WINDOW {
            state.since = now;
            state.lines = 0;
        }
        if state.lines >= LINES_MAX {
            state.held_back += 1;
            return None;
        }
        state.lines += 1;
        Some(std::mem::take(&mut state.held_back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_gives_ten_lines_a_window_and_the_count_of_the_rest() {
        let log = QuietLog::new();
        let start = Instant::now();
        let lines = (0..100).filter(|_| log.allow_at(start).is_some()).count();
        assert_eq!(lines, 10);
        assert_eq!(log.allow_at(start + WINDOW * 2), Some(90));
        assert_eq!(log.allow_at(start + WINDOW * 2), Some(0));
    }
}
