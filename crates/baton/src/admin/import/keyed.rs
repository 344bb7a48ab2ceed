//! Pushing under a key: the bookmark moves in the same step as the lines it speaks of.
//!
//! One call is under way at a time; everything read meanwhile goes with the next. After a call whose fate is not
//! known, the bookmark tells: it stands where the call would have put it, or where it was.

use tokio::time::Instant;

use super::{
    Bookmark, Chunks, FULL_PAUSE, Import, ImportCause, ImportError, LAST_WORDS, LOOK_EVERY, Patience, Progress,
    Receipt, SharedLabels, Tally, full, last_words, no_verdict,
    reader::{Chunk, Stop},
    submission, trouble,
};
use crate::{
    Shutdown,
    admin::Admin,
    backoff::Backoff,
    message::Submission,
    store::{
        MAX_LOTS, MoveBookmark, Place, ReadBookmark, Refusal, StoreError, SubmissionVerdict, session::SubmitError,
    },
};

/// Bytes after which a call is sent although more waits.
const CALL_BYTES: usize = 8 << 20;

/// Pushes what the bookmark has not taken yet.
pub(super) async fn push<P: FnMut(Progress)>(
    admin: &Admin, import: &Import, bookmark: &Bookmark, labels: &SharedLabels, chunks: &mut Chunks,
    mut tally: Tally<P>, until: &Shutdown,
) -> Result<Receipt, ImportError> {
    tally.passed_over(bookmark.taken.lines);
    let patience = Patience::new(admin.wait);
    let mut pusher = Pusher { admin, import, bookmark, at: bookmark.taken, tally, patience };
    let mut next = next_chunk(chunks, until).await;
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
        if let Err(cause) = pusher.store_unless(&batch, until).await {
            if let Some(destroyed) = cause.of_destroy(pusher.at.lines) {
                return Err(destroyed.into());
            }
            return Err(pusher.tally.broken_off(cause, labels, &[], &[]));
        }
        drop(batch);
        if stop.is_some() {
            break;
        }
        next = next_chunk(chunks, until).await;
    }
    let cause = match stop {
        Some(stop) => stop.cause(labels, Some(bookmark)),
        None if until.asked().is_some() => ImportCause::Interrupted { unanswered: false },
        None => return Ok(pusher.tally.finish()),
    };
    Err(pusher.tally.broken_off(cause, labels, &[], &[]))
}

/// The next chunk; none at the end, or if a person ends the push.
async fn next_chunk(chunks: &mut Chunks, until: &Shutdown) -> Option<Result<Chunk, Stop>> {
    tokio::select! {
        biased;
        () = until.any() => None,
        chunk = chunks.recv() => chunk,
    }
}

struct Pusher<'a, P> {
    admin: &'a Admin,
    import: &'a Import,
    bookmark: &'a Bookmark,
    /// Where the bookmark stands.
    at: Place,
    tally: Tally<P>,
    patience: Patience,
}

impl<P: FnMut(Progress)> Pusher<'_, P> {
    /// As [`Pusher::store`]; when a person ends the push, what is under way has a moment to be answered.
    async fn store_unless(&mut self, batch: &[Chunk], until: &Shutdown) -> Result<(), ImportCause> {
        let store = self.store(batch);
        tokio::pin!(store);
        tokio::select! {
            biased;
            stored = &mut store => return stored,
            () = until.any() => {}
        }
        let ended = tokio::time::timeout(LAST_WORDS, store).await;
        ended.unwrap_or(Err(ImportCause::Interrupted { unanswered: true }))
    }

    /// Stores chunks and moves the bookmark behind them, exactly once however often it is tried.
    async fn store(&mut self, batch: &[Chunk]) -> Result<(), ImportCause> {
        let Some(to) = batch.last().and_then(|chunk| chunk.place) else { return Ok(()) };
        let mut sent_before = false;
        loop {
            match self.submit(batch, to).await? {
                Ok(verdicts) => {
                    let mut verdicts = verdicts.into_iter();
                    for chunk in batch {
                        match verdicts.next() {
                            Some(SubmissionVerdict::Stored { first }) => self.tally.stored(chunk, Some(first)),
                            _ => return Err(no_verdict()),
                        }
                    }
                    self.moved(to);
                    return Ok(());
                }
                Err(SubmitError { error: StoreError::Refused(Refusal::Full { .. }), .. }) => {
                    self.wait_for_room(batch).await?;
                }
                Err(SubmitError {
                    error: StoreError::Refused(Refusal::Stale | Refusal::Bookmark { .. }),
                    maybe_stored,
                }) => {
                    sent_before |= maybe_stored;
                    let stands: Place = self.admin.ask(ReadBookmark { key: self.bookmark.key.clone() }).await?;
                    if stands == to {
                        match sent_before {
                            true => batch.iter().for_each(|chunk| self.tally.stored(chunk, None)),
                            // Another run of the same input was faster.
                            false => self.tally.passed_over(to.lines - self.at.lines),
                        }
                        self.moved(to);
                        return Ok(());
                    }
                    if stands == Place::START && self.at != Place::START {
                        return Err(ImportCause::Destroyed { before: self.at.lines });
                    }
                    if stands != self.at {
                        return Err(ImportCause::KeyInUse { key: self.bookmark.key.clone() });
                    }
                }
                Err(SubmitError { error, .. }) => return Err(error.into()),
            }
        }
    }

    /// Waits until the queue has room for the chunks, asking ever more seldom.
    async fn wait_for_room(&mut self, batch: &[Chunk]) -> Result<(), ImportCause> {
        let bytes = batch.iter().map(|chunk| chunk.parcel.bytes().len() as u64).sum();
        let mut pauses = Backoff::new(LOOK_EVERY, FULL_PAUSE);
        loop {
            let cause = full(self.admin, self.import);
            if self.patience.worn_out(self.admin, &cause) {
                return Err(cause);
            }
            tokio::time::sleep(pauses.pause()).await;
            // If that is not answered, the push finds out why.
            if self.admin.has_room(&self.import.queue, bytes).await != Ok(false) {
                return Ok(());
            }
        }
    }

    /// Sends the chunks and waits for the verdicts while there is hope.
    async fn submit(
        &mut self, batch: &[Chunk], to: Place,
    ) -> Result<Result<Vec<SubmissionVerdict>, SubmitError>, ImportCause> {
        let session = self.admin.session().await?;
        let submissions: Vec<Submission> = batch.iter().map(|chunk| submission(&self.import.queue, chunk)).collect();
        let bookmark = MoveBookmark { key: self.bookmark.key.clone(), from: self.at, to };
        let submit = session.submit(submissions, Some(bookmark));
        tokio::pin!(submit);
        let began = Instant::now();
        loop {
            tokio::select! {
                answer = &mut submit => return Ok(answer),
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            let Some(error) = trouble(Some(&session)) else {
                if began.elapsed() >= self.admin.answer_limit() {
                    self.admin.say_silent();
                }
                continue;
            };
            if self.patience.outlasted(self.admin, &error, began) {
                // Leaving ends the call: it is answered with what became of it.
                let limit = last_words(matches!(error, StoreError::Unreachable(_)));
                self.admin.leave_within(limit).await;
                return match tokio::time::timeout(limit, &mut submit).await {
                    Ok(Ok(verdicts)) => Ok(Ok(verdicts)),
                    _ => Err(error.into()),
                };
            }
        }
    }

    fn moved(&mut self, to: Place) {
        self.at = to;
        self.patience.calm();
    }
}
