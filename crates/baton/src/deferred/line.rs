//! Those who wait, in the order of their numbers.
//!
//! Whoever has the lowest number begins when the value is there, and leaves its place when it has begun. Only the first is
//! woken by a start: each wakes the next as it leaves. A failure wakes all.

use std::{
    collections::BTreeMap,
    sync::Arc,
    task::{Poll, Waker},
};

use super::{Bounds, Unready};

/// How far the start is.
pub(super) enum Stage<T, E> {
    Starting,
    Started(T),
    Failed(E),
    Panicked(Arc<str>),
    Abandoned,
}

pub(super) struct Line<T, E> {
    pub(super) stage: Stage<T, E>,
    /// Who waits, and how it is woken, by its number.
    waiting: BTreeMap<u64, Option<Waker>>,
    numbers: u64,
    /// Seats taken by calls that have not begun, and their bytes.
    seats: usize,
    bytes: usize,
}

impl<T, E> Default for Line<T, E> {
    fn default() -> Self {
        Self { stage: Stage::Starting, waiting: BTreeMap::new(), numbers: 0, seats: 0, bytes: 0 }
    }
}

impl<T, E> Line<T, E> {
    pub(super) const fn seated(&self) -> usize {
        self.seats
    }

    /// Whether a call made now begins at once.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Started(_)) && self.waiting.is_empty()
    }

    /// The value, if nobody with a lower number waits.
    pub(super) fn open_for(&self, number: u64) -> Option<&T> {
        let is_next = self.waiting.first_key_value().is_none_or(|(first, _)| *first > number);
        match &self.stage {
            Stage::Started(value) if is_next => Some(value),
            _ => None,
        }
    }

    /// Takes a seat, if there is room.
    pub(super) fn sit(&mut self, bounds: &Bounds, bytes: usize) -> bool {
        let sum = self.bytes.saturating_add(bytes);
        let has_room = self.seats < bounds.calls && sum <= bounds.bytes;
        if has_room {
            (self.seats, self.bytes) = (self.seats + 1, sum);
        }
        has_room
    }

    /// Lets a seat hold another number of bytes, if there is room. Fewer are always allowed.
    pub(super) fn weigh(&mut self, bounds: &Bounds, before: usize, after: usize) -> bool {
        let sum = self.bytes.saturating_sub(before).saturating_add(after);
        let has_room = after <= before || sum <= bounds.bytes;
        if has_room {
            self.bytes = sum;
        }
        has_room
    }

    /// Gives a seat back.
    pub(super) fn stand(&mut self, bytes: usize) {
        (self.seats, self.bytes) = (self.seats.saturating_sub(1), self.bytes.saturating_sub(bytes));
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn line_up(&mut self, number: u64) {
        self.waiting.insert(number, None);
    }

    pub(super) fn leave(&mut self, number: u64) {
        self.waiting.remove(&number);
        self.wake_first();
    }

    pub(super) fn enter(&mut self, stage: Stage<T, E>) {
        self.stage = stage;
        match self.stage {
            Stage::Starting => {}
            Stage::Started(_) => self.wake_first(),
            Stage::Failed(_) | Stage::Panicked(_) | Stage::Abandoned => {
                self.waiting.values_mut().filter_map(Option::take).for_each(Waker::wake);
            }
        }
    }

    fn wake_first(&mut self) {
        if matches!(self.stage, Stage::Started(_))
            && let Some(mut first) = self.waiting.first_entry()
            && let Some(waker) = first.get_mut().take()
        {
            waker.wake();
        }
    }
}

impl<T: Clone, E: Clone> Line<T, E> {
    /// Refuses what would wait in vain.
    pub(super) fn judge(&self) -> Result<(), Unready<E>> {
        match &self.stage {
            Stage::Starting | Stage::Started(_) => Ok(()),
            Stage::Failed(reason) => Err(Unready::Failed(reason.clone())),
            Stage::Panicked(text) => Err(Unready::Panicked(text.clone())),
            Stage::Abandoned => Err(Unready::Abandoned),
        }
    }

    /// The value for whoever has this number, once it is its turn.
    pub(super) fn poll(&mut self, number: u64, waker: &Waker) -> Poll<Result<T, Unready<E>>> {
        if let Err(unready) = self.judge() {
            return Poll::Ready(Err(unready));
        }
        if let Some(value) = self.value_for(number) {
            return Poll::Ready(Ok(value));
        }
        if let Some(place) = self.waiting.get_mut(&number) {
            *place = Some(waker.clone());
        }
        Poll::Pending
    }

    fn value_for(&self, number: u64) -> Option<T> {
        let is_first = self.waiting.first_key_value().is_some_and(|(first, _)| *first == number);
        match &self.stage {
            Stage::Started(value) if is_first => Some(value.clone()),
            _ => None,
        }
    }
}
