//! The answer as text, the way stores keep it with a session and the script sends it.

use crate::{
    message::{Name, Range},
    store::{StoreError, wire::list},
};

/// Refused runs as `queue,claim,first,len;…`.
pub(super) fn refused(runs: &[(Name, u64, Range)]) -> String {
    let text = runs.iter().map(|(queue, claim_no, range)| format!("{queue},{claim_no},{},{}", range.first, range.len));
    text.collect::<Vec<_>>().join(";")
}

/// Reads [`refused`].
pub(super) fn parse_refused(text: &str) -> Result<Vec<(Name, u64, Range)>, StoreError> {
    let parse = |word: &str| {
        let mut fields = word.split(',');
        let queue = fields.next()?.parse().ok()?;
        let claim_no = fields.next()?.parse().ok()?;
        let range = Range { first: fields.next()?.parse().ok()?, len: fields.next()?.parse().ok()? };
        fields.next().is_none().then_some((queue, claim_no, range))
    };
    list(text, parse)
}
