//! Pushing without a key: many chunks under way, each answered on its own.

use std::{collections::BTreeMap, sync::Arc};

use tokio::{task::JoinSet, time::Instant};

use super::{
    Chunks, FULL_PAUSE, Import, ImportCause, ImportError, LOOK_EVERY, Patience, Progress, Receipt, SharedLabels, Tally,
    full, last_words, no_verdict, reader::Chunk, submission, trouble,
};
use crate::{
    Shutdown,
    admin::Admin,
    backoff::Backoff,
    store::{
        Refusal, StoreError, SubmissionVerdict,
        session::{Session, SubmitError},
    },
};

/// Chunks under way; the session sends those that wait together.
const UNDER_WAY: usize = 64;

/// What is told when a person ends the import.
const INTERRUPTED: ImportCause = ImportCause::Interrupted { unanswered: false };

/// The number of a chunk, and the store's word on it.
type Answer = (u64, Result<Vec<SubmissionVerdict>, SubmitError>);

/// Pushes all chunks. The order of lines is kept, except around a full queue.
pub(super) async fn push<P: FnMut(Progress)>(
    admin: &Admin, import: &Import, labels: &SharedLabels, chunks: &mut Chunks, tally: Tally<P>, until: &Shutdown,
) -> Result<Receipt, ImportError> {
    let mut pusher = Pusher {
        admin,
        import,
        until,
        tally,
        session: None,
        incarnation: None,
        under_way: JoinSet::new(),
        sent: BTreeMap::new(),
        refused: BTreeMap::new(),
        unknown: Vec::new(),
        not_before: Instant::now(),
        full: None,
        heard: Instant::now(),
        patience: Patience::new(admin.wait),
    };
    let (mut ended, mut stop) = (false, None);
    let cause = loop {
        if ended && pusher.is_idle() {
            break None;
        }
        let step = tokio::select! {
            biased;
            () = until.any() => Err(INTERRUPTED),
            chunk = chunks.recv(), if !ended && pusher.takes_more() => match chunk {
                Some(Ok(chunk)) => pusher.send(chunk).await,
                Some(Err(why)) => {
                    (ended, stop) = (true, Some(why));
                    Ok(())
                }
                None => {
                    ended = true;
                    Ok(())
                }
            },
            Some(answer) = pusher.under_way.join_next(), if !pusher.under_way.is_empty() => match answer {
                Ok(answer) => pusher.judge(answer),
                Err(_) => Err(ImportCause::Fault),
            },
            () = tokio::time::sleep(LOOK_EVERY), if !pusher.is_idle() => pusher.look().await,
        };
        if let Err(cause) = step {
            break Some(cause);
        }
    };
    if cause.is_some() || !pusher.unknown.is_empty() {
        pusher.hear_last_words().await;
    }
    pusher.unknown.extend(pusher.sent.into_values());
    let refused: Vec<Chunk> = pusher.refused.into_values().collect();
    let cause = cause.or_else(|| stop.map(|stop| stop.cause(labels, None)));
    if let Some(destroyed) = cause.as_ref().and_then(|cause| cause.of_destroy(pusher.tally.pushed())) {
        return Err(destroyed.into());
    }
    match cause {
        Some(cause) => Err(pusher.tally.broken_off(cause, labels, &refused, &pusher.unknown)),
        None => Ok(pusher.tally.finish()),
    }
}

struct Pusher<'a, P> {
    admin: &'a Admin,
    import: &'a Import,
    until: &'a Shutdown,
    tally: Tally<P>,
    session: Option<Session>,
    /// The data that the lines went to so far.
    incarnation: Option<Arc<str>>,
    under_way: JoinSet<Answer>,
    /// What is under way, by number.
    sent: BTreeMap<u64, Chunk>,
    /// Surely not stored, by number: to be sent again in order.
    refused: BTreeMap<u64, Chunk>,
    /// Neither known to be stored nor known not to be.
    unknown: Vec<Chunk>,
    not_before: Instant,
    /// How often it is looked at a queue that was full, until something is stored again.
    full: Option<Backoff>,
    /// The last time the store answered, or had nothing to answer.
    heard: Instant,
    patience: Patience,
}

impl<P: FnMut(Progress)> Pusher<'_, P> {
    fn is_idle(&self) -> bool {
        self.under_way.is_empty() && self.refused.is_empty()
    }

    fn takes_more(&self) -> bool {
        self.refused.is_empty() && self.under_way.len() < UNDER_WAY
    }

    async fn send(&mut self, chunk: Chunk) -> Result<(), ImportCause> {
        let session = match self.session.take().filter(|session| !session.is_over()) {
            Some(session) => session,
            None => {
                let joined = tokio::select! {
                    joined = self.admin.session() => joined.map_err(ImportCause::from),
                    () = self.until.any() => Err(INTERRUPTED),
                };
                match joined {
                    Ok(session) => session,
                    Err(cause) => {
                        self.refused.insert(chunk.number, chunk);
                        return Err(cause);
                    }
                }
            }
        };
        // Lines of two fleets under one name must not be counted together.
        let incarnation = session.incarnation();
        if self.incarnation.as_ref().is_some_and(|before| *before != incarnation && self.tally.pushed() > 0) {
            self.refused.insert(chunk.number, chunk);
            return Err(ImportCause::Destroyed { before: self.tally.pushed() });
        }
        self.incarnation = Some(incarnation);
        self.session = Some(session.clone());
        if self.under_way.is_empty() {
            self.heard = Instant::now();
        }
        let submissions = vec![submission(&self.import.queue, &chunk)];
        let mut submit = Box::pin(async move { session.submit(submissions, None).await });
        // Begun here and not in the task, so that chunks are handed in in the order they were read.
        let begun = std::future::poll_fn(|context| std::task::Poll::Ready(submit.as_mut().poll(context))).await;
        let number = chunk.number;
        self.sent.insert(number, chunk);
        match begun {
            std::task::Poll::Ready(answer) => self.judge((number, answer)),
            std::task::Poll::Pending => {
                self.under_way.spawn(async move { (number, submit.await) });
                Ok(())
            }
        }
    }

    /// Takes the store's word on a chunk.
    fn judge(&mut self, (number, answer): Answer) -> Result<(), ImportCause> {
        self.heard = Instant::now();
        let chunk = self.sent.remove(&number).ok_or(ImportCause::Fault)?;
        match answer {
            Ok(verdicts) => match verdicts.first() {
                Some(SubmissionVerdict::Stored { first }) => {
                    self.tally.stored(&chunk, Some(*first));
                    self.patience.calm();
                    self.full = None;
                    Ok(())
                }
                Some(SubmissionVerdict::Full) => {
                    self.refused.insert(chunk.number, chunk);
                    self.is_full()
                }
                _ => {
                    self.unknown.push(chunk);
                    Err(no_verdict())
                }
            },
            Err(SubmitError { error: StoreError::Refused(Refusal::Stale), maybe_stored: false }) => {
                self.refused.insert(chunk.number, chunk);
                Ok(())
            }
            Err(SubmitError { error, maybe_stored }) => {
                if maybe_stored {
                    self.unknown.push(chunk);
                } else {
                    self.refused.insert(chunk.number, chunk);
                }
                Err(error.into())
            }
        }
    }

    /// Sends refused chunks again, one at a time and in order, once nothing else is under way.
    async fn look(&mut self) -> Result<(), ImportCause> {
        if let Some(error) = trouble(self.session.as_ref()) {
            if self.patience.outlasted(self.admin, &error, self.heard) {
                return Err(error.into());
            }
        } else if self.refused.is_empty() {
            self.patience.calm();
            if self.heard.elapsed() >= self.admin.answer_limit() {
                self.admin.say_silent();
            }
        }
        if !self.under_way.is_empty() || Instant::now() < self.not_before {
            return Ok(());
        }
        if let (Some(_), Some((_, chunk))) = (&self.full, self.refused.first_key_value()) {
            let bytes = chunk.parcel.bytes().len() as u64;
            // If that is not answered, the push finds out why.
            if self.admin.has_room(&self.import.queue, bytes).await == Ok(false) {
                return self.is_full();
            }
        }
        match self.refused.pop_first() {
            Some((_, chunk)) => self.send(chunk).await,
            None => Ok(()),
        }
    }

    /// The queue is left alone for a while, longer each time.
    fn is_full(&mut self) -> Result<(), ImportCause> {
        let pauses = self.full.get_or_insert_with(|| Backoff::new(LOOK_EVERY, FULL_PAUSE));
        self.not_before = Instant::now() + pauses.pause();
        self.wait_for(full(self.admin, self.import))
    }

    fn wait_for(&mut self, cause: ImportCause) -> Result<(), ImportCause> {
        if self.patience.worn_out(self.admin, &cause) { Err(cause) } else { Ok(()) }
    }

    /// Ends the session, so that whatever is not stored by now never will be, and hears what became of the rest.
    async fn hear_last_words(&mut self) {
        let limit = last_words(matches!(trouble(self.session.as_ref()), Some(StoreError::Unreachable(_))));
        self.admin.leave_within(limit).await;
        let deadline = Instant::now() + limit;
        while let Ok(Some(answer)) = tokio::time::timeout_at(deadline, self.under_way.join_next()).await {
            if let Ok(answer) = answer {
                // The first failure is the one to tell.
                self.judge(answer).err();
            }
        }
    }
}
