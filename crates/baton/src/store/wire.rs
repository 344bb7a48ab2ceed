//! Values as text, the way stores keep them and scripts send them.

use super::{Place, StoreError};
use crate::message::Span;

/// A place as `lines,digest`.
pub(crate) fn place(place: &Place) -> String {
    format!("{},{}", place.lines, place.digest)
}

/// Reads [`place`]; nothing is the start.
pub(crate) fn parse_place(text: &str) -> Result<Place, StoreError> {
    if text.is_empty() {
        return Ok(Place::START);
    }
    let (lines, digest) = text.split_once(',').unwrap_or_default();
    match (lines.parse(), digest.parse()) {
        (Ok(lines), Ok(digest)) => Ok(Place { lines, digest }),
        _ => Err(unreadable(text)),
    }
}

/// Spans as `span;span;…`.
pub(crate) fn spans(spans: &[Span]) -> String {
    spans.iter().map(ToString::to_string).collect::<Vec<_>>().join(";")
}

/// Reads [`spans`].
pub(crate) fn parse_spans(text: &str) -> Result<Vec<Span>, StoreError> {
    list(text, |word| word.parse().ok())
}

/// Reads words between semicolons.
pub(super) fn list<T>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, StoreError> {
    let words = text.split(';').filter(|word| !word.is_empty());
    let values: Option<Vec<T>> = words.map(parse).collect();
    values.ok_or_else(|| unreadable(text))
}

fn unreadable(text: &str) -> StoreError {
    StoreError::Damaged(format!("unreadable record {:?}", text.chars().take(80).collect::<String>()))
}
