//! Messages as values: names, ids, parcels, spans and outcomes.
//!
//! Pure code: no I/O, no clock, no randomness except where an id is made. Whatever bytes come in, nothing here
//! panics; what is malformed is refused with an [`InvalidMessage`] that says why.

mod body;
mod cache_key;
mod call;
mod digest;
mod gone;
mod headers;
mod invalid;
mod name;
mod outcome;
mod parcel;
mod ranges;
mod session_id;
mod span;

pub(crate) use body::MAX_BODY_LIMIT;
pub use body::{Body, MAX_BODY_BYTES};
pub use cache_key::{CacheKey, MAX_CACHE_KEY_BYTES, MAX_CACHE_KEY_PARTS, Prefix, Scope};
pub use call::{CALL, CANCELLED, CallEvent, CallId, CallRole, Calling, END, ERROR, MAX_EVENT_BYTES, RESTART};
pub(crate) use call::{cause, is_reserved};
pub use digest::Digest;
pub(crate) use gone::Gone;
#[cfg(feature = "redis")]
pub(crate) use gone::THINNED_AT;
pub use headers::{Fields, Headers, LAST_ERROR, MAX_LAST_ERROR_BYTES};
pub use invalid::InvalidMessage;
pub use name::{Key, Name};
pub use outcome::{Outcome, Run, Submission, SubmissionKey};
#[cfg(feature = "redis")]
pub(crate) use parcel::{HEADED, PARCEL_TABLE};
pub use parcel::{PLAIN, Parcel, ParcelBuilder};
pub use ranges::{IdSum, Mask, MessageId, Range};
pub use session_id::SessionId;
pub(crate) use span::SPLIT_AFTER_CRASH;
#[cfg(feature = "redis")]
pub(crate) use span::SUSPECT_CRASHES;
pub use span::{BodyPlace, MAX_CRASHES, Span};
