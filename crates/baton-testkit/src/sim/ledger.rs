//! What became of every message, as the calls that the store carried out tell it: an account of its own beside the
//! store's, so that a message given to two, settled twice or forgotten is noticed at that very call.

use std::collections::BTreeSet;

use baton::{
    SessionId,
    store::message::{MAX_CRASHES, Outcome, Run, Span},
};

/// The state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Waiting,
    Delayed { due: u64 },
    Held { session: SessionId, claim_no: u64, begun: bool },
    Done,
    Dead,
    Cancelled,
    Removed,
}

/// What is known of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) state: State,
    /// Since when it has been due without being begun.
    pub(super) since: u64,
    pub(super) crashes: u32,
    /// Stands for its body.
    pub(super) digest: u64,
    /// Whether its call was cancelled.
    pub(super) is_marked: bool,
}

impl Entry {
    /// Whether it is due and nobody works on it.
    pub(super) const fn waits(&self, now: u64) -> bool {
        match self.state {
            _ if self.is_marked => false,
            State::Waiting => true,
            State::Delayed { due } => due <= now,
            State::Held { begun, .. } => !begun,
            State::Done | State::Dead | State::Cancelled | State::Removed => false,
        }
    }

    /// Goes back to be begun by somebody: since `floor` at the earliest.
    fn back(&mut self, floor: u64) {
        self.since = self.since.max(floor);
        self.state = State::Waiting;
    }
}

/// The messages of one queue.
#[derive(Debug, Default)]
pub(super) struct QueueLedger {
    /// By id, from 1 on.
    entries: Vec<Entry>,
    /// Those neither done nor dead nor cancelled, nor waiting to be that.
    pub(super) open: BTreeSet<u64>,
    pub(super) paused: bool,
}

/// Something that must not happen.
pub(super) type Wrong = Result<(), (String, u64)>;

impl QueueLedger {
    pub(super) fn entry(&self, id: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(id.checked_sub(1)?).ok()?)
    }

    pub(super) fn entry_mut(&mut self, id: u64) -> Option<&mut Entry> {
        self.entries.get_mut(usize::try_from(id.checked_sub(1)?).ok()?)
    }

    pub(super) const fn pushed(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(super) fn count(&self, state: State) -> u64 {
        self.entries.iter().filter(|entry| entry.state == state).count() as u64
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, &Entry)> {
        (1..).zip(&self.entries)
    }

    /// A parcel was stored with ids from `first` on; a repeated answer tells of ids that are known. Whether it is new.
    pub(super) fn stored(&mut self, first: u64, digests: &[u64], now: u64) -> Result<bool, (String, u64)> {
        let count = self.pushed();
        if first + digests.len() as u64 <= count + 1 {
            return Ok(false);
        }
        if first != count + 1 {
            return Err((format!("ids are consecutive: {first} was allotted after {count}"), first));
        }
        for (id, digest) in (first..).zip(digests) {
            self.entries.push(Entry {
                state: State::Waiting,
                since: now,
                crashes: 0,
                digest: *digest,
                is_marked: false,
            });
            self.open.insert(id);
        }
        Ok(true)
    }

    /// Messages were given to a session.
    pub(super) fn claimed(&mut self, session: SessionId, claim_no: u64, span: &Span, now: u64) -> Wrong {
        for id in span.range.first..span.range.end() {
            let Some(entry) = self.entry_mut(id) else {
                return Err(("only messages that were pushed are claimed".to_owned(), id));
            };
            match entry.state {
                State::Waiting | State::Delayed { .. } if entry.is_marked => {
                    return Err(("a message whose call was cancelled is not given to anybody".to_owned(), id));
                }
                State::Waiting => {}
                State::Delayed { due } if due <= now => {}
                State::Held { session: holder, claim_no: held_under, .. }
                    if (holder, held_under) == (session, claim_no) =>
                {
                    continue;
                }
                state => return Err((format!("a message is held by one session only: claimed while {state:?}"), id)),
            }
            if entry.crashes != span.crashes {
                return Err((
                    format!("crashes are counted: {} in the store, {} seen", span.crashes, entry.crashes),
                    id,
                ));
            }
            entry.state = State::Held { session, claim_no, begun: false };
        }
        Ok(())
    }

    /// A run was accepted.
    pub(super) fn settled(&mut self, session: SessionId, run: &Run, now: u64) -> Wrong {
        for id in run.range.first..run.range.end() {
            let Some(entry) = self.entry_mut(id) else {
                return Err(("only messages that were pushed are settled".to_owned(), id));
            };
            let held = matches!(entry.state, State::Held { session: holder, claim_no, .. }
                if (holder, claim_no) == (session, run.claim_no));
            if !held {
                return Err((format!("only the holder settles a message, and once: it was {:?}", entry.state), id));
            }
            match &run.outcome {
                Outcome::Done { .. } => entry.state = State::Done,
                Outcome::Failed { .. } => entry.state = State::Dead,
                Outcome::Retry { .. } | Outcome::Back if entry.is_marked => entry.state = State::Cancelled,
                Outcome::Retry { after_ms, .. } => {
                    let due = now + after_ms;
                    *entry = Entry { state: State::Delayed { due }, since: due, crashes: 0, ..*entry };
                }
                Outcome::Back => entry.back(if entry.waits(now) { 0 } else { now }),
            }
            if matches!(entry.state, State::Done | State::Dead | State::Cancelled) {
                self.open.remove(&id);
            }
        }
        Ok(())
    }

    /// A session is gone: what it held goes back, with a crash if it was lost.
    pub(super) fn returned(&mut self, session: SessionId, lost: bool, now: u64, floor: u64) {
        let Self { entries, open, .. } = self;
        open.retain(|id| {
            let entry = &mut entries[*id as usize - 1];
            if matches!(entry.state, State::Held { session: holder, .. } if holder == session) {
                entry.crashes += u32::from(lost);
                entry.back(if lost || entry.waits(now) { floor } else { now });
                if entry.crashes > MAX_CRASHES {
                    entry.state = State::Dead;
                } else if entry.is_marked {
                    entry.state = State::Cancelled;
                }
            }
            !matches!(entry.state, State::Dead | State::Cancelled)
        });
    }

    /// The call of a message was cancelled: one that is delayed ends, of any other whatever comes next ends it, unless it is
    /// done or dead by then.
    pub(super) fn marked(&mut self, id: u64) {
        let Some(entry) = self.entry_mut(id) else { return };
        entry.is_marked = true;
        if matches!(entry.state, State::Delayed { .. }) {
            entry.state = State::Cancelled;
            self.open.remove(&id);
        } else if matches!(entry.state, State::Waiting) {
            self.open.remove(&id);
        }
    }

    /// A purge has come to its end: what waits up to this id is removed, and what is delayed.
    pub(super) fn purged(&mut self, upto: u64) {
        let Self { entries, open, .. } = self;
        for (id, entry) in (1..).zip(entries) {
            let is_gone = match entry.state {
                State::Waiting => id <= upto,
                State::Delayed { .. } => true,
                _ => false,
            };
            if is_gone {
                entry.state = State::Removed;
                open.remove(&id);
            }
        }
    }

    /// How many were cancelled, or will be when somebody comes to them.
    pub(super) fn cancelled(&self) -> u64 {
        let is = |entry: &&Entry| entry.is_marked && !matches!(entry.state, State::Done | State::Dead | State::Removed);
        self.entries.iter().filter(is).count() as u64
    }

    /// What waits has waited since now at the earliest.
    pub(super) fn begin_anew(&mut self, now: u64) {
        let Self { entries, open, .. } = self;
        for id in open.iter() {
            let entry = &mut entries[*id as usize - 1];
            entry.since = entry.since.max(now);
        }
    }
}
