//! Spans: which messages of which parcel, and what they have been through.
//!
//! A span is what waits in a queue and what a claim holds. Splitting one never touches a body.

use std::{fmt, str::FromStr};

use super::{CallRole, InvalidMessage, Range};

/// Crashes that a message survives: after its fourth it has failed.
pub const MAX_CRASHES: u32 = 3;
/// A message with this number of crashes is a suspect: it runs singly, one to a session.
pub(crate) const SUSPECT_CRASHES: u32 = 2;
/// The most messages that stay together after their first crash.
pub(crate) const SPLIT_AFTER_CRASH: u32 = 16;

/// Where the bodies of a span are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BodyPlace {
    /// In the parcel that begins at id `first` and had `size` messages.
    Parcel {
        /// First id of the parcel.
        first: u64,
        /// Messages the parcel was pushed with.
        size: u32,
    },
    /// In a copy of its own, under its own id: a message that was retried or requeued.
    Own,
}

/// Consecutive messages of one parcel with one history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// Where the bodies are.
    pub place: BodyPlace,
    /// Which messages.
    pub range: Range,
    /// Attempts that ended with an error.
    pub attempts: u32,
    /// Sessions that died while they held it.
    pub crashes: u32,
    /// Store time of the push in milliseconds: tells apart two messages that got the same id around a rollback.
    pub born: u64,
    /// What its message is to a call; a span of a call is one message.
    pub role: Option<CallRole>,
}

impl Span {
    /// A whole parcel as it was pushed.
    #[must_use]
    pub(crate) const fn fresh(first: u64, size: u32, born: u64) -> Self {
        let range = Range { first, len: size };
        Self { place: BodyPlace::Parcel { first, size }, range, attempts: 0, crashes: 0, born, role: None }
    }

    /// The same history over fewer messages.
    #[must_use]
    pub(crate) const fn over(self, range: Range) -> Self {
        Self { range, ..self }
    }

    /// Where the span begins within its place.
    #[must_use]
    pub(crate) fn offset(&self) -> u32 {
        match self.place {
            BodyPlace::Parcel { first, .. } => {
                u32::try_from(self.range.first.saturating_sub(first)).unwrap_or(u32::MAX)
            }
            BodyPlace::Own => 0,
        }
    }

    /// Whether nobody has run it yet, as far as it tells: it was neither retried nor requeued, nor lost with a session.
    #[must_use]
    pub(crate) const fn is_untried(&self) -> bool {
        matches!(self.place, BodyPlace::Parcel { .. }) && self.attempts == 0 && self.crashes == 0
    }

    /// Whether it waits among the suspects, one to a session.
    #[must_use]
    pub(crate) const fn is_suspect(&self) -> bool {
        self.crashes >= SUSPECT_CRASHES
    }

    /// What is left of the span in front of and behind `hole`.
    #[must_use]
    pub fn without(self, hole: Range) -> [Option<Self>; 2] {
        let role = |first: u64, end: u64| {
            let len = u32::try_from(end.saturating_sub(first)).unwrap_or(0);
            (len > 0).then(|| self.over(Range { first, len }))
        };
        [role(self.range.first, hole.first), role(hole.end(), self.range.end())]
    }
}

/// `first,size,born` for a fresh parcel, otherwise
/// `parcel,size,first,len,attempts,crashes,born` with size 0 for a copy of its own. Behind that of a call a `c`, behind that
/// of a message that has joined one a `j`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, range: Range { first, len }, attempts, crashes, born, role } = *self;
        match place {
            BodyPlace::Parcel { first: parcel, size } if (parcel, size, 0, 0) == (first, len, attempts, crashes) => {
                write!(f, "{first},{size},{born}")?;
            }
            BodyPlace::Parcel { first: parcel, size } => {
                write!(f, "{parcel},{size},{first},{len},{attempts},{crashes},{born}")?;
            }
            BodyPlace::Own => write!(f, "{first},0,{first},{len},{attempts},{crashes},{born}")?,
        }
        match role {
            None => Ok(()),
            Some(CallRole::First) => f.write_str("c"),
            Some(CallRole::Joined) => f.write_str("j"),
        }
    }
}

impl FromStr for Span {
    type Err = InvalidMessage;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| InvalidMessage::Span(text.chars().take(80).collect()))
    }
}

fn parse(text: &str) -> Option<Span> {
    let (text, role) = match text.as_bytes().last()? {
        b'c' => (text.strip_suffix('c')?, Some(CallRole::First)),
        b'j' => (text.strip_suffix('j')?, Some(CallRole::Joined)),
        _ => (text, None),
    };
    let mut fields = [0_u64; 7];
    let mut count = 0;
    for (slot, field) in (0..).zip(text.split(',')) {
        *fields.get_mut(slot)? = field.parse().ok()?;
        count = slot + 1;
    }
    let small = |value: u64| u32::try_from(value).ok();
    let span = match (count, fields) {
        (3, [first, size, born, ..]) => Span { role, ..Span::fresh(first, small(size)?, born) },
        (7, [parcel, size, first, len, attempts, crashes, born]) => Span {
            place: if size == 0 { BodyPlace::Own } else { BodyPlace::Parcel { first: parcel, size: small(size)? } },
            range: Range { first, len: small(len)? },
            attempts: small(attempts)?,
            crashes: small(crashes)?,
            born,
            role,
        },
        _ => return None,
    };
    let inside = match span.place {
        BodyPlace::Parcel { first, size } => {
            span.range.first >= first && span.range.end() <= first.saturating_add(u64::from(size))
        }
        BodyPlace::Own => span.range.len == 1,
    };
    (inside && span.range.len > 0 && (role.is_none() || span.range.len == 1)).then_some(span)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_round_trip(
            parcel in 1_u64..1 << 52, size in 1_u32..5_000, start in 0_u32..5_000, len in 1_u32..5_000,
            own in any::<bool>(), attempts in 0_u32..9, crashes in 0_u32..5, born in 0_u64..1 << 44,
        ) {
            let start = start % size;
            let range = Range { first: parcel + u64::from(start), len: len.min(size - start) };
            let span = if own {
                let role = [None, Some(CallRole::First), Some(CallRole::Joined)][size as usize % 3];
                Span { place: BodyPlace::Own, range: Range { len: 1, ..range }, attempts, crashes, born, role }
            } else {
                Span { place: BodyPlace::Parcel { first: parcel, size }, range, attempts, crashes, born, role: None }
            };
            prop_assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }

        #[test]
        fn no_text_panics(text in "[0-9,;cj-]{0,60}") {
            let parsed = text.parse::<Span>();
            if let Ok(span) = parsed { prop_assert!(span.range.len > 0); }
        }
    }

    #[test]
    fn what_is_left_of_a_cut_span_is_both_sides() {
        let span = Span::fresh(10, 10, 7);
        let [front, behind] = span.without(Range { first: 12, len: 3 });
        assert_eq!(front.unwrap().range, Range { first: 10, len: 2 });
        assert_eq!(behind.unwrap().range, Range { first: 15, len: 5 });
        assert_eq!(span.without(span.range), [None, None]);
    }
}
