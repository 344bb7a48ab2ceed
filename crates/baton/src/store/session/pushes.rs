//! Batch numbers: the pushes under one baton, several on their way at once.
//!
//! Batches are numbered within the epoch, and each begins at the cursor the one before it reaches. One that is refused
//! because the queue is full makes all behind it miss their cursor, which is a gap; so does one that is being repeated and
//! was overtaken. A refused batch has not used its number: it is sent again with all behind it, in order and as it was.
//! A gap that fits none of this means that the baton is lost.

use std::{collections::VecDeque, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesOrdered};

use super::{Session, caller::Caller};
use crate::{
    backoff::Backoff,
    message::{Name, Parcel},
    store::{BoxFuture, Push, Pushed, Refusal, StoreError, Taken},
};

/// The pushes under one baton. With each goes a `K`, which is kept until the batch is stored. Dropped, it leaves open
/// what becomes of those under way; the baton is then to be given back.
pub struct Pushes<K> {
    caller: Caller,
    source: Name,
    epoch: u64,
    max_queue_bytes: u64,
    /// The last number used, and the cursor that batch reaches.
    batch_no: u64,
    cursor: String,
    /// The batch that was sent last with nothing before it on its way.
    foremost: u64,
    /// Not stored as far as is known, in order.
    unstored: VecDeque<(Push, K)>,
    under_way: FuturesOrdered<BoxFuture<'static, Result<Pushed, StoreError>>>,
}

/// What has become of a batch.
#[derive(Debug)]
pub enum Fate<K> {
    /// It is stored.
    Stored {
        /// The batch as it was pushed.
        push: Push,
        /// What the store says of it.
        pushed: Pushed,
        /// What was kept with it.
        kept: K,
    },
    /// It is not stored, nor is what was sent behind it: see [`Pushes::send_again`].
    Refused {
        /// Its number.
        batch_no: u64,
        /// [`Refusal::Full`] or [`Refusal::Gap`].
        refusal: Refusal,
    },
    /// The source has ended, and takes nothing.
    Ended,
    /// The baton, or the session, is another's now, as this says.
    Lost(Refusal),
    /// The store cannot go on.
    Failed(StoreError),
}

impl<K> Pushes<K> {
    pub(super) fn new(caller: Caller, source: Name, taken: Taken, max_queue_bytes: u64) -> Self {
        let Taken { epoch, cursor, batch_no } = taken;
        Self {
            caller,
            source,
            epoch,
            max_queue_bytes,
            batch_no,
            cursor,
            foremost: batch_no + 1,
            unstored: VecDeque::new(),
            under_way: FuturesOrdered::new(),
        }
    }

    /// How many are on their way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Puts a batch on its way. It reaches this cursor, or stays where the one before it got to; `end` says that nothing
    /// follows, ever.
    pub fn send(&mut self, parcel: Option<Parcel>, reached: Option<String>, end: bool, kept: K) {
        let to = reached.unwrap_or_else(|| self.cursor.clone());
        self.batch_no += 1;
        let push = Push {
            session: self.caller.id(),
            source: self.source.clone(),
            epoch: self.epoch,
            batch_no: self.batch_no,
            from: std::mem::replace(&mut self.cursor, to.clone()),
            to,
            parcels: parcel.into_iter().collect(),
            end,
            max_queue_bytes: self.max_queue_bytes,
        };
        self.under_way.push_back(pushing(&self.caller, push.clone()));
        self.unstored.push_back((push, kept));
    }

    /// Waits for what becomes of the oldest batch on its way; nothing if there is none.
    ///
    /// # Cancel safety
    /// Nothing is lost: the next call goes on waiting.
    pub async fn fate(&mut self) -> Option<Fate<K>> {
        let answer = self.under_way.next().await?;
        Some(match answer {
            Ok(pushed) => {
                let (push, kept) = self.unstored.pop_front()?;
                Fate::Stored { push, pushed, kept }
            }
            Err(StoreError::Refused(refusal @ (Refusal::Full { .. } | Refusal::Gap { .. }))) => self.refused(refusal),
            Err(StoreError::Refused(Refusal::Ended { .. })) => Fate::Ended,
            Err(StoreError::Refused(refusal)) => Fate::Lost(refusal),
            Err(error) => Fate::Failed(error),
        })
    }

    fn refused(&mut self, refusal: Refusal) -> Fate<K> {
        if let Refusal::Gap { batch_no, .. } = refusal {
            self.unstored.retain(|(push, _)| push.batch_no > batch_no);
        }
        let next = self.unstored.front().map(|(push, _)| push);
        let fits = |next: &&Push| match &refusal {
            Refusal::Gap { batch_no, cursor } => {
                (next.batch_no == batch_no + 1 && next.from == *cursor)
                    // It overtook one before it that was being repeated, and has been taken since.
                    || (next.batch_no > batch_no + 1 && next.batch_no > self.foremost)
            }
            _ => true,
        };
        match next.filter(fits).map(|next| next.batch_no) {
            Some(batch_no) => Fate::Refused { batch_no, refusal },
            None => Fate::Lost(refusal),
        }
    }

    /// Waits until nothing is on its way any more and then for a while; sends all that is not stored again.
    ///
    /// # Cancel safety
    /// None: whoever drops it gives the baton back.
    pub async fn send_again(&mut self, pause: Duration) {
        self.rest(pause).await;
        self.send_unstored();
    }

    /// Waits until nothing is on its way any more and then until the queue has room for the first batch that is not stored;
    /// sends all of them again.
    ///
    /// # Cancel safety
    /// As [`Pushes::send_again`].
    pub(crate) async fn send_again_when_room(&mut self, session: &Session, queue: &Name, pauses: &mut Backoff) {
        self.rest(pauses.pause()).await;
        let parcels = self.unstored.front().into_iter().flat_map(|(push, _)| &push.parcels);
        let bytes = parcels.map(|parcel| parcel.bytes().len() as u64).sum();
        while !session.has_room(queue, Some(&self.source), bytes, self.max_queue_bytes).await {
            tokio::time::sleep(pauses.pause()).await;
        }
        self.send_unstored();
    }

    /// Waits until nothing is on its way any more, and then for a while.
    async fn rest(&mut self, pause: Duration) {
        while self.under_way.next().await.is_some() {}
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }

    fn send_unstored(&mut self) {
        self.foremost = self.unstored.front().map_or(self.foremost, |(push, _)| push.batch_no);
        let Self { caller, unstored, under_way, .. } = self;
        under_way.extend(unstored.iter().map(|(push, _)| pushing(caller, push.clone())));
    }
}

fn pushing(caller: &Caller, push: Push) -> BoxFuture<'static, Result<Pushed, StoreError>> {
    let caller = caller.clone();
    Box::pin(async move { caller.repeat(push).await })
}
