//! What asks a process to stop, and when asking again means "at once".
//!
//! **Invariant:** one request that arrives twice is one request. `timeout`, service managers and
//! container runtimes signal a process and then its group, so that it gets the same SIGTERM again
//! within moments; a hand on the keyboard that repeats Ctrl-C means it.

use anyhow::Context as _;
use std::io::Read as _;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// A SIGTERM this soon after the first request is its echo.
const ECHO: Duration = Duration::from_secs(1);

/// How a stop was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Terminate,
    Interrupt,
    StdinClosed,
}

impl Ask {
    const fn name(self) -> &'static str {
        match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
            Self::StdinClosed => "standard input closed",
        }
    }
}

/// Whether a stop that is asked for `again`, so long after the first request, means "at once". The
/// end of standard input only says that the parent is gone: it may not cut an orderly stop short.
fn insists(again: Ask, after: Duration) -> bool {
    match again {
        Ask::Interrupt => true,
        Ask::Terminate => after >= ECHO,
        Ask::StdinClosed => false,
    }
}

/// Everything that asks a process to stop.
#[derive(Debug)]
pub(crate) struct StopSignal {
    terminate: Signal,
    interrupt: Signal,
    stdin: mpsc::Receiver<()>,
    /// When the first request came.
    first: Option<Instant>,
    // Held so that a channel nobody writes to stays open.
    _stdin_sender: mpsc::Sender<()>,
}

impl StopSignal {
    /// From now on signals do not end the process. `stdin`: its end asks for a stop, too.
    pub(crate) fn listen(stdin: bool) -> anyhow::Result<Self> {
        let (sender, receiver) = mpsc::channel(1);
        if stdin {
            let sender = sender.clone();
            std::thread::Builder::new()
                .name("stdin".to_owned())
                .spawn(move || {
                    let mut sink = [0; 64];
                    let mut stdin = std::io::stdin().lock();
                    while matches!(stdin.read(&mut sink), Ok(1..)) {}
                    let _ = sender.blocking_send(());
                })
                .context("cannot start a thread")?;
        }
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?,
            stdin: receiver,
            first: None,
            _stdin_sender: sender,
        })
    }

    async fn ask(&mut self) -> Ask {
        tokio::select! {
            _ = self.terminate.recv() => Ask::Terminate,
            _ = self.interrupt.recv() => Ask::Interrupt,
            _ = self.stdin.recv() => Ask::StdinClosed,
        }
    }

    /// Waits for the next request and names it.
    pub(crate) async fn wait(&mut self) -> &'static str {
        let ask = self.ask().await;
        self.first.get_or_insert_with(Instant::now);
        ask.name()
    }

    /// After [`StopSignal::wait`]: waits for a request that means "at once" and names it.
    pub(crate) async fn insist(&mut self) -> &'static str {
        let first = *self.first.get_or_insert_with(Instant::now);
        loop {
            let again = self.ask().await;
            if insists(again, first.elapsed()) {
                return again.name();
            }
            tracing::debug!(again = again.name(), "the same stop, asked for once more");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sigterm_within_a_second_is_the_echo_of_the_first_and_a_later_one_insists() {
        for (millis, wanted) in [(0, false), (999, false), (1_000, true), (60_000, true)] {
            let after = Duration::from_millis(millis);
            assert_eq!(insists(Ask::Terminate, after), wanted, "{millis} ms");
        }
    }

    #[test]
    fn a_second_ctrl_c_insists_at_once() {
        assert!(insists(Ask::Interrupt, Duration::ZERO));
    }

    #[test]
    fn a_parent_that_goes_does_not_cut_the_stop_short() {
        assert!(!insists(Ask::StdinClosed, Duration::from_mins(1)));
    }
}
