//! The generator: pulls a source and pushes what it gives, several batches under way, while it holds the baton.
//!
//! It hands batches and cursors to [`Pushes`](crate::store::session::Pushes), which numbers them, and has those that
//! were refused sent again, after a pause if there is no room. The stream is pulled in a task of its own through a short
//! channel, so it rests as soon as the store does not take more. A source that panics has failed, as one that says so.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use tokio::{runtime::Handle, sync::mpsc, task::JoinSet};
use tracing::Instrument as _;

use super::{
    activity::Activity,
    event::Event,
    observer::{Observer, tell},
    source::{Batch, Flow, Source, SourceError},
    stillness::{Stillness, Unstored},
    traces,
};
use crate::{
    backoff::Backoff,
    message::{Name, Parcel},
    panics,
    store::{
        Clock, Push, Pushed, Refusal, StoreError, Taken,
        session::{Fate, Session},
    },
};

/// Pushes under way at once.
const UNDER_WAY: usize = 4;
/// How long a full queue is left alone before it is tried again, at first and at most.
const FULL_PAUSE: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));

/// How holding a baton ended.
pub(super) enum Ended {
    /// The source has no more messages.
    Source,
    /// The baton, or the session, is another's now, or the stream must be opened anew.
    Baton,
    /// The source cannot go on.
    Failed(SourceError),
    /// The store cannot go on.
    Store(StoreError),
}

/// A generator at work.
pub(super) struct Generator {
    pub(super) session: Session,
    pub(super) name: Name,
    /// The queue it feeds.
    pub(super) queue: Name,
    pub(super) source: Arc<dyn Source>,
    pub(super) taken: Taken,
    pub(super) max_queue_bytes: u64,
    /// What its node knows of how busy it is.
    pub(super) activity: Arc<Activity>,
    pub(super) observer: Arc<dyn Observer>,
    /// The clock the source goes by.
    pub(super) clock: Clock,
    pub(super) stillness: Stillness,
    /// Where the source is opened and pulled.
    pub(super) home: Handle,
}

/// What the pulling task hands over.
type Pulled = Result<(Option<Parcel>, Option<String>, Flow, Unstored), SourceError>;

impl Generator {
    /// Generates until the source or the baton ends.
    pub(super) async fn run(self) -> Ended {
        let (sender, pulled) = mpsc::channel(UNDER_WAY);
        let (source, cursor, clock) = (self.source.clone(), self.taken.cursor.clone(), self.clock.clone());
        let pulling = pull_all(source, cursor, clock, self.stillness.clone(), sender);
        let span = traces::generate(&self.name, self.taken.epoch);
        let mut puller = JoinSet::new();
        puller.spawn_on(pulling.instrument(span.clone()), &self.home);
        let ended = self.push_all(pulled).instrument(span).await;
        self.activity.set_full(false);
        ended
    }

    async fn push_all(&self, mut pulled: mpsc::Receiver<Pulled>) -> Ended {
        let mut pushes = self.session.pushes(self.name.clone(), self.taken.clone(), self.max_queue_bytes);
        let mut failed = None;
        let mut backoff = Backoff::new(FULL_PAUSE.0, FULL_PAUSE.1);
        let mut more = true;
        loop {
            self.activity.pushing(pushes.under_way() > 0);
            tokio::select! {
                biased;
                Some(fate) = pushes.fate() => match fate {
                    Fate::Stored { push, pushed, kept } => {
                        backoff.reset();
                        self.activity.set_full(false);
                        self.stored(push, &pushed, kept);
                    }
                    Fate::Refused { batch_no, refusal } => {
                        let full = matches!(refusal, Refusal::Full { .. });
                        self.refused(batch_no, refusal);
                        if full {
                            self.activity.set_full(true);
                            pushes.send_again_when_room(&self.session, &self.queue, &mut backoff).await;
                        } else {
                            pushes.send_again(Duration::ZERO).await;
                        }
                    }
                    Fate::Ended => return Ended::Source,
                    Fate::Lost(_) => return Ended::Baton,
                    Fate::Failed(error) => return Ended::Store(error),
                },
                item = pulled.recv(), if more && pushes.under_way() < UNDER_WAY => match item {
                    Some(Ok((parcel, reached, flow, unstored))) => {
                        more = flow == Flow::More;
                        pushes.send(parcel, reached, !more, unstored);
                    }
                    Some(Err(error)) => {
                        more = false;
                        failed = Some(error);
                    }
                    None => {
                        more = false;
                        failed = Some(SourceError::new("it was broken off"));
                    }
                },
                else => return match failed {
                    Some(error) => Ended::Failed(error),
                    None => Ended::Source,
                },
            }
        }
    }

    /// Tells of a batch that is stored, before it is no longer counted as on its way.
    fn stored(&self, push: Push, pushed: &Pushed, _unstored: Unstored) {
        let Push { source, epoch, batch_no, from, to, parcels, .. } = push;
        let count = parcels.iter().map(|parcel| u64::from(parcel.len())).sum();
        let (queue, first, duplicate) = (self.queue.clone(), pushed.firsts.first().copied(), pushed.duplicate);
        let event = Event::Pushed { source, queue, epoch, batch_no, from, to, count, first, duplicate };
        tell(&*self.observer, &event);
    }

    fn refused(&self, batch_no: u64, refusal: Refusal) {
        let (source, queue, epoch) = (self.name.clone(), self.queue.clone(), self.taken.epoch);
        tell(&*self.observer, &Event::PushRefused { source, queue, epoch, batch_no, refusal });
    }
}

/// Opens a source and hands over what it gives, up to its end or its failure.
async fn pull_all(
    source: Arc<dyn Source>, cursor: String, clock: Clock, stillness: Stillness, sender: mpsc::Sender<Pulled>,
) {
    let mut batch = Batch::default();
    let mut stream = match unless_it_panics(async { source.open_by(&cursor, &clock).await }).await {
        Ok(stream) => stream,
        // Whoever listened is gone with the baton.
        Err(error) => return sender.send(Err(error)).await.unwrap_or(()),
    };
    loop {
        let flow = unless_it_panics(async { stream.pull(&mut batch).await }).await;
        let last = !matches!(flow, Ok(Flow::More));
        let (parcel, cursor) = batch.take();
        if sender.send(flow.map(|flow| (parcel, cursor, flow, stillness.pulled()))).await.is_err() || last {
            return;
        }
    }
}

/// What a source does; a panic of it is a failure like others.
async fn unless_it_panics<T>(work: impl Future<Output = Result<T, SourceError>>) -> Result<T, SourceError> {
    let panicked = |panic| SourceError::new(format_args!("it panicked: {}", panics::text(panic)));
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| Err(panicked(panic)))
}
