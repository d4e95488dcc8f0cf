//! The free fields of a header: pairs of texts in wire order, without a map.

use std::borrow::Cow;

/// `extFields`: names and values. A name that stands twice counts with its last value, as in Java.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtFields<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> ExtFields<'a> {
    /// No fields.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// No fields, room for `count`.
    #[must_use]
    pub fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// The value of `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .rev()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_ref())
    }

    /// Whether `name` has the value `true` in any letter case (`Boolean.parseBoolean`).
    #[must_use]
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// All pairs in wire order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(key, value)| (key.as_ref(), value.as_ref()))
    }

    /// Adds a pair.
    #[inline]
    pub fn push(&mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, str>>) {
        self.0.push((name.into(), value.into()));
    }

    /// Sets the value of `name`, whatever it was.
    pub fn set(&mut self, name: &'static str, value: impl Into<Cow<'a, str>>) {
        self.0.retain(|(key, _)| key != name);
        self.0.push((Cow::Borrowed(name), value.into()));
    }

    /// Takes `name` out.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key != name);
    }

    /// Number of pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no pair.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same fields, holding their own text.
    #[must_use]
    pub fn into_owned(self) -> ExtFields<'static> {
        ExtFields(
            self.0
                .into_iter()
                .map(|(key, value)| (Cow::Owned(key.into_owned()), Cow::Owned(value.into_owned())))
                .collect(),
        )
    }
}
