//! One line on the terminal while something long runs.
//!
//! Invariant: goes to standard error, and only if that is a terminal; results are never in it.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Debug)]
pub(crate) struct Progress {
    title: String,
    shown: bool,
    last: Instant,
}

impl Progress {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            shown: stderr().is_terminal(),
            last: Instant::now(),
        }
    }

    /// Shows what `text` says, at most twice a second.
    pub(crate) fn show(&mut self, now: Instant, text: impl FnOnce() -> String) {
        if !self.shown || now.saturating_duration_since(self.last) < EVERY {
            return;
        }
        self.last = now;
        // A closed terminal is no reason to stop measuring.
        let _ = write!(stderr(), "\r\x1b[K{}: {}", self.title, text());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
