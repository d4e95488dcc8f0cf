//! Namespaces of 5.x clients: the name comes bare, `ns` and `nsd` say which namespace it is in.
//!
//! Joined as 4.x clients write it themselves: `namespace%name`, behind a `%RETRY%` or `%DLQ%` prefix.

use std::borrow::Cow;

use rmq_protocol::remoting::ExtFields;
use rmq_types::system;

/// Puts the namespace of a request, if it has one, into a topic or group name.
pub(crate) fn join(ext: &ExtFields<'_>, name: &mut Cow<'_, str>) {
    if !ext.is_true("nsd") {
        return;
    }
    let Some(namespace) = ext.get("ns").filter(|namespace| !namespace.is_empty()) else {
        return;
    };
    if let Some(joined) = joined(namespace, name) {
        *name = Cow::Owned(joined);
    }
}

/// `None`: system names and names that already carry the namespace stay.
fn joined(namespace: &str, name: &str) -> Option<String> {
    let (prefix, rest) = [system::RETRY_PREFIX, system::DLQ_PREFIX]
        .into_iter()
        .find_map(|prefix| name.strip_prefix(prefix).map(|rest| (prefix, rest)))
        .unwrap_or(("", name));
    let own = rest
        .strip_prefix(namespace)
        .is_some_and(|tail| tail.starts_with('%'));
    if own || rest.is_empty() || system::is_system_topic(rest) || system::is_system_group(rest) {
        return None;
    }
    Some(format!("{prefix}{namespace}%{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_stands_before_the_name_and_behind_the_prefix() {
        assert_eq!(joined("ns", "T").unwrap(), "ns%T");
        assert_eq!(joined("ns", "%RETRY%g").unwrap(), "%RETRY%ns%g");
        assert_eq!(joined("ns", "ns%T"), None);
        assert_eq!(joined("ns", "TBW102"), None);
    }

    #[test]
    fn only_a_request_that_says_so_is_changed() {
        let mut ext = ExtFields::new();
        ext.push("ns", "x");
        let mut name = Cow::Borrowed("T");
        join(&ext, &mut name);
        assert_eq!(name, "T");
        ext.push("nsd", "true");
        join(&ext, &mut name);
        assert_eq!(name, "x%T");
    }
}
