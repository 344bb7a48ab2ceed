//! The generator: pulls a source and pushes what it gives, several batches under way, while it holds the baton.
//!
//! Batches are pushed in order and numbered within the epoch. One that is refused because the queue is full makes
//! all behind it miss their cursor; so does one that has to be repeated and is overtaken. They are sent again in order,
//! after a pause if there is no room. The stream is pulled in a task of its own through a short channel, so it rests as
//! soon as the store does not take more. A source that panics has failed, as one that says so.

use std::{collections::VecDeque, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, StreamExt as _, stream::FuturesOrdered};
use tokio::{runtime::Handle, sync::mpsc, task::JoinHandle};

use super::{
    activity::Activity,
    observer::Observer,
    source::{Batch, Flow, Source, SourceError},
    stillness::{Stillness, Unstored},
};
use crate::{
    message::{Name, Parcel},
    store::{Clock, Push, Pushed, Refusal, StoreError, Taken, session::Session},
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
    pub(super) source: Arc<dyn Source>,
    pub(super) taken: Taken,
    pub(super) max_backlog: u64,
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

/// A batch that was sent and is not stored as far as is known.
struct Sent {
    push: Push,
    _unstored: Unstored,
}

impl Generator {
    /// Generates until the source or the baton ends.
    pub(super) async fn run(self) -> Ended {
        let (sender, pulled) = mpsc::channel(UNDER_WAY);
        let (source, cursor, clock) = (self.source.clone(), self.taken.cursor.clone(), self.clock.clone());
        let pulling = pull_all(source, cursor, clock, self.stillness.clone(), sender);
        let _puller = AbortOnDrop(self.home.spawn(pulling));
        let ended = self.push_all(pulled).await;
        self.activity.set_full(false);
        ended
    }

    async fn push_all(&self, mut pulled: mpsc::Receiver<Pulled>) -> Ended {
        let (mut cursor, mut batch_no) = (self.taken.cursor.clone(), self.taken.batch_no);
        // The batch that was sent last with nothing before it on its way.
        let mut foremost = batch_no + 1;
        let mut unanswered: VecDeque<Sent> = VecDeque::new();
        let mut under_way = FuturesOrdered::new();
        let mut failed = None;
        let mut pause = FULL_PAUSE.0;
        let mut more = true;
        loop {
            self.activity.pushing(!under_way.is_empty());
            tokio::select! {
                biased;
                Some(answer) = under_way.next() => {
                    match self.answered(&mut unanswered, foremost, answer) {
                        Answered::Taken => {
                            pause = FULL_PAUSE.0;
                            self.activity.set_full(false);
                        }
                        Answered::Ended(ended) => return ended,
                        Answered::Again { after_pause } => {
                            while under_way.next().await.is_some() {}
                            if after_pause {
                                self.activity.set_full(true);
                                tokio::time::sleep(pause).await;
                                pause = (pause * 2).min(FULL_PAUSE.1);
                            }
                            foremost = unanswered.front().map_or(foremost, |sent| sent.push.batch_no);
                            under_way.extend(unanswered.iter().map(|sent| self.session.push(sent.push.clone())));
                        }
                    }
                }
                item = pulled.recv(), if more && under_way.len() < UNDER_WAY => match item {
                    Some(Ok((parcel, reached, flow, _unstored))) => {
                        more = flow == Flow::More;
                        let to = reached.unwrap_or_else(|| cursor.clone());
                        batch_no += 1;
                        let push = Push {
                            session: self.session.id(),
                            source: self.name.clone(),
                            epoch: self.taken.epoch,
                            batch_no,
                            from: std::mem::replace(&mut cursor, to.clone()),
                            to,
                            parcels: parcel.into_iter().collect(),
                            end: !more,
                            max_backlog: self.max_backlog,
                        };
                        unanswered.push_back(Sent { push: push.clone(), _unstored });
                        under_way.push_back(self.session.push(push));
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

    /// What the answer to the oldest push means.
    fn answered(&self, unanswered: &mut VecDeque<Sent>, foremost: u64, answer: Result<Pushed, StoreError>) -> Answered {
        match answer {
            Ok(pushed) => {
                if let Some(sent) = unanswered.pop_front() {
                    self.observer.pushed(&sent.push, &pushed);
                }
                Answered::Taken
            }
            Err(StoreError::Refused(Refusal::Full { .. })) => Answered::Again { after_pause: true },
            Err(StoreError::Refused(Refusal::Gap { batch_no, cursor })) => {
                unanswered.retain(|sent| sent.push.batch_no > batch_no);
                match unanswered.front().map(|sent| &sent.push) {
                    Some(next) if next.from == cursor && next.batch_no == batch_no + 1 => {
                        Answered::Again { after_pause: false }
                    }
                    // It overtook one before it that was being repeated, and has been taken since.
                    Some(next) if next.batch_no > batch_no + 1 && next.batch_no > foremost => {
                        Answered::Again { after_pause: false }
                    }
                    _ => Answered::Ended(Ended::Baton),
                }
            }
            Err(StoreError::Refused(Refusal::Ended { .. })) => Answered::Ended(Ended::Source),
            Err(StoreError::Refused(_)) => Answered::Ended(Ended::Baton),
            Err(error) => Answered::Ended(Ended::Store(error)),
        }
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
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message");
        Err(SourceError::new(format_args!("it panicked: {text}")))
    })
}

enum Answered {
    Taken,
    Again { after_pause: bool },
    Ended(Ended),
}

/// A task that ends with its owner.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
