//! The answer as text, the way stores keep it with a session and the script sends it.

use crate::store::{LotVerdict, StoreError, wire::list};

/// Verdicts as `s17;d4;b18,170;o5,169;c;k;f`: stored at, duplicate of, a call begun at and born then, the key of a call known
/// by these, conflict, keys full, full.
pub(super) fn verdicts(verdicts: &[LotVerdict]) -> String {
    let text = verdicts.iter().map(|verdict| match verdict {
        LotVerdict::Stored { first } => format!("s{first}"),
        LotVerdict::Duplicate { first } => format!("d{first}"),
        LotVerdict::Begun { first, born } => format!("b{first},{born}"),
        LotVerdict::Known { first, born } => format!("o{first},{born}"),
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
        let call = || {
            let (first, born) = first.split_once(',')?;
            Some((first.parse().ok()?, born.parse().ok()?))
        };
        Some(match kind {
            "s" => LotVerdict::Stored { first: first.parse().ok()? },
            "d" => LotVerdict::Duplicate { first: first.parse().ok()? },
            "b" => call().map(|(first, born)| LotVerdict::Begun { first, born })?,
            "o" => call().map(|(first, born)| LotVerdict::Known { first, born })?,
            "c" => LotVerdict::Conflict,
            "k" => LotVerdict::KeysFull,
            "f" => LotVerdict::Full,
            _ => return None,
        })
    };
    list(text, parse)
}
