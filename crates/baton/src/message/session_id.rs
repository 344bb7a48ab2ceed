//! Session ids: 128 random bits, never reused.

use std::{fmt, str::FromStr};

use super::InvalidMessage;

/// One start, or one re-join, of a node of the fleet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(u128);

impl SessionId {
    /// A new id from the operating system's random numbers.
    ///
    /// # Panics
    /// If the operating system has no source of random numbers: nothing safe can be done without one.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a session id that may repeat would break every fence")]
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the operating system gives random numbers");
        Self(u128::from_be_bytes(bytes))
    }

    /// The id with this value; for tests and for ids read back from a store.
    #[must_use]
    pub const fn from_u128(value: u128) -> Self {
        Self(value)
    }

    /// Its text. Every call to a store writes one: a third of what the standard library takes for it.
    pub(crate) fn digits(self) -> [u8; 32] {
        let digit = |half: u8| if half < 10 { b'0' + half } else { b'a' - 10 + half };
        let mut text = [b'0'; 32];
        for (digits, byte) in text.chunks_exact_mut(2).zip(self.0.to_be_bytes()) {
            if let [high, low] = digits {
                (*high, *low) = (digit(byte >> 4), digit(byte & 15));
            }
        }
        text
    }

    /// Its 16 bytes, in the order of ids.
    #[cfg(feature = "sqlite")]
    pub(crate) const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl FromStr for SessionId {
    type Err = InvalidMessage;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let hex = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let value = u128::from_str_radix(text, 16).ok().filter(|_| hex);
        value.map(Self).ok_or_else(|| InvalidMessage::SessionId(text.chars().take(80).collect()))
    }
}

impl serde::Serialize for SessionId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(str::from_utf8(&self.digits()).unwrap_or_default())
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trip() {
        let id = SessionId::random();
        assert_eq!(id.to_string().parse::<SessionId>().unwrap(), id);
        for bad in ["", "+0000000000000000000000000000001", "zz", &"0".repeat(33)] {
            assert!(bad.parse::<SessionId>().is_err(), "{bad:?}");
        }
    }
}
