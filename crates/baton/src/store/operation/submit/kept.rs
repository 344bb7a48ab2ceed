//! The answer as text, the way stores keep it with a session and the script sends it.

use crate::store::{LotVerdict, StoreError, wire::list};

/// Verdicts as `s17;d4;c;k;f`: stored at, duplicate of, conflict, keys full, full.
pub(super) fn verdicts(verdicts: &[LotVerdict]) -> String {
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
pub(super) fn parse_verdicts(text: &str) -> Result<Vec<LotVerdict>, StoreError> {
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
