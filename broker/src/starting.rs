//! How far a broker's start has come, for whoever looks at it from outside.
//!
//! **Invariant:** numbers only grow; reading them waits for nothing.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use rmq_store::RecoveryProgress;

/// Progress of a start. Its text is one line: `starting`, or how much of the log has been read.
#[derive(Debug, Default)]
pub struct Starting {
    scanned_bytes: AtomicU64,
    total_bytes: AtomicU64,
}

impl Starting {
    pub(crate) fn note(&self, progress: RecoveryProgress) {
        self.total_bytes
            .store(progress.total_bytes, Ordering::Release);
        self.scanned_bytes
            .fetch_max(progress.scanned_bytes, Ordering::Release);
    }
}

impl fmt::Display for Starting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total_bytes.load(Ordering::Acquire);
        if total == 0 {
            return f.write_str("starting");
        }
        let scanned = self.scanned_bytes.load(Ordering::Acquire).min(total);
        write!(
            f,
            "recovering the log: {} of {} MiB read",
            scanned >> 20,
            total >> 20
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_how_much_of_the_log_has_been_read() {
        let starting = Starting::default();
        assert_eq!(starting.to_string(), "starting");
        starting.note(RecoveryProgress {
            scanned_bytes: 3 << 20,
            total_bytes: 8 << 20,
        });
        assert_eq!(starting.to_string(), "recovering the log: 3 of 8 MiB read");
    }
}
