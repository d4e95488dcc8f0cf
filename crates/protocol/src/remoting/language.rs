//! The language a peer says it is written in (`LanguageCode`).

/// Known languages; the number is the wire code of the binary header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the variants are names of languages")]
pub enum Language {
    Java = 0,
    Cpp = 1,
    Dotnet = 2,
    Python = 3,
    Delphi = 4,
    Erlang = 5,
    Ruby = 6,
    Other = 7,
    Http = 8,
    Go = 9,
    Php = 10,
    Oms = 11,
    Rust = 12,
    NodeJs = 13,
}

const ALL: [(Language, &str); 14] = [
    (Language::Java, "JAVA"),
    (Language::Cpp, "CPP"),
    (Language::Dotnet, "DOTNET"),
    (Language::Python, "PYTHON"),
    (Language::Delphi, "DELPHI"),
    (Language::Erlang, "ERLANG"),
    (Language::Ruby, "RUBY"),
    (Language::Other, "OTHER"),
    (Language::Http, "HTTP"),
    (Language::Go, "GO"),
    (Language::Php, "PHP"),
    (Language::Oms, "OMS"),
    (Language::Rust, "RUST"),
    (Language::NodeJs, "NODE_JS"),
];

impl Language {
    /// The name as JSON headers and bodies carry it.
    #[must_use]
    pub fn name(self) -> &'static str {
        ALL[self as usize].1
    }

    /// From a name in any letter case; a language nobody knows is `Other`.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        ALL.iter()
            .find(|(_, known)| known.eq_ignore_ascii_case(name))
            .map_or(Self::Other, |(language, _)| *language)
    }

    /// From a wire code; a number nobody knows is `Other`.
    #[must_use]
    pub fn from_code(code: i64) -> Self {
        usize::try_from(code)
            .ok()
            .and_then(|index| ALL.get(index))
            .map_or(Self::Other, |(language, _)| *language)
    }
}
