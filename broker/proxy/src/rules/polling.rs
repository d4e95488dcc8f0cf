//! How long a receive may wait, and how long its messages stay invisible.
//!
//! **Invariant:** a wait never outlasts the client's deadline, so that no popped message meets a
//! caller that is gone.

use std::time::Duration;

use crate::proto::v2::Code;
use crate::rules::refusal::Refusal;

/// Shortest wait of a receive.
pub(crate) const POLLING_MIN: Duration = Duration::from_secs(5);
/// Longest wait of a receive.
pub(crate) const POLLING_MAX: Duration = Duration::from_secs(20);
/// What a popped message is invisible for while the gateway renews.
pub(crate) const RENEWED_INVISIBLE: Duration = Duration::from_mins(1);
const INVISIBLE_MIN: Duration = Duration::from_secs(10);
const INVISIBLE_MAX: Duration = Duration::from_hours(12);
/// Left of the deadline for the answer to travel.
const TRAVEL: Duration = Duration::from_millis(100);

/// The wait of a receive. `asked`: the request's own; `left`: until the client's deadline.
pub(crate) fn wait(
    asked: Option<Duration>,
    left: Option<Duration>,
    request_timeout: Duration,
) -> Result<Duration, Refusal> {
    let half = request_timeout / 2;
    let wanted = asked
        .or_else(|| left.map(|left| left.saturating_sub(half)))
        .unwrap_or(POLLING_MAX)
        .clamp(POLLING_MIN, POLLING_MAX);
    match left {
        None => Ok(wanted),
        Some(left) if wanted + TRAVEL <= left => Ok(wanted),
        Some(left) if left >= POLLING_MIN => Ok(left.saturating_sub(TRAVEL)),
        Some(left) => {
            let text = format!(
                "a deadline in {} ms leaves no time to wait",
                left.as_millis()
            );
            Err(Refusal::new(Code::IllegalPollingTime, text))
        }
    }
}

/// The invisible time that a receive asks for.
pub(crate) fn of_receive(asked: Option<Duration>) -> Result<Duration, Refusal> {
    within(asked.unwrap_or_default(), INVISIBLE_MIN)
}

/// The invisible time that a change asks for.
pub(crate) fn of_change(asked: Duration) -> Result<Duration, Refusal> {
    within(asked, Duration::ZERO)
}

fn within(asked: Duration, min: Duration) -> Result<Duration, Refusal> {
    if asked >= min && asked <= INVISIBLE_MAX {
        return Ok(asked);
    }
    let text = format!(
        "an invisible time of {} ms is not within {} ms and {} ms",
        asked.as_millis(),
        min.as_millis(),
        INVISIBLE_MAX.as_millis()
    );
    Err(Refusal::new(Code::IllegalInvisibleTime, text))
}

/// A duration of the wire; what is negative or no duration is nothing.
pub(crate) fn duration(wire: &prost_types::Duration) -> Option<Duration> {
    Duration::try_from(*wire).ok()
}

/// The value of a `grpc-timeout` header.
pub(crate) fn grpc_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(seconds: u64) -> Option<Duration> {
        Duration::from_secs(seconds).into()
    }

    #[test]
    fn the_wait_is_the_clients_within_five_and_twenty_seconds() {
        let timeout = Duration::from_secs(4);
        assert_eq!(wait(secs(10), secs(30), timeout).ok(), secs(10));
        assert_eq!(wait(secs(1), secs(30), timeout).ok(), secs(5));
        assert_eq!(wait(secs(90), secs(300), timeout).ok(), secs(20));
        assert_eq!(wait(None, secs(12), timeout).ok(), secs(10));
        assert_eq!(wait(None, None, timeout).ok(), secs(20));
    }

    #[test]
    fn a_wait_beyond_the_deadline_is_cut_and_refused_below_five_seconds() {
        let timeout = Duration::from_secs(4);
        let cut = wait(secs(20), secs(10), timeout).unwrap();
        assert!(cut < Duration::from_secs(10) && cut > Duration::from_secs(9));
        let refusal = wait(secs(20), secs(4), timeout).unwrap_err();
        assert_eq!(refusal.code, Code::IllegalPollingTime);
    }

    #[test]
    fn invisible_times_have_limits_and_a_change_may_make_visible_at_once() {
        assert!(of_receive(secs(10)).is_ok());
        assert!(of_receive(secs(43_200)).is_ok());
        for bad in [None, secs(0), secs(9), secs(43_201)] {
            let refusal = of_receive(bad).unwrap_err();
            assert_eq!(refusal.code, Code::IllegalInvisibleTime);
        }
        assert!(of_change(Duration::ZERO).is_ok());
        assert!(of_change(Duration::from_secs(43_201)).is_err());
    }

    #[test]
    fn deadlines_are_read_in_every_unit_and_nonsense_is_none() {
        assert_eq!(grpc_timeout("5S"), secs(5));
        assert_eq!(grpc_timeout("1500m"), Some(Duration::from_millis(1500)));
        assert_eq!(grpc_timeout("2H"), secs(7200));
        for bad in ["", "S", "5", "-5S", "123456789S", "5x", "é", "1é"] {
            assert_eq!(grpc_timeout(bad), None, "{bad}");
        }
    }

    #[test]
    fn negative_durations_are_nothing() {
        let wire = prost_types::Duration {
            seconds: -1,
            nanos: 0,
        };
        assert_eq!(duration(&wire), None);
    }
}
