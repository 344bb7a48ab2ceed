//! What became of every message, as the calls that the store carried out tell it: an account of its own beside the
//! store's, so that a message given to two, settled twice or forgotten is noticed at that very call.

use std::collections::BTreeSet;

use baton::message::{MAX_LOSSES, Outcome, Piece, Run, SessionId};

/// Where a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Waiting,
    Delayed { due: u64 },
    Held { session: SessionId, claim_no: u64, begun: bool },
    Done,
    Dead,
}

/// A message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Letter {
    pub(super) place: Place,
    /// Since when it has been due without being begun.
    pub(super) since: u64,
    pub(super) losses: u32,
    /// Stands for its body.
    pub(super) digest: u64,
}

impl Letter {
    /// Whether it is due and nobody works on it.
    pub(super) const fn waits(&self, now: u64) -> bool {
        match self.place {
            Place::Waiting => true,
            Place::Delayed { due } => due <= now,
            Place::Held { begun, .. } => !begun,
            Place::Done | Place::Dead => false,
        }
    }

    /// Goes back to be begun by somebody: since `floor` at the earliest.
    fn back(&mut self, floor: u64) {
        self.since = self.since.max(floor);
        self.place = Place::Waiting;
    }
}

/// The messages of one queue.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// By id, from 1 on.
    letters: Vec<Letter>,
    /// Those neither done nor dead.
    pub(super) open: BTreeSet<u64>,
    pub(super) paused: bool,
}

/// Something that must not happen.
pub(super) type Wrong = Result<(), (String, u64)>;

impl Lane {
    pub(super) fn letter(&self, id: u64) -> Option<&Letter> {
        self.letters.get(usize::try_from(id.checked_sub(1)?).ok()?)
    }

    pub(super) fn letter_mut(&mut self, id: u64) -> Option<&mut Letter> {
        self.letters.get_mut(usize::try_from(id.checked_sub(1)?).ok()?)
    }

    pub(super) const fn pushed(&self) -> u64 {
        self.letters.len() as u64
    }

    pub(super) fn count(&self, place: Place) -> u64 {
        self.letters.iter().filter(|letter| letter.place == place).count() as u64
    }

    pub(super) fn letters(&self) -> impl Iterator<Item = (u64, &Letter)> {
        (1..).zip(&self.letters)
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
            self.letters.push(Letter { place: Place::Waiting, since: now, losses: 0, digest: *digest });
            self.open.insert(id);
        }
        Ok(true)
    }

    /// Messages were given to a session.
    pub(super) fn claimed(&mut self, session: SessionId, claim_no: u64, piece: &Piece, now: u64) -> Wrong {
        for id in piece.range.first..piece.range.end() {
            let Some(letter) = self.letter_mut(id) else {
                return Err(("only messages that were pushed are claimed".to_owned(), id));
            };
            match letter.place {
                Place::Waiting => {}
                Place::Delayed { due } if due <= now => {}
                Place::Held { session: holder, claim_no: held_under, .. }
                    if (holder, held_under) == (session, claim_no) =>
                {
                    continue;
                }
                place => return Err((format!("a message is held by one session only: claimed while {place:?}"), id)),
            }
            if letter.losses != piece.losses {
                return Err((format!("losses are counted: {} in the store, {} seen", piece.losses, letter.losses), id));
            }
            letter.place = Place::Held { session, claim_no, begun: false };
        }
        Ok(())
    }

    /// A run was accepted.
    pub(super) fn settled(&mut self, session: SessionId, run: &Run, now: u64) -> Wrong {
        for id in run.range.first..run.range.end() {
            let Some(letter) = self.letter_mut(id) else {
                return Err(("only messages that were pushed are settled".to_owned(), id));
            };
            let held = matches!(letter.place, Place::Held { session: holder, claim_no, .. }
                if (holder, claim_no) == (session, run.claim_no));
            if !held {
                return Err((format!("only the holder settles a message, and once: it was {:?}", letter.place), id));
            }
            match &run.outcome {
                Outcome::Done { .. } => letter.place = Place::Done,
                Outcome::Dead { .. } => letter.place = Place::Dead,
                Outcome::Retry { after_ms, .. } => {
                    let due = now + after_ms;
                    *letter = Letter { place: Place::Delayed { due }, since: due, losses: 0, ..*letter };
                }
                Outcome::Back => letter.back(if letter.waits(now) { 0 } else { now }),
            }
            if matches!(letter.place, Place::Done | Place::Dead) {
                self.open.remove(&id);
            }
        }
        Ok(())
    }

    /// A session is gone: what it held goes back, with a loss if it was lost.
    pub(super) fn returned(&mut self, session: SessionId, lost: bool, now: u64, floor: u64) {
        let Self { letters, open, .. } = self;
        open.retain(|id| {
            let letter = &mut letters[*id as usize - 1];
            if matches!(letter.place, Place::Held { session: holder, .. } if holder == session) {
                letter.losses += u32::from(lost);
                letter.back(if lost || letter.waits(now) { floor } else { now });
                if letter.losses > MAX_LOSSES {
                    letter.place = Place::Dead;
                }
            }
            letter.place != Place::Dead
        });
    }

    /// What waits has waited since now at the earliest.
    pub(super) fn begin_anew(&mut self, now: u64) {
        let Self { letters, open, .. } = self;
        for id in open.iter() {
            let letter = &mut letters[*id as usize - 1];
            letter.since = letter.since.max(now);
        }
    }
}
