//! Waiting for a condition with a deadline.
//!
//! **Invariant:** a wait that ends without its condition is an error that says what was awaited.

use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(50);

/// Asks again and again until the condition holds; `Err` names what did not happen.
pub fn until(
    limit: Duration,
    what: &str,
    condition: impl FnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    until_every(PAUSE, limit, what, condition)
}

/// As [`until`], with the pause between two questions.
pub(crate) fn until_every(
    pause: Duration,
    limit: Duration,
    what: &str,
    mut condition: impl FnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let limit = limit * patience();
    let deadline = Instant::now() + limit;
    loop {
        if condition()? {
            return Ok(());
        }
        anyhow::ensure!(
            Instant::now() < deadline,
            "not within {} s: {what}",
            limit.as_secs()
        );
        std::thread::park_timeout(pause);
    }
}

/// By how much every limit is longer: `E2E_PATIENCE`, for a computer that does other things.
fn patience() -> u32 {
    let text = std::env::var("E2E_PATIENCE").unwrap_or_default();
    text.parse().unwrap_or(1).clamp(1, 100)
}
