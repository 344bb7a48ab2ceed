//! Pushing without a key: many chunks under way, each answered on its own.

use std::collections::BTreeMap;

use baton::store::{
    LotVerdict, Refusal, StoreError,
    session::{Session, SubmitError},
};
use tokio::{task::JoinSet, time::Instant};

use super::{
    Chunks, Job, LAST_WORDS, LOOK_EVERY, Patience, Receipt, SharedLabels, Tally, full, interrupted, lot, reader::Chunk,
    trouble,
};
use crate::{
    connection::Connection,
    exit::{Exit, Failure},
    interrupt::Interrupt,
};

/// Chunks under way; the session sends those that wait together.
const UNDER_WAY: usize = 64;

/// What to do after a push that a person ended; then comes what is said of every push that ends early.
const BROKEN_OFF: &str = "leave out what is stored";

type Answer = (Chunk, Result<Vec<LotVerdict>, SubmitError>);

/// Pushes all chunks. The order of lines is kept, except around a full queue.
pub(super) async fn push(
    connection: &Connection, job: &Job, labels: &SharedLabels, chunks: &mut Chunks, tally: Tally, interrupt: &Interrupt,
) -> Result<Receipt, Failure> {
    let mut pusher = Pusher {
        connection,
        job,
        interrupt,
        tally,
        session: None,
        under_way: JoinSet::new(),
        refused: BTreeMap::new(),
        unknown: Vec::new(),
        not_before: Instant::now(),
        heard: Instant::now(),
        patience: Patience::new(connection.wait()),
    };
    let (mut ended, mut stop) = (false, None);
    let failure = loop {
        if ended && pusher.is_idle() {
            break None;
        }
        let step = tokio::select! {
            biased;
            () = interrupt.wait() => Err(interrupted(BROKEN_OFF)),
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
                Err(_) => Err(Failure::new("a fault in baton itself", "run the command again")),
            },
            () = tokio::time::sleep(LOOK_EVERY), if !pusher.is_idle() => pusher.look().await,
        };
        if let Err(failure) = step {
            break Some(failure);
        }
    };
    if failure.is_some() || !pusher.unknown.is_empty() {
        pusher.hear_last_words().await;
    }
    let refused: Vec<Chunk> = pusher.refused.into_values().collect();
    let told = || pusher.tally.told(labels, &refused, &pusher.unknown);
    match (failure, stop) {
        (Some(failure), _) if pusher.unknown.is_empty() => Err(failure.after(&told(), pusher.tally.again())),
        (Some(failure), _) => {
            let next = "push with --key to have every line exactly once, whatever happens";
            let mut failure = failure.after(&told(), next);
            failure.exit = Exit::Failed;
            Err(failure)
        }
        (None, Some(stop)) => Err(stop.failure(labels, &told(), pusher.tally.again(), None)),
        (None, None) => Ok(pusher.tally.finish()),
    }
}

struct Pusher<'a> {
    connection: &'a Connection,
    job: &'a Job,
    interrupt: &'a Interrupt,
    tally: Tally,
    session: Option<Session>,
    under_way: JoinSet<Answer>,
    /// Surely not stored, by number: to be sent again in order.
    refused: BTreeMap<u64, Chunk>,
    /// Neither known to be stored nor known not to be.
    unknown: Vec<Chunk>,
    not_before: Instant,
    /// The last time the store answered, or had nothing to answer.
    heard: Instant,
    patience: Patience,
}

impl Pusher<'_> {
    fn is_idle(&self) -> bool {
        self.under_way.is_empty() && self.refused.is_empty()
    }

    fn takes_more(&self) -> bool {
        self.refused.is_empty() && self.under_way.len() < UNDER_WAY
    }

    async fn send(&mut self, chunk: Chunk) -> Result<(), Failure> {
        let session = match self.session.take().filter(|session| !session.is_over()) {
            Some(session) => session,
            None => {
                let joined = tokio::select! {
                    joined = self.connection.session() => joined,
                    () = self.interrupt.wait() => Err(interrupted(BROKEN_OFF)),
                };
                match joined {
                    Ok(session) => session,
                    Err(failure) => {
                        self.refused.insert(chunk.number, chunk);
                        return Err(failure);
                    }
                }
            }
        };
        self.session = Some(session.clone());
        if self.under_way.is_empty() {
            self.heard = Instant::now();
        }
        let lots = vec![lot(&self.job.queue, &chunk)];
        let mut submit = Box::pin(async move { session.submit(lots, None).await });
        // Begun here and not in the task, so that chunks are handed in in the order they were read.
        let begun = std::future::poll_fn(|context| std::task::Poll::Ready(submit.as_mut().poll(context))).await;
        match begun {
            std::task::Poll::Ready(answer) => self.judge((chunk, answer)),
            std::task::Poll::Pending => {
                self.under_way.spawn(async move { (chunk, submit.await) });
                Ok(())
            }
        }
    }

    /// Takes the store's word on a chunk.
    fn judge(&mut self, (chunk, answer): Answer) -> Result<(), Failure> {
        self.heard = Instant::now();
        match answer {
            Ok(verdicts) => match verdicts.first() {
                Some(LotVerdict::Stored { first }) => {
                    self.tally.stored(&chunk, Some(*first));
                    self.patience.calm();
                    Ok(())
                }
                Some(LotVerdict::Full) => {
                    self.refused.insert(chunk.number, chunk);
                    self.not_before = Instant::now() + LOOK_EVERY;
                    self.wait_for(&full(&self.job.queue))
                }
                _ => {
                    self.unknown.push(chunk);
                    Err(self.connection.failure(&StoreError::Damaged("it gave no verdict on a parcel".to_owned())))
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
                Err(self.connection.failure(&error))
            }
        }
    }

    /// Sends refused chunks again, one at a time and in order, once nothing else is under way.
    async fn look(&mut self) -> Result<(), Failure> {
        if let Some(error) = trouble(self.session.as_ref()) {
            if self.patience.worn_out(self.connection, &error) {
                return Err(self.connection.failure(&error));
            }
        } else if self.refused.is_empty() {
            self.patience.calm();
            if self.heard.elapsed() >= self.connection.answer_limit() {
                self.connection.say_silent();
            }
        }
        if !self.under_way.is_empty() || Instant::now() < self.not_before {
            return Ok(());
        }
        match self.refused.pop_first() {
            Some((_, chunk)) => self.send(chunk).await,
            None => Ok(()),
        }
    }

    fn wait_for(&mut self, cause: &str) -> Result<(), Failure> {
        match self.patience.worn_out(self.connection, &cause) {
            true => Err(Failure::new(cause, "start a node, or raise --max-backlog")),
            false => Ok(()),
        }
    }

    /// Ends the session, so that whatever is not stored by now never will be, and hears what became of the rest.
    async fn hear_last_words(&mut self) {
        self.connection.leave().await;
        let deadline = Instant::now() + LAST_WORDS;
        while let Ok(Some(answer)) = tokio::time::timeout_at(deadline, self.under_way.join_next()).await {
            if let Ok(answer) = answer {
                // The first failure is the one to tell.
                self.judge(answer).err();
            }
        }
    }
}
