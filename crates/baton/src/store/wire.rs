//! Answers as text, the way stores keep them with a session and scripts send them.

use super::{LotVerdict, Place, StoreError};
use crate::message::{Name, Piece, Range};

/// Verdicts as `s17;d4;c;k;f`: stored at, duplicate of, conflict, keys full, full.
pub(crate) fn verdicts(verdicts: &[LotVerdict]) -> String {
    let text = verdicts.iter().map(|verdict| match verdict {
        LotVerdict::Stored { first } => format!("s{first}"),
        LotVerdict::Duplicate { first } => format!("d{first}"),
        LotVerdict::Conflict => "c".to_owned(),
        LotVerdict::KeysFull => "k".to_owned(),
        LotVerdict::Full => "f".to_owned(),
    });
    text.collect::<Vec<_>>().join(";")
}

/// Reads [`verdicts`].
pub(crate) fn parse_verdicts(text: &str) -> Result<Vec<LotVerdict>, StoreError> {
    let parse = |word: &str| {
        let (kind, first) = word.split_at_checked(1)?;
        Some(match kind {
            "s" => LotVerdict::Stored { first: first.parse().ok()? },
            "d" => LotVerdict::Duplicate { first: first.parse().ok()? },
            "c" => LotVerdict::Conflict,
            "k" => LotVerdict::KeysFull,
            "f" => LotVerdict::Full,
            _ => return None,
        })
    };
    list(text, parse)
}

/// Refused runs as `queue,claim,first,len;…`.
pub(crate) fn refused(runs: &[(Name, u64, Range)]) -> String {
    let text = runs.iter().map(|(queue, claim_no, range)| format!("{queue},{claim_no},{},{}", range.first, range.len));
    text.collect::<Vec<_>>().join(";")
}

/// Reads [`refused`].
pub(crate) fn parse_refused(text: &str) -> Result<Vec<(Name, u64, Range)>, StoreError> {
    let parse = |word: &str| {
        let mut fields = word.split(',');
        let queue = fields.next()?.parse().ok()?;
        let claim_no = fields.next()?.parse().ok()?;
        let range = Range { first: fields.next()?.parse().ok()?, len: fields.next()?.parse().ok()? };
        fields.next().is_none().then_some((queue, claim_no, range))
    };
    list(text, parse)
}

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

/// Pieces as `piece;piece;…`.
pub(crate) fn pieces(pieces: &[Piece]) -> String {
    pieces.iter().map(ToString::to_string).collect::<Vec<_>>().join(";")
}

/// Reads [`pieces`].
pub(crate) fn parse_pieces(text: &str) -> Result<Vec<Piece>, StoreError> {
    list(text, |word| word.parse().ok())
}

fn list<T>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, StoreError> {
    let words = text.split(';').filter(|word| !word.is_empty());
    let values: Option<Vec<T>> = words.map(parse).collect();
    values.ok_or_else(|| unreadable(text))
}

fn unreadable(text: &str) -> StoreError {
    StoreError::Damaged(format!("unreadable record {:?}", text.chars().take(80).collect::<String>()))
}
