//! Administration: topics, groups, configuration, figures. One file per subject.

use super::Kind;

/// The handler of an administrative code.
pub(super) fn handler_of(_request_code: i32) -> Option<Kind> {
    None
}
