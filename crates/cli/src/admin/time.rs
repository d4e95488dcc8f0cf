//! Times as people write and read them, in UTC.

use anyhow::anyhow;
use rmq_types::Timestamp;

/// Reads milliseconds since 1970, an RFC 3339 time, or how long ago: `90s`, `10m`, `2h`, `7d`.
pub(super) fn parse(text: &str, now: Timestamp) -> anyhow::Result<Timestamp> {
    let text = text.trim();
    if let Ok(millis) = text.parse::<i64>() {
        return Ok(Timestamp::from_millis(millis));
    }
    if let Some(ago) = ago_millis(text) {
        return Ok(now.plus_millis(ago.saturating_neg()));
    }
    // What the parser says of it speaks of a form that nobody may have meant.
    let time: jiff::Timestamp = text.parse().map_err(|_| {
        anyhow!(
            "{text:?} is no time: expected milliseconds, 2026-01-31T12:00:00Z, \
             or how long ago as 90s, 10m, 2h, 7d"
        )
    })?;
    Ok(Timestamp::from_millis(time.as_millisecond()))
}

fn ago_millis(text: &str) -> Option<i64> {
    let unit = text.chars().next_back()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    let count: u32 = text.strip_suffix(unit)?.parse().ok()?;
    Some(i64::from(count) * seconds * 1_000)
}

/// `2026-01-31T12:00:00.000Z`; the number itself if it is beyond all calendars.
pub(super) fn show(time: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(time.millis()) {
        Ok(time) => format!("{time:.3}"),
        Err(_) => time.millis().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_given_in_milliseconds_in_words_or_as_how_long_ago() {
        let now = Timestamp::from_millis(1_000_000_000);
        for (text, millis) in [
            ("1700000000000", 1_700_000_000_000),
            ("2023-11-14T22:13:20Z", 1_700_000_000_000),
            ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
            ("90s", 999_910_000),
            ("2h", 992_800_000),
            ("7d", 395_200_000),
        ] {
            assert_eq!(parse(text, now).unwrap().millis(), millis, "{text}");
        }
        for text in ["", "yesterday", "5x", "-5m", "9999999999m"] {
            assert!(parse(text, now).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_shown_in_utc_and_absurd_ones_as_numbers() {
        assert_eq!(
            show(Timestamp::from_millis(1_700_000_000_123)),
            "2023-11-14T22:13:20.123Z"
        );
        assert_eq!(show(Timestamp::from_millis(i64::MAX)), i64::MAX.to_string());
    }
}
