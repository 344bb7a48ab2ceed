//! Which bodies are taken.

use serde::de::IgnoredAny;

use crate::message::{Body, InvalidMessage};

/// Why a body is not taken; shown as what is said of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadBody {
    /// There is nothing in it.
    #[error("is empty, which is not JSON")]
    Empty,
    /// It has more bytes than are taken.
    #[error("is over the limit of {limit} bytes")]
    TooLarge {
        /// The most that are taken.
        limit: usize,
    },
    /// It is no text.
    #[error("is not UTF-8 text (byte {at})")]
    NotUtf8 {
        /// The first byte that is wrong, counted from 1.
        at: usize,
    },
    /// It is no JSON.
    #[error("is not JSON: {what} (column {column})")]
    NotJson {
        /// What is wrong.
        what: String,
        /// Where.
        column: usize,
    },
    /// No message can hold it.
    #[error(transparent)]
    Invalid(#[from] InvalidMessage),
}

impl BadBody {
    /// Checks a body without building anything from it: what it gives needs no other look.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(body: &[u8], max_body: usize) -> Result<Body<'_>, Self> {
        if body.is_empty() {
            return Err(Self::Empty);
        }
        let checked = Body::within(body, max_body).map_err(|_| Self::TooLarge { limit: max_body })?;
        let text = std::str::from_utf8(body).map_err(|error| Self::NotUtf8 { at: error.valid_up_to() + 1 })?;
        serde_json::from_str::<IgnoredAny>(text).map_err(|error| {
            let text = error.to_string();
            let what = text.split(" at line ").next().unwrap_or_default().to_owned();
            Self::NotJson { what, column: error.column() }
        })?;
        Ok(checked)
    }
}
