//! NameServer addresses as people write them.
//!
//! **Invariant:** what [`parse_addresses`] gives is `host:port` with a port from 1 to 65535; whether
//! somebody answers there is found out by asking.

/// The port of a NameServer when none is given.
const DEFAULT_PORT: u16 = 9876;

/// Why a text is no list of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// No address at all.
    #[error("no NameServer address given; expected host:port, several separated by ';'")]
    Empty,
    /// Something before the port that is no host.
    #[error("{text:?} is no address: expected host:port, several separated by ';'")]
    Host {
        /// The part that is wrong.
        text: String,
    },
    /// The port is no number from 1 to 65535.
    #[error("{text:?} has no valid port: expected host:port with a port from 1 to 65535")]
    Port {
        /// The part that is wrong.
        text: String,
    },
}

/// Reads `a:9876;b:9876`. A comma or white space separates as well; a host without a port gets
/// 9876; repeated addresses count once.
pub fn parse_addresses(text: &str) -> Result<Vec<String>, AddressError> {
    let mut addresses: Vec<String> = Vec::new();
    let parts = text.split(|c: char| c == ';' || c == ',' || c.is_whitespace());
    for part in parts.filter(|part| !part.is_empty()) {
        let address = parse_address(part)?;
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err(AddressError::Empty);
    }
    Ok(addresses)
}

fn parse_address(part: &str) -> Result<String, AddressError> {
    let (host, port) = split(part);
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte);
    if bare.is_empty() || !bare.bytes().all(allowed) {
        return Err(AddressError::Host { text: part.into() });
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(digits) => match digits.parse::<u16>() {
            Ok(port) if port > 0 => port,
            _ => return Err(AddressError::Port { text: part.into() }),
        },
    };
    let host = if bare.contains(':') {
        format!("[{bare}]")
    } else {
        bare.to_owned()
    };
    Ok(format!("{host}:{port}"))
}

/// Host and port text; the colons of a bare IPv6 address separate nothing.
fn split(part: &str) -> (&str, Option<&str>) {
    if let Some(end) = part.rfind(']') {
        let (host, rest) = part.split_at(end + 1);
        return (
            host,
            rest.strip_prefix(':')
                .or((!rest.is_empty()).then_some(rest)),
        );
    }
    match part.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => (host, Some(port)),
        _ => (part, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_addresses_are_separated_by_semicolon_comma_or_space() {
        let wanted = ["a:9876", "b:9877", "10.0.0.1:1"];
        for text in ["a:9876;b:9877;10.0.0.1:1", "a:9876,b:9877, 10.0.0.1:1;"] {
            assert_eq!(parse_addresses(text).unwrap(), wanted, "{text}");
        }
    }

    #[test]
    fn a_missing_port_is_the_usual_one_and_repeated_addresses_count_once() {
        assert_eq!(parse_addresses("ns;ns:9876").unwrap(), ["ns:9876"]);
        assert_eq!(parse_addresses("::1;[::1]:9876").unwrap(), ["[::1]:9876"]);
    }

    #[test]
    fn wrong_addresses_are_refused_with_the_part_that_is_wrong() {
        for text in ["a:99999", "a:0", "a:port", "a:", "[::1]x"] {
            let error = parse_addresses(text).unwrap_err();
            assert_eq!(error, AddressError::Port { text: text.into() }, "{text}");
        }
        for text in [":9876", "http://a:9876", "a/b:1"] {
            let error = parse_addresses(text).unwrap_err();
            assert_eq!(error, AddressError::Host { text: text.into() }, "{text}");
        }
        assert_eq!(parse_addresses(" ; ,"), Err(AddressError::Empty));
    }

    proptest::proptest! {
        #[test]
        fn what_is_read_once_reads_the_same_again(text in "[a-c:;,\\[\\]0-9. ]{0,24}") {
            if let Ok(addresses) = parse_addresses(&text) {
                proptest::prop_assert_eq!(parse_addresses(&addresses.join(";")), Ok(addresses));
            }
        }
    }
}
