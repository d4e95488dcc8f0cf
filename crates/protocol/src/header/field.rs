//! How one field of a typed header is read and written, and the macro that makes header structs.
//!
//! Text forms as Java has them: decimal integers, `true` in any letter case or else false.

use std::borrow::Cow;

use crate::remoting::ExtFields;

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// A required field is not there.
    #[error("the custom field <{0}> is null")]
    Missing(&'static str),
    /// The text is no value of the field's type.
    #[error("the custom field <{field}> is not {expected}: {found:?}")]
    Invalid {
        /// Name on the wire.
        field: &'static str,
        /// What was expected.
        expected: &'static str,
        /// The first characters of what stood there.
        found: String,
    },
}

/// A header that can be read from the fields of a frame.
pub trait DecodeHeader<'a>: Sized {
    /// Reads all fields.
    fn decode(ext: &'a ExtFields<'_>) -> Result<Self, FieldError>;
}

/// A header that can be written into the fields of a frame.
pub trait EncodeHeader {
    /// Appends all fields that are set.
    fn encode(&self, ext: &mut ExtFields<'static>);
}

/// A type that a field can have.
pub(super) trait Field<'a>: Sized {
    const EXPECTED: &'static str;
    fn parse(text: &'a str) -> Option<Self>;
    /// The value when the field is absent; `None` when it is required.
    fn absent() -> Option<Self>;
    fn render(&self) -> Option<String>;
}

impl<'a> Field<'a> for Cow<'a, str> {
    const EXPECTED: &'static str = "a text";
    fn parse(text: &'a str) -> Option<Self> {
        Some(Cow::Borrowed(text))
    }
    fn absent() -> Option<Self> {
        None
    }
    fn render(&self) -> Option<String> {
        Some(self.clone().into_owned())
    }
}

/// A number of at most `digits_max` digits and nothing else: what nearly every number field is.
#[inline]
fn short_number(text: &str, digits_max: usize) -> Option<i64> {
    if text.is_empty() || text.len() > digits_max {
        return None;
    }
    let mut value = 0;
    for byte in text.bytes() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(value)
}

macro_rules! number_field {
    ($type:ty, $digits:literal, $expected:literal) => {
        impl<'a> Field<'a> for $type {
            const EXPECTED: &'static str = $expected;
            fn parse(text: &'a str) -> Option<Self> {
                match short_number(text, $digits) {
                    Some(value) => Some(value as $type),
                    None => text.parse().ok(),
                }
            }
            fn absent() -> Option<Self> {
                None
            }
            fn render(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    };
}
// As many digits as always fit.
number_field!(i32, 9, "a 32-bit number");
number_field!(i64, 18, "a 64-bit number");

impl<'a> Field<'a> for bool {
    const EXPECTED: &'static str = "a boolean";
    fn parse(text: &'a str) -> Option<Self> {
        Some(text.eq_ignore_ascii_case("true"))
    }
    fn absent() -> Option<Self> {
        Some(false)
    }
    fn render(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl<'a, T: Field<'a>> Field<'a> for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;
    fn parse(text: &'a str) -> Option<Self> {
        T::parse(text).map(Some)
    }
    fn absent() -> Option<Self> {
        Some(None)
    }
    fn render(&self) -> Option<String> {
        self.as_ref().and_then(Field::render)
    }
}

pub(super) fn parse<'a, T: Field<'a>>(field: &'static str, text: &'a str) -> Result<T, FieldError> {
    T::parse(text).ok_or_else(|| FieldError::Invalid {
        field,
        expected: T::EXPECTED,
        found: text.chars().take(32).collect(),
    })
}

pub(super) fn required<'a, T: Field<'a>>(
    field: &'static str,
    value: Option<T>,
    default: Option<T>,
) -> Result<T, FieldError> {
    value
        .or(default)
        .or_else(T::absent)
        .ok_or(FieldError::Missing(field))
}

/// Declares header structs: `name: Type = "wire name"`, optionally `or default`.
macro_rules! headers {
    ($(
        $(#[$doc:meta])*
        pub struct $name:ident $(<$lt:lifetime>)? { $($body:tt)* }
    )*) => { $(
        headers!(@dispatch [$(#[$doc])*] $name [$($lt)?] { $($body)* });
    )* };
    (@dispatch [$($doc:tt)*] $name:ident [] { $($body:tt)* }) => {
        headers!(@item [$($doc)*] $name [] [<'de>] ['de] [] { $($body)* });
    };
    (@dispatch [$($doc:tt)*] $name:ident [$lt:lifetime] { $($body:tt)* }) => {
        headers!(@item [$($doc)*] $name [<$lt>] [<$lt>] [$lt] [<'_>] { $($body)* });
    };
    (@item [$($doc:tt)*] $name:ident
        [$($generics:tt)*] [$($bound:tt)*] [$lt:lifetime] [$($elided:tt)*] { $(
            $(#[$field_doc:meta])* $field:ident: $type:ty = $wire:literal $(or $default:expr)?,
        )* }
    ) => {
        $($doc)*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name $($generics)* {
            $( $(#[$field_doc])* #[doc = concat!("Wire name `", $wire, "`.")] pub $field: $type, )*
        }

        impl $($bound)* $crate::header::DecodeHeader<$lt> for $name $($generics)* {
            fn decode(
                ext: &$lt $crate::remoting::ExtFields<'_>,
            ) -> Result<Self, $crate::header::FieldError> {
                $( let mut $field: Option<$type> = None; )*
                for (key, value) in ext.iter() {
                    match key {
                        $( $wire => $field = Some($crate::header::field::parse($wire, value)?), )*
                        _ => {}
                    }
                }
                Ok(Self {
                    $( $field: $crate::header::field::required(
                        $wire, $field, headers!(@default $($default)?))?, )*
                })
            }
        }

        impl $crate::header::EncodeHeader for $name $($elided)* {
            fn encode(&self, ext: &mut $crate::remoting::ExtFields<'static>) {
                $( if let Some(text) = $crate::header::field::Field::render(&self.$field) {
                    ext.push($wire, text);
                } )*
            }
        }
    };
    (@default) => { None };
    (@default $default:expr) => { Some($default) };
}
pub(super) use headers;
