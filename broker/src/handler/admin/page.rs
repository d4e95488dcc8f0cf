//! Pages of long tables (codes 21 and 201), as Java's `enableSplitMetadata` cuts them.
//!
//! A caller that names no page gets everything. Pages belong to a version: when the table changed
//! since, the first page comes again, so that a reader starts anew.

use std::ops::Range;

use rmq_protocol::body::DataVersion;

use crate::answer::Failure;

/// Most entries of one page (`splitMetadataSize`).
const PAGE_MAX: usize = 2000;

/// What a caller asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    /// First entry.
    pub(super) seq: Option<i32>,
    /// Most entries.
    pub(super) max: Option<i32>,
    /// Version that the caller read before, as JSON.
    pub(super) version: Option<&'a str>,
}

/// Which of `total` sorted entries to give.
pub(super) fn page(
    asked: Asked<'_>,
    current: DataVersion,
    total: usize,
) -> Result<Range<usize>, Failure> {
    if asked.seq.is_none() && asked.max.is_none() && asked.version.is_none() {
        return Ok(0..total);
    }
    let bad =
        |name: &str, value: i32| Failure::parameter(format!("{name} {value} is out of range"));
    let seq = asked.seq.unwrap_or(0);
    let start = usize::try_from(seq).map_err(|_| bad("sequence number", seq))?;
    let most = match asked.max {
        None => PAGE_MAX,
        Some(max) if max > 0 => PAGE_MAX.min(max as usize),
        Some(max) => return Err(bad("page size", max)),
    };
    let known = match asked.version.map(str::trim).filter(|text| !text.is_empty()) {
        None => None,
        Some(text) => Some(DataVersion::from_json(text.as_bytes()).map_err(|error| {
            Failure::system(format!(
                "the custom field <dataVersion> is no version: {error}"
            ))
        })?),
    };
    let start = if known == Some(current) {
        start.min(total)
    } else {
        0
    };
    Ok(start..(start + most).min(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION: DataVersion = DataVersion {
        counter: 3,
        state_version: 0,
        timestamp: 7,
    };

    fn ask(
        seq: Option<i32>,
        max: Option<i32>,
        version: Option<&str>,
    ) -> Result<Range<usize>, Failure> {
        page(Asked { seq, max, version }, VERSION, 5000)
    }

    #[test]
    fn a_caller_that_names_no_page_gets_everything() {
        assert_eq!(ask(None, None, None).unwrap(), 0..5000);
    }

    #[test]
    fn pages_follow_each_other_while_the_version_stays() {
        let same = r#"{"counter":3,"stateVersion":0,"timestamp":7}"#;
        assert_eq!(ask(Some(0), Some(100), None).unwrap(), 0..100);
        assert_eq!(ask(Some(100), Some(100), Some(same)).unwrap(), 100..200);
        assert_eq!(ask(Some(4000), None, Some(same)).unwrap(), 4000..5000);
        assert_eq!(ask(Some(9000), None, Some(same)).unwrap(), 5000..5000);
    }

    #[test]
    fn a_changed_table_is_read_from_its_beginning() {
        let other = r#"{"counter":2,"stateVersion":0,"timestamp":7}"#;
        assert_eq!(ask(Some(100), Some(100), Some(other)).unwrap(), 0..100);
    }

    #[test]
    fn absurd_pages_are_refused() {
        assert!(ask(Some(-1), None, None).is_err());
        assert!(ask(Some(0), Some(0), None).is_err());
        assert!(ask(Some(0), None, Some("{")).is_err());
    }
}
