//! The answer as text, the way stores keep it with a session and the script sends it.

use crate::store::{StoreError, SubmissionVerdict, wire::list};

/// Verdicts as `s17;d4;b18,170;o5,169;c;k;f`: stored at, duplicate of, a call begun at and born then, the key of a call known
/// by these, conflict, keys full, full.
pub(super) fn verdicts(verdicts: &[SubmissionVerdict]) -> String {
    let text = verdicts.iter().map(|verdict| match verdict {
        SubmissionVerdict::Stored { first } => format!("s{first}"),
        SubmissionVerdict::Duplicate { first } => format!("d{first}"),
        SubmissionVerdict::Begun { first, born } => format!("b{first},{born}"),
        SubmissionVerdict::Known { first, born } => format!("o{first},{born}"),
        SubmissionVerdict::Conflict => "c".to_owned(),
        SubmissionVerdict::KeysFull => "k".to_owned(),
        SubmissionVerdict::Full => "f".to_owned(),
    });
    text.collect::<Vec<_>>().join(";")
}

/// Reads [`verdicts`].
pub(super) fn parse_verdicts(text: &str) -> Result<Vec<SubmissionVerdict>, StoreError> {
    let parse = |word: &str| {
        let (kind, first) = word.split_at_checked(1)?;
        let call = || {
            let (first, born) = first.split_once(',')?;
            Some((first.parse().ok()?, born.parse().ok()?))
        };
        Some(match kind {
            "s" => SubmissionVerdict::Stored { first: first.parse().ok()? },
            "d" => SubmissionVerdict::Duplicate { first: first.parse().ok()? },
            "b" => call().map(|(first, born)| SubmissionVerdict::Begun { first, born })?,
            "o" => call().map(|(first, born)| SubmissionVerdict::Known { first, born })?,
            "c" => SubmissionVerdict::Conflict,
            "k" => SubmissionVerdict::KeysFull,
            "f" => SubmissionVerdict::Full,
            _ => return None,
        })
    };
    list(text, parse)
}
