//! Pushing under a key: the bookmark moves in the same step as the lines it speaks of.
//!
//! One call is under way at a time; everything read meanwhile goes with the next. After a call whose fate is not
//! known, the bookmark tells: it stands where the call would have put it, or where it was.

use baton::{
    message::Lot,
    store::{LotVerdict, MAX_LOTS, MoveBookmark, Place, ReadBookmark, Refusal, StoreError, session::SubmitError},
};

use tokio::time::Instant;

use super::{
    Bookmark, Chunks, Job, LAST_WORDS, LOOK_EVERY, Patience, Receipt, SharedLabels, Tally, full, interrupted, lot,
    reader::{Chunk, Stop},
    trouble,
};
use crate::{connection::Connection, exit::Failure, interrupt::Interrupt};

/// Bytes after which a call is sent although more waits.
const CALL_BYTES: usize = 8 << 20;

const ON: &str = "run the same command again to go on from there";

/// Pushes what the bookmark has not taken yet.
pub(super) async fn push(
    connection: &Connection, job: &Job, bookmark: &Bookmark, labels: &SharedLabels, chunks: &mut Chunks,
    mut tally: Tally, interrupt: &Interrupt,
) -> Result<Receipt, Failure> {
    tally.passed_over(bookmark.taken.lines);
    let patience = Patience::new(connection.wait());
    let mut pusher = Pusher { connection, job, bookmark, at: bookmark.taken, tally, patience };
    let mut next = next_chunk(chunks, interrupt).await;
    let mut stop: Option<Stop> = None;
    while let Some(chunk) = next.take() {
        let mut batch = match chunk {
            Ok(chunk) => vec![chunk],
            Err(why) => {
                stop = Some(why);
                break;
            }
        };
        let mut bytes: usize = batch.iter().map(|chunk| chunk.parcel.bytes().len()).sum();
        while bytes < CALL_BYTES && batch.len() < MAX_LOTS && stop.is_none() {
            match chunks.try_recv() {
                Ok(Ok(chunk)) => {
                    bytes += chunk.parcel.bytes().len();
                    batch.push(chunk);
                }
                Ok(Err(why)) => stop = Some(why),
                Err(_) => break,
            }
        }
        if let Err(failure) = pusher.store_unless(&batch, interrupt).await {
            let told = pusher.tally.told(labels, &[], &[]);
            return Err(failure.after(&told, ON));
        }
        drop(batch);
        if stop.is_some() {
            break;
        }
        next = next_chunk(chunks, interrupt).await;
    }
    match stop {
        Some(stop) => {
            let told = pusher.tally.told(labels, &[], &[]);
            Err(stop.failure(labels, &told, "run the command again", Some(bookmark)))
        }
        None if interrupt.came() => {
            let told = pusher.tally.told(labels, &[], &[]);
            Err(Failure::new(format!("interrupted; {told}"), ON))
        }
        None => Ok(pusher.tally.finish()),
    }
}

/// The next chunk; none at the end, or if a person ends the push.
async fn next_chunk(chunks: &mut Chunks, interrupt: &Interrupt) -> Option<Result<Chunk, Stop>> {
    tokio::select! {
        biased;
        () = interrupt.wait() => None,
        chunk = chunks.recv() => chunk,
    }
}

struct Pusher<'a> {
    connection: &'a Connection,
    job: &'a Job,
    bookmark: &'a Bookmark,
    /// Where the bookmark stands.
    at: Place,
    tally: Tally,
    patience: Patience,
}

impl Pusher<'_> {
    /// As [`Pusher::store`]; when a person ends the push, what is under way has a moment to be answered.
    async fn store_unless(&mut self, batch: &[Chunk], interrupt: &Interrupt) -> Result<(), Failure> {
        let store = self.store(batch);
        tokio::pin!(store);
        tokio::select! {
            biased;
            stored = &mut store => return stored,
            () = interrupt.wait() => {}
        }
        let ended = tokio::time::timeout(LAST_WORDS, store).await;
        ended.unwrap_or_else(|_| Err(interrupted("wait for the store to answer")))
    }

    /// Stores chunks and moves the bookmark behind them, exactly once however often it is tried.
    async fn store(&mut self, batch: &[Chunk]) -> Result<(), Failure> {
        let Some(to) = batch.last().and_then(|chunk| chunk.place) else { return Ok(()) };
        let mut sent_before = false;
        loop {
            match self.submit(batch, to).await? {
                Ok(verdicts) => {
                    let mut verdicts = verdicts.into_iter();
                    for chunk in batch {
                        match verdicts.next() {
                            Some(LotVerdict::Stored { first }) => self.tally.stored(chunk, Some(first)),
                            _ => return Err(self.odd("it gave no verdict on a parcel")),
                        }
                    }
                    self.moved(to);
                    return Ok(());
                }
                Err(SubmitError { error: StoreError::Refused(Refusal::Full { .. }), .. }) => {
                    let cause = full(&self.job.queue);
                    if self.patience.worn_out(self.connection, &cause) {
                        return Err(Failure::new(cause, "start a node, or raise --max-backlog"));
                    }
                    tokio::time::sleep(LOOK_EVERY).await;
                }
                Err(SubmitError {
                    error: StoreError::Refused(Refusal::Stale | Refusal::Bookmark { .. }),
                    maybe_stored,
                }) => {
                    sent_before |= maybe_stored;
                    let stands: Place = self.connection.ask(ReadBookmark { key: self.bookmark.key.clone() }).await?;
                    if stands == to {
                        match sent_before {
                            true => batch.iter().for_each(|chunk| self.tally.stored(chunk, None)),
                            // Another run of the same input was faster.
                            false => self.tally.passed_over(to.lines - self.at.lines),
                        }
                        self.moved(to);
                        return Ok(());
                    }
                    if stands != self.at {
                        let cause = format!("another push under the key {:?} is under way", self.bookmark.key.as_str());
                        return Err(Failure::new(cause, "wait for it to end"));
                    }
                }
                Err(SubmitError { error, .. }) => return Err(self.connection.failure(&error)),
            }
        }
    }

    /// Sends the chunks and waits for the verdicts while there is hope.
    async fn submit(&mut self, batch: &[Chunk], to: Place) -> Result<Result<Vec<LotVerdict>, SubmitError>, Failure> {
        let session = self.connection.session().await?;
        let lots: Vec<Lot> = batch.iter().map(|chunk| lot(&self.job.queue, chunk)).collect();
        let bookmark = MoveBookmark { key: self.bookmark.key.clone(), from: self.at, to };
        let submit = session.submit(lots, Some(bookmark));
        tokio::pin!(submit);
        let began = Instant::now();
        loop {
            tokio::select! {
                answer = &mut submit => return Ok(answer),
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            let Some(error) = trouble(Some(&session)) else {
                if began.elapsed() >= self.connection.answer_limit() {
                    self.connection.say_silent();
                }
                continue;
            };
            if self.patience.worn_out(self.connection, &error) {
                // Leaving ends the call: it is answered with what became of it.
                self.connection.leave().await;
                return match tokio::time::timeout(LAST_WORDS, &mut submit).await {
                    Ok(Ok(verdicts)) => Ok(Ok(verdicts)),
                    _ => Err(self.connection.failure(&error)),
                };
            }
        }
    }

    fn moved(&mut self, to: Place) {
        self.at = to;
        self.patience.calm();
    }

    fn odd(&self, why: &str) -> Failure {
        self.connection.failure(&StoreError::Damaged(why.to_owned()))
    }
}
