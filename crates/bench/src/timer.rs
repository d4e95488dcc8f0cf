//! A timer that wakes the event loop with better than the millisecond of `epoll_wait`.
//!
//! Invariant: armed at most once at a time; a wake-up says only that it is time to look. Elsewhere
//! than on Linux it does nothing, and the loop's own time-out has to do.

#[cfg(target_os = "linux")]
mod precise {
    use std::io;
    use std::os::fd::{AsRawFd, OwnedFd};

    use mio::unix::SourceFd;
    use mio::{Interest, Registry, Token};
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };

    /// See the module.
    #[derive(Debug)]
    pub(crate) struct Timer(OwnedFd);

    impl Timer {
        pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            registry.register(&mut SourceFd(&fd.as_raw_fd()), token, Interest::READABLE)?;
            Ok(Self(fd))
        }

        /// Wakes the loop in `nanos` from now. Arming makes it ready again: no read is needed.
        pub(crate) fn arm(&self, nanos: u64) -> io::Result<()> {
            let nanos = nanos.max(1);
            let zero = Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            let value = Timespec {
                tv_sec: (nanos / 1_000_000_000) as i64,
                tv_nsec: (nanos % 1_000_000_000) as i64,
            };
            let spec = Itimerspec {
                it_interval: zero,
                it_value: value,
            };
            timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &spec)?;
            Ok(())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod precise {
    use std::io;

    use mio::{Registry, Token};

    /// See the module.
    #[derive(Debug)]
    pub(crate) struct Timer;

    impl Timer {
        pub(crate) fn new(_registry: &Registry, _token: Token) -> io::Result<Self> {
            Ok(Self)
        }

        pub(crate) fn arm(&self, _nanos: u64) -> io::Result<()> {
            Ok(())
        }
    }
}

pub(crate) use precise::Timer;
