//! Keys of what is cached, and the prefixes that invalidate many of them at once.
//!
//! A key is a row of parts. As text each part is escaped and parts are separated by `/`, so no part, whatever bytes it
//! has, can be taken for two, and a prefix ends at a separator: `sales/1/` covers the key `sales/1` and all below it, and
//! never `sales/10`.

use std::{fmt, fmt::Write as _, sync::Arc};

use super::{Digest, InvalidMessage};

/// The most bytes that a key has as text.
pub const MAX_CACHE_KEY_BYTES: usize = 1024;
/// The most parts of a key.
pub const MAX_CACHE_KEY_PARTS: usize = 16;
/// A part that is longer as text is told by its digest.
const MAX_PART: usize = 128;

/// The key of something that is cached: everything that its value depends on, parameters in one canonical form and, where
/// it matters, who asks.
///
/// ```
/// use baton::cache::{CacheKey, Prefix};
/// let key = CacheKey::new("sales").part("db 1").part("a/b");
/// assert_eq!(key.as_str(), "sales/db%201/a%2Fb");
/// assert!(Prefix::new("sales").part("db 1").covers(&key));
/// assert!(!Prefix::new("sal").covers(&key));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheKey(Arc<str>);

impl CacheKey {
    /// The key of one part.
    #[must_use]
    pub fn new(part: impl AsRef<[u8]>) -> Self {
        let mut text = String::new();
        escape(&mut text, part.as_ref());
        Self(text.into())
    }

    /// The key with one part more; any bytes will do. A very long one is told by its digest.
    #[must_use]
    pub fn part(&self, part: impl AsRef<[u8]>) -> Self {
        let mut text = String::with_capacity(self.0.len() + 1 + part.as_ref().len());
        text.push_str(&self.0);
        text.push('/');
        escape(&mut text, part.as_ref());
        Self(text.into())
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Refuses one that is too long for a store.
    ///
    /// # Errors
    /// [`InvalidMessage::CacheKey`].
    pub fn check(&self) -> Result<(), InvalidMessage> {
        check(&self.0)
    }

    /// The key from its text, as a store has it.
    pub(crate) fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    /// Everything that can be forgotten which covers this key, the widest first: all, its prefixes, itself.
    pub(crate) fn scopes(&self) -> impl Iterator<Item = Scope> + '_ {
        let text = &*self.0;
        let ends = text.match_indices('/').filter_map(|(at, _)| text.get(..=at));
        let prefixes = std::iter::once("").chain(ends).map(|prefix| Scope(format!("p{prefix}").into()));
        let own = [Scope(format!("p{text}/").into()), Scope::of_key(self)];
        prefixes.chain(own)
    }
}

impl fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// All keys that begin with the same parts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(Arc<str>);

impl Prefix {
    /// All keys.
    #[must_use]
    pub fn all() -> Self {
        Self("".into())
    }

    /// All keys whose first part is this one.
    #[must_use]
    pub fn new(part: impl AsRef<[u8]>) -> Self {
        Self::all().part(part)
    }

    /// Those of them that have this part next.
    #[must_use]
    pub fn part(&self, part: impl AsRef<[u8]>) -> Self {
        let mut text = self.0.to_string();
        escape(&mut text, part.as_ref());
        text.push('/');
        Self(text.into())
    }

    /// Whether this key is one of them.
    #[must_use]
    pub fn covers(&self, key: &CacheKey) -> bool {
        key.0.strip_prefix(&*self.0).is_some() || self.0.strip_suffix('/') == Some(&*key.0)
    }

    /// Refuses one that is too long for a store.
    ///
    /// # Errors
    /// [`InvalidMessage::CacheKey`].
    pub fn check(&self) -> Result<(), InvalidMessage> {
        check(&self.0)
    }
}

/// What can be forgotten at once: a key, or all below a prefix. As text `k` and the key, or `p` and the prefix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(Arc<str>);

impl Scope {
    /// One key alone.
    #[must_use]
    pub fn of_key(key: &CacheKey) -> Self {
        Self(format!("k{}", key.0).into())
    }

    /// All keys below a prefix.
    #[must_use]
    pub fn of_prefix(prefix: &Prefix) -> Self {
        Self(format!("p{}", prefix.0).into())
    }

    /// The scope as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The scope from its text, as a store has it.
    pub(crate) fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    /// Refuses one that is too long for a store.
    ///
    /// # Errors
    /// [`InvalidMessage::CacheKey`].
    pub fn check(&self) -> Result<(), InvalidMessage> {
        check(self.0.get(1..).unwrap_or_default())
    }
}

fn check(text: &str) -> Result<(), InvalidMessage> {
    let parts = text.bytes().filter(|byte| *byte == b'/').count() + 1;
    if text.len() <= MAX_CACHE_KEY_BYTES && parts <= MAX_CACHE_KEY_PARTS {
        return Ok(());
    }
    Err(InvalidMessage::CacheKey { bytes: text.len(), parts })
}

/// Writes a part so that it has no separator: what is no letter, digit, `.`, `_` or `-` is `%` and its hexadecimal code. One
/// that would be too long is `~` and its digest; no other has a `~`.
fn escape(to: &mut String, part: &[u8]) {
    let begun = to.len();
    for byte in part {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-') {
            to.push(char::from(*byte));
        } else {
            // Writing to a string does not fail.
            write!(to, "%{byte:02X}").ok();
        }
        if to.len() - begun > MAX_PART {
            to.truncate(begun);
            write!(to, "~{}", Digest::of(part)).ok();
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_never_taken_for_others() {
        let odd: [&[u8]; 10] =
            [b"", b"/", b"%2F", b"a", b"a/b", b"constructor", b"__proto__", b"\xff\xfe", b"~", b"a b\n"];
        let mut seen = std::collections::HashSet::new();
        for first in odd {
            assert!(seen.insert(CacheKey::new(first)), "{first:?}");
            for second in odd {
                assert!(seen.insert(CacheKey::new(first).part(second)), "{first:?} {second:?}");
            }
        }
        let (long, longer) = ("x".repeat(5_000), "x".repeat(5_001));
        let (long, longer) = (CacheKey::new(&long), CacheKey::new(&longer));
        assert_ne!(long, longer);
        assert_eq!(long.as_str().len(), 65);
        assert!(longer.check().is_ok());
    }

    #[test]
    fn prefixes_end_at_a_separator() {
        let key = CacheKey::new("sales").part("1").part("x");
        for covers in [Prefix::all(), Prefix::new("sales"), Prefix::new("sales").part("1").part("x")] {
            assert!(covers.covers(&key), "{covers:?}");
            assert!(key.scopes().any(|scope| scope == Scope::of_prefix(&covers)), "{covers:?}");
        }
        for other in [Prefix::new("sale"), Prefix::new("sales").part("10"), Prefix::new("sales").part("")] {
            assert!(!other.covers(&key), "{other:?}");
            assert!(!key.scopes().any(|scope| scope == Scope::of_prefix(&other)), "{other:?}");
        }
        assert!(key.scopes().any(|scope| scope == Scope::of_key(&key)));
        assert!(!key.scopes().any(|scope| scope == Scope::of_key(&CacheKey::new("sales"))));
    }

    #[test]
    fn what_is_too_long_is_refused_where_it_is_used() {
        let many = (0..20).fold(CacheKey::new("a"), |key, _| key.part("b"));
        assert!(many.check().is_err());
        let long = (0..9).fold(CacheKey::new("a"), |key, _| key.part("b".repeat(120)));
        assert!(long.check().is_err());
    }
}
