//! Why a value from outside was refused.

/// A malformed message, parcel, name or id; the text names the cause and, where there is one, the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidMessage {
    /// A queue, source or fleet name outside the allowed alphabet or length, or a step of a path.
    #[error("the name {0:?} is not usable: take 1 to 64 of the characters A-Z a-z 0-9 . _ : -, but not . or .. alone")]
    Name(String),
    /// An idempotency or bookmark key that is empty, too long or has control characters.
    #[error("the key {0:?} is not usable: take 1 to 200 bytes without control characters")]
    Key(String),
    /// A key of something cached that is too long, or a prefix of such keys.
    #[error("a key of {parts} parts and {bytes} bytes is over the limit of 16 parts and 1,024 bytes")]
    CacheKey {
        /// Its bytes as text.
        bytes: usize,
        /// Its parts.
        parts: usize,
    },
    /// A session id that is not 32 hexadecimal digits.
    #[error("{0:?} is not a session id (32 hexadecimal digits)")]
    SessionId(String),
    /// A digest that is not 64 hexadecimal digits.
    #[error("{0:?} is not a digest (64 hexadecimal digits)")]
    Digest(String),
    /// A body over the limit.
    #[error(
        "a body of {len} bytes is over the limit of {limit} bytes: store the data elsewhere and push a reference to it"
    )]
    BodyTooLarge {
        /// Bytes of the body.
        len: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// Parcel bytes that do not follow the format.
    #[error("damaged parcel: {0}")]
    Parcel(&'static str),
    /// A call that is not named by a queue and an id.
    #[error("{0:?} is not a call (queue/id)")]
    Call(String),
    /// Bytes of an event that do not follow the format.
    #[error("damaged event")]
    Event,
    /// A span record that does not follow the format.
    #[error("damaged span record {0:?}")]
    Span(String),
}
