//! One macro for enums whose variants are words of the API.
//!
//! **Invariant:** the text of a variant is its name, so that code, status and documentation cannot
//! differ.

/// Makes an enum with `ALL`, `as_str`, `Display` and serde's plain form.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $( $(#[$doc:meta])* $variant:ident, )* }) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
            schemars::JsonSchema, serde::Deserialize, serde::Serialize,
        )]
        pub enum $name { $( $(#[$doc])* $variant, )* }

        impl $name {
            /// Every word.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )* ];

            /// The word as it stands in the API.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => stringify!($variant), )* }
            }

            /// The variant with this word.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use words;
