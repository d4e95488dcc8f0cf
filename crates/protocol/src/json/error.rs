//! Why a JSON text was refused. Every variant is the sender's fault; none is worth a retry.

use thiserror::Error;

/// What stood where something else belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SyntaxFault {
    /// The text ends inside a value.
    #[error("unexpected end")]
    End,
    /// No value begins with this byte.
    #[error("a value was expected")]
    Value,
    /// A body is an object.
    #[error("an object was expected")]
    Object,
    /// A key is a string, a whole number or (once) an object.
    #[error("a key was expected")]
    Key,
    /// No `:` after a key.
    #[error("':' was expected")]
    Colon,
    /// Neither `,` nor the closing bracket of the open container.
    #[error("',' or the end of the container was expected")]
    Separator,
    /// Something follows the value.
    #[error("text after the end of the value")]
    Trailing,
    /// An object as key inside an object that is itself a key.
    #[error("an object key inside an object key")]
    NestedKey,
}

/// Why a JSON text was refused.
#[derive(Debug, Error)]
pub enum JsonError {
    /// Longer than [`super::BYTES_MAX`].
    #[error("json text of {bytes} bytes is longer than {max}")]
    TooLong {
        /// Length of the text.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// Nested deeper than `limits::JSON_DEPTH_MAX`.
    #[error("json nested deeper than {max} at byte {at}")]
    TooDeep {
        /// Where.
        at: usize,
        /// The limit.
        max: usize,
    },
    /// More objects and arrays than a text of this length may hold.
    #[error("json of {bytes} bytes holds more than {max} objects and arrays")]
    TooMany {
        /// Length of the text.
        bytes: usize,
        /// The limit for that length.
        max: usize,
    },
    /// A number or word longer than [`super::WORD_BYTES_MAX`].
    #[error("json number or word longer than {max} bytes at byte {at}")]
    WordTooLong {
        /// Where it begins.
        at: usize,
        /// The limit.
        max: usize,
    },
    /// A reference (`{"$ref":"$.x"}`) to nothing, to something around itself, inside a key, or one
    /// of too many.
    #[error("json reference ($ref) that cannot be followed; the first stands at byte {at}")]
    Reference {
        /// Where the first reference of the text stands.
        at: usize,
    },
    /// The text is no JSON.
    #[error("bad json at byte {at}: {fault}")]
    Syntax {
        /// Where.
        at: usize,
        /// What is wrong there.
        fault: SyntaxFault,
    },
    /// JSON, but not of the form that the body has.
    #[error("json does not fit: {0}")]
    Shape(#[source] serde_json::Error),
}
