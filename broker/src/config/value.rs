//! Types that a key can have, each with its own bounds.

use std::fmt;

/// Why a text is no value for a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}={found:?}: expected {expected}")]
pub struct ValueError {
    /// The key.
    pub key: &'static str,
    /// What the key takes.
    pub expected: String,
    /// The first characters of what stood there.
    pub found: String,
}

/// A type of the table.
pub(super) trait Value: Sized {
    fn parse(text: &str) -> Option<Self>;
    fn expected() -> String;
    fn render(&self) -> String;
}

/// A whole number within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Int<const MIN: i64, const MAX: i64>(i64);

impl<const MIN: i64, const MAX: i64> Int<MIN, MAX> {
    /// A literal of the table; out of bounds is a mistake in the table.
    pub(super) const fn literal(value: i64) -> Self {
        assert!(
            MIN <= value && value <= MAX,
            "default within its own bounds"
        );
        Self(value)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl From<u16> for Int<0, 65_535> {
    fn from(port: u16) -> Self {
        Self(i64::from(port))
    }
}

impl<const MIN: i64, const MAX: i64> Value for Int<MIN, MAX> {
    fn parse(text: &str) -> Option<Self> {
        let value: i64 = text.parse().ok()?;
        (MIN..=MAX).contains(&value).then_some(Self(value))
    }
    fn expected() -> String {
        format!("a whole number from {MIN} to {MAX}")
    }
    fn render(&self) -> String {
        self.0.to_string()
    }
}

impl Value for bool {
    fn parse(text: &str) -> Option<Self> {
        match text {
            _ if text.eq_ignore_ascii_case("true") => Some(true),
            _ if text.eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        }
    }
    fn expected() -> String {
        "true or false".to_owned()
    }
    fn render(&self) -> String {
        self.to_string()
    }
}

impl Value for String {
    fn parse(text: &str) -> Option<Self> {
        (text.len() <= 4096 && !text.contains(['\0', '\n', '\r'])).then(|| text.to_owned())
    }
    fn expected() -> String {
        "one line of at most 4096 bytes".to_owned()
    }
    fn render(&self) -> String {
        self.clone()
    }
}

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $(#[doc = concat!("`", $text, "`.")] $variant),*
        }
        impl Value for $name {
            fn parse(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$variant),)*
                    _ => None,
                }
            }
            fn expected() -> String {
                concat!("one of", $(" ", $text),*).to_owned()
            }
            fn render(&self) -> String {
                self.to_string()
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $text),* })
            }
        }
    };
}

choice! {
    /// When a send is answered: once the page cache has the message, or once the disk has.
    FlushDiskType { Async = "ASYNC_FLUSH", Sync = "SYNC_FLUSH" }
}
choice! {
    /// What the broker is in its group.
    BrokerRole { AsyncMaster = "ASYNC_MASTER", SyncMaster = "SYNC_MASTER", Slave = "SLAVE" }
}
choice! {
    /// How a group's queues are handed out when nobody said so per topic.
    RequestMode { Pull = "PULL", Pop = "POP" }
}
