//! Names of fleets, queues and sources, and keys given by callers.

use std::{fmt, str::FromStr, sync::Arc};

use super::InvalidMessage;

/// The name of a fleet, a queue or a source: 1 to 64 of `A-Z a-z 0-9 . _ : -`, but not `.` or `..` alone.
///
/// The alphabet holds no character that means something in a store key, a URL path, a glob or a label. Clients take `.` and
/// `..` out of a URL path before they send it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// Checks `text` and takes it as a name.
    ///
    /// # Errors
    /// [`InvalidMessage::Name`] outside the alphabet or length, and for `.` and `..`.
    pub fn new(text: &str) -> Result<Self, InvalidMessage> {
        let fits = (1..=64).contains(&text.len())
            && !matches!(text, "." | "..")
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-'));
        if fits { Ok(Self(text.into())) } else { Err(InvalidMessage::Name(text.chars().take(80).collect())) }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl serde::Serialize for Name {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl FromStr for Name {
    type Err = InvalidMessage;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A caller's own key, for idempotent pushes and bookmarks: 1 to 200 bytes without control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// Checks `text` and takes it as a key.
    ///
    /// # Errors
    /// [`InvalidMessage::Key`] if it is empty, too long or has control characters.
    pub fn new(text: &str) -> Result<Self, InvalidMessage> {
        let fits = (1..=200).contains(&text.len()) && !text.chars().any(char::is_control);
        if fits { Ok(Self(text.into())) } else { Err(InvalidMessage::Key(text.chars().take(80).collect())) }
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Key {
    type Err = InvalidMessage;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_to_the_alphabet() {
        for good in ["messages", "a", "emails:high", "v1.2_x-y", "...", ".a", "a."] {
            assert_eq!(Name::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "a b", "a/b", "{x}", "naïve", "a*", "a\n", ".", "..", &"x".repeat(65)] {
            assert!(Name::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn keys_are_short_and_printable() {
        assert!(Key::new("order 17 / größe").is_ok());
        for bad in ["", "a\u{0}b", "tab\t", &"k".repeat(201)] {
            assert!(Key::new(bad).is_err(), "{bad:?}");
        }
    }
}
