//! Bodies: stored whole, read in part, removed with their last message.

use super::Moved;
use crate::message::{BodyPlace, Gone, MessageId, Name, Parcel, Span};

/// Which stored bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum BodyKey {
    /// The parcel beginning at this id.
    Parcel(u64),
    /// The copy of this id's own.
    Own(MessageId),
}

impl BodyKey {
    /// Where a span's bodies are.
    pub(crate) const fn of(span: &Span) -> Self {
        match span.place {
            BodyPlace::Parcel { first, .. } => Self::Parcel(first),
            BodyPlace::Own => Self::Own(MessageId(span.range.first)),
        }
    }
}

/// What was found of stored bodies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cut {
    /// These.
    Some(Parcel),
    /// They are there, but not even one fits.
    NoneFits,
    /// They are not there.
    Missing,
}

impl Cut {
    /// What fits of the messages `start .. start + len` of a parcel.
    pub(crate) fn of(parcel: &Parcel, start: u32, len: u32, budget: u64) -> Self {
        let fitting = parcel.fitting(start, len, usize::try_from(budget).unwrap_or(usize::MAX));
        parcel.cut(start, fitting).map_or(Self::NoneFits, Self::Some)
    }
}

/// The bodies of a queue's messages.
pub(crate) trait Bodies {
    fn put_bodies(&mut self, queue: &Name, key: BodyKey, parcel: &Parcel) -> Moved<()>;
    /// As many of the messages `start .. start + len` as fit into `budget` body bytes; costs what it returns, not what is
    /// stored.
    fn cut_bodies(&mut self, queue: &Name, key: BodyKey, start: u32, len: u32, budget: u64) -> Moved<Cut>;
    /// What the messages `start .. start + len` count for of what is stored ([`Parcel::share`]); nothing if it is missing.
    fn weigh_bodies(&mut self, queue: &Name, key: BodyKey, start: u32, len: u32) -> Moved<Option<u64>>;
    /// Puts other bodies in the place of those stored.
    fn replace_bodies(&mut self, queue: &Name, key: BodyKey, parcel: &Parcel) -> Moved<()>;
    /// Removes stored bodies; how many bytes they took.
    fn drop_bodies(&mut self, queue: &Name, key: BodyKey) -> Moved<u64>;
    /// Which messages of a parcel of `size` have gone, if some have.
    fn gone(&mut self, queue: &Name, parcel: u64, size: u32) -> Moved<Option<Gone>>;
    fn put_gone(&mut self, queue: &Name, parcel: u64, gone: Option<&Gone>) -> Moved<()>;
}
