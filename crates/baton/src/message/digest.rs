//! Digests: what two bodies, or two runs over the same input, are compared by.

use std::{fmt, str::FromStr};

use sha2::{Digest as _, Sha256};

use super::InvalidMessage;

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of nothing yet: where a chain of [`Digest::then`] begins.
    pub const START: Self = Self([0; 32]);

    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// This digest carried on over further bytes; the order and the cuts between steps count.
    #[must_use]
    pub fn then(self, bytes: &[u8]) -> Self {
        Self(Sha256::new().chain_update(self.0).chain_update(bytes).finalize().into())
    }
}

impl FromStr for Digest {
    type Err = InvalidMessage;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || InvalidMessage::Digest(text.chars().take(80).collect());
        if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(refuse());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| refuse())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| refuse())?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trip_and_chaining() {
        let one = Digest::START.then(b"a\n").then(b"b\n");
        assert_eq!(one.to_string().parse::<Digest>().unwrap(), one);
        assert_ne!(one, Digest::START.then(b"b\n").then(b"a\n"));
        assert_eq!(Digest::of(b"abc").to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!("xy".parse::<Digest>().is_err());
    }
}
