//! Field readers for what clients of other languages write: numbers and switches as text.
//!
//! The C++ client sends `"subVersion":"1700000000000"`, older Go clients send enums as numbers.

use std::{fmt, marker::PhantomData, str::FromStr};

use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};

/// A whole number given as a number, as text, or as a float without a fraction.
pub fn number<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr + TryFrom<i64>,
{
    deserializer.deserialize_any(NumberVisitor(PhantomData))
}

struct NumberVisitor<T>(PhantomData<T>);

impl<T: FromStr + TryFrom<i64>> Visitor<'_> for NumberVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number in the range of the field")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<T, E> {
        T::try_from(value).map_err(|_| E::custom(format_args!("{value} is out of range")))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<T, E> {
        let value =
            i64::try_from(value).map_err(|_| E::custom(format_args!("{value} is out of range")))?;
        self.visit_i64(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<T, E> {
        // 2^53: beyond it a float no longer names one whole number.
        if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0 {
            return self.visit_i64(value as i64);
        }
        Err(E::custom(format_args!("{value} is no whole number")))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.trim()
            .parse()
            .map_err(|_| E::custom("text is no whole number"))
    }
}

/// A set of whole numbers, each read as [`number`] does.
pub fn numbers<'de, D, C, T>(deserializer: D) -> Result<C, D::Error>
where
    D: Deserializer<'de>,
    C: FromIterator<T>,
    T: FromStr + TryFrom<i64>,
{
    struct Item<T>(T);
    impl<'de, T: FromStr + TryFrom<i64>> Deserialize<'de> for Item<T> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            number(deserializer).map(Item)
        }
    }
    let items = Vec::<Item<T>>::deserialize(deserializer)?;
    Ok(items.into_iter().map(|item| item.0).collect())
}

/// A switch given as `true`/`false`, as that text in any case, or as 1/0.
pub fn switch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    struct SwitchVisitor;
    impl Visitor<'_> for SwitchVisitor {
        type Value = bool;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "true or false")
        }

        fn visit_bool<E: Error>(self, value: bool) -> Result<bool, E> {
            Ok(value)
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<bool, E> {
            match value {
                0 => Ok(false),
                1 => Ok(true),
                _ => Err(E::custom(format_args!("{value} is neither 0 nor 1"))),
            }
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<bool, E> {
            self.visit_i64(i64::from(value.min(2) as u8))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<bool, E> {
            if text.eq_ignore_ascii_case("true") || text == "1" {
                Ok(true)
            } else if text.eq_ignore_ascii_case("false") || text == "0" || text.is_empty() {
                Ok(false)
            } else {
                Err(E::custom("text is neither true nor false"))
            }
        }
    }
    deserializer.deserialize_any(SwitchVisitor)
}

/// Declares an enum that stands in JSON under the name Java gives it, and is read from that name
/// in any case or from its position among the constants (which older Go clients send).
macro_rules! java_enum {
    ($(#[$doc:meta])* $vis:vis enum $name:ident {
        $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// Every constant, in Java's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name that Java gives the constant.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// The constant of that name, in any case, or at that position.
            #[must_use]
            pub fn from_text(text: &str) -> Option<Self> {
                Self::ALL
                    .iter()
                    .copied()
                    .find(|constant| constant.as_str().eq_ignore_ascii_case(text))
                    .or_else(|| Self::ALL.get(text.parse::<usize>().ok()?).copied())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::json::de::constant(deserializer, stringify!($name), Self::from_text)
            }
        }
    };
}
pub(crate) use java_enum;

/// Reads an enum constant through its text form; numbers become decimal text first.
pub(crate) fn constant<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    kind: &'static str,
    find: fn(&str) -> Option<T>,
) -> Result<T, D::Error> {
    struct ConstantVisitor<T>(&'static str, fn(&str) -> Option<T>);
    impl<T> Visitor<'_> for ConstantVisitor<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a name or position of {}", self.0)
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<T, E> {
            self.visit_str(&value.to_string())
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            (self.1)(text).ok_or_else(|| {
                let shown: String = text.chars().take(40).collect();
                E::custom(format_args!("{shown:?} is no {}", self.0))
            })
        }
    }
    deserializer.deserialize_any(ConstantVisitor(kind, find))
}
