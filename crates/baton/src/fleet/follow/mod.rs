//! Following calls: one log a call and process, read from the store by whoever is first at its end.
//!
//! * A [`Follow`] is a cursor over its call's log: it has no task and no channel. The one that finds itself at the end of
//!   the log reads on, and all others wait for it; if it goes away, the next one does.
//! * The store is told how far the fastest cursor is: only then is more read. So whoever emits waits for the fastest
//!   follower of all processes, and for nobody else.
//! * A cursor that has fallen behind what the log still holds reads by itself from the store, without holding anybody up,
//!   and is told of a gap if that has forgotten too.
//! * One task a process, while anything is followed, hears the store's wake-ups. One that is lost costs
//!   five seconds.

mod chunk;
mod follows;
mod log;

use std::sync::Arc;

pub use self::chunk::Chunk;
pub(super) use self::follows::Follows;
use self::log::{Log, Place};
use super::Fleet;
use crate::{
    message::CallId,
    store::{ReadCall, Refusal, StoreError},
};

/// Where following begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Since {
    /// With the first event of all.
    #[default]
    Start,
    /// With the event of this number.
    Number(u64),
    /// With the next event that is told.
    Now,
}

/// What a follower gets.
#[derive(Debug, Clone)]
pub enum Followed {
    /// Events, at least one.
    Events(Chunk),
    /// The events before this number that were not given yet are not kept any more.
    Gap {
        /// The number of the next one.
        next: u64,
    },
    /// The last event was given.
    End,
}

/// Why a call cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FollowError {
    /// There is no such call. One whose birth is known was there.
    #[error("{}", unknown(.0))]
    Unknown(CallId),
    /// The store has lost data since, and the id is another message's by now.
    #[error("call {0}: {other}", other = Refusal::OtherCall)]
    Other(CallId),
    /// The events wanted first are not kept any more.
    #[error("events of call {call} before number {first} are not kept any more")]
    Gone {
        /// The call.
        call: CallId,
        /// The first one kept.
        first: u64,
    },
    /// The store's failure.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn unknown(call: &CallId) -> String {
    match call.born {
        Some(_) => format!("call {call} is lost: the store has it no more (removed or flushed), or it ended long ago"),
        None => format!("there is no call {call}: it never was, or it ended over an hour ago"),
    }
}

/// A cursor over the events of a call.
pub struct Follow {
    log: Arc<Log>,
    since: Since,
    /// The number of the next event, once that is known.
    position: Option<u64>,
}

impl Follow {
    /// The call.
    #[must_use]
    pub fn call(&self) -> &CallId {
        &self.log.call
    }

    /// The number of the next event, once that is known.
    #[must_use]
    pub const fn position(&self) -> Option<u64> {
        self.position
    }

    /// Begins anew, from elsewhere.
    pub const fn rejoin(&mut self, since: Since) {
        (self.since, self.position) = (since, None);
    }

    /// What comes next; waits for it. After [`Followed::End`] it is that again.
    ///
    /// # Errors
    /// [`FollowError`]; [`FollowError::Gone`] only for what was wanted first, later ones are [`Followed::Gap`]s. A store
    /// that is away is waited for.
    ///
    /// # Cancel safety
    /// Nothing is lost: the next call gives what this one would have.
    pub async fn next(&mut self) -> Result<Followed, FollowError> {
        let position = match self.position {
            Some(position) => position,
            None => self.begin().await?,
        };
        loop {
            match self.log.at(position) {
                Place::At(chunk) => {
                    self.position = Some(chunk.stretch.past());
                    return Ok(Followed::Events(chunk));
                }
                Place::Over => return Ok(Followed::End),
                Place::Behind => match self.log.read_behind(position).await {
                    Ok(Some(stretch)) => {
                        self.position = Some(stretch.past());
                        return Ok(Followed::Events(Chunk { stretch: Arc::new(stretch), skip: 0 }));
                    }
                    Ok(None) => return Ok(Followed::End),
                    Err(FollowError::Gone { first, .. }) => {
                        self.position = Some(first);
                        return Ok(Followed::Gap { next: first });
                    }
                    Err(error) => return Err(error),
                },
                Place::Ahead => {
                    let _turn = self.log.turn.lock().await;
                    if matches!(self.log.at(position), Place::Ahead) {
                        self.log.read_on().await?;
                    }
                }
            }
        }
    }

    /// Finds where to begin.
    async fn begin(&mut self) -> Result<u64, FollowError> {
        let call = self.log.call.clone();
        let view = self.log.fleet.ask(ReadCall { call: call.clone() }).await.map_err(|error| self.log.failed(error))?;
        let view = view.ok_or_else(|| FollowError::Unknown(call.clone()))?;
        if call.born.is_none() {
            // From here on this message is meant, and no later one with its id. All who follow it share a log.
            let call = CallId { born: Some(view.born), ..call.clone() };
            self.log = self.log.fleet.follows.log(&self.log.fleet, &call);
        }
        let position = match self.since {
            Since::Start => 1,
            Since::Number(number) => number.clamp(1, view.next),
            Since::Now => view.next,
        };
        if position < view.first {
            return Err(FollowError::Gone { call, first: view.first });
        }
        self.log.begin_at(position);
        self.position = Some(position);
        Ok(position)
    }
}

impl Fleet {
    /// Follows the events of a call. However many follow one call by clones of this fleet, it is read once.
    #[must_use]
    pub fn follow(&self, call: &CallId, since: Since) -> Follow {
        Follow { log: self.follows.log(self, call), since, position: None }
    }
}
