//! A random load through the library's own sessions, for servers that are killed under it.
//!
//! Producers, a source, workers and a drainer go on through every outage: a session that is over joins anew. What
//! was acknowledged is counted here, to be held against the books.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use baton::{
    MessageId, Name,
    store::{
        Disposal, Kind, Offer, Peek, Refusal, Store, StoreError, SubmissionVerdict, ask,
        message::{Body, Digest, Outcome, Parcel, ParcelBuilder, Run, Submission},
        session::{ClaimReply, Fate, Session, SessionOptions},
    },
};
use tokio::task::JoinHandle;

/// What callers were told.
#[derive(Debug, Default)]
pub struct Acknowledged {
    /// Messages submitted.
    pub submitted: AtomicU64,
    /// Messages of the source.
    pub pushed: AtomicU64,
    /// Messages settled as done.
    pub done: AtomicU64,
    /// Errors removed.
    pub removed: AtomicU64,
}

impl Acknowledged {
    /// All answers so far; grows while the load makes progress.
    #[must_use]
    pub fn total(&self) -> u64 {
        [&self.submitted, &self.pushed, &self.done, &self.removed].iter().map(|count| count.load(Relaxed)).sum()
    }
}

/// A load at work.
pub struct Load {
    /// What it was told so far.
    pub acknowledged: Arc<Acknowledged>,
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Clone)]
struct Part {
    store: Arc<dyn Store>,
    acknowledged: Arc<Acknowledged>,
    stop: Arc<AtomicBool>,
    random: Arc<AtomicU64>,
}

impl Load {
    /// Starts it on a store.
    #[must_use]
    pub fn start(store: Arc<dyn Store>, seed: u64) -> Self {
        let (acknowledged, stop) = (Arc::default(), Arc::default());
        let part = Part { store, acknowledged, stop, random: Arc::new(AtomicU64::new(seed | 1)) };
        let mut tasks = vec![tokio::spawn(part.clone().source()), tokio::spawn(part.clone().drain())];
        for _ in 0..2 {
            tasks.push(tokio::spawn(part.clone().produce()));
            tasks.push(tokio::spawn(part.clone().work()));
        }
        Self { acknowledged: part.acknowledged, stop: part.stop, tasks }
    }

    /// Returns when callers were told of `count` more messages.
    ///
    /// # Panics
    /// If there is no progress for a minute.
    pub async fn progress(&self, count: u64) {
        let goal = self.acknowledged.total() + count;
        let waiting = async {
            while self.acknowledged.total() < goal {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(60), waiting).await;
        assert!(waited.is_ok(), "the load makes no progress: {:?}", self.acknowledged);
    }

    /// Ends it after what is under way.
    ///
    /// # Panics
    /// If a part of it failed.
    pub async fn stop(self) -> Arc<Acknowledged> {
        self.stop.store(true, Relaxed);
        for task in self.tasks {
            task.await.expect("the load met only what it may meet");
        }
        self.acknowledged
    }
}

impl Part {
    fn stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    fn random(&self, below: u64) -> u64 {
        let mut value = self.random.fetch_add(0x9E37_79B9_7F4A_7C15, Relaxed);
        value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (value ^ (value >> 31)) % below
    }

    /// A session, joined again and again until the store is there.
    async fn session(&self, kind: Kind) -> Session {
        let offers =
            vec![Offer { source: source(), queue: sourced(), definition: Digest::of(b"positions"), adopts: false }];
        let options = SessionOptions {
            kind,
            offers,
            lease: Duration::from_secs(10),
            heartbeat: Duration::from_millis(200),
            ..SessionOptions::client()
        };
        loop {
            match Session::join(self.store.clone(), options.clone()).await {
                Ok(session) => return session,
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn produce(self) {
        let mut session = self.session(Kind::Client).await;
        while !self.stopped() {
            let count = 1 + self.random(30);
            let submission = Submission { queue: submitted(), parcel: parcel(0, count), key: None, call: None };
            match session.submit(vec![submission], None).await {
                Ok(verdicts) => {
                    assert!(matches!(verdicts[..], [SubmissionVerdict::Stored { .. }]), "{verdicts:?}");
                    self.acknowledged.submitted.fetch_add(count, Relaxed);
                }
                Err(error) => {
                    assert_eq!(error.error, StoreError::Refused(Refusal::Stale));
                    session = self.session(Kind::Client).await;
                }
            }
        }
        session.leave().await.ok();
    }

    /// Pushes its own positions as bodies, so that a gap or a repeat shows.
    async fn source(self) {
        'join: while !self.stopped() {
            let session = self.session(Kind::Node).await;
            let taken = match session.take(source()).await {
                Ok(taken) => taken,
                Err(error) => {
                    assert!(
                        matches!(error, StoreError::Refused(Refusal::Stale | Refusal::BatonHeld { .. })),
                        "{error}"
                    );
                    // The last holder is this very source before it joined anew: its lease has to end.
                    session.leave().await.ok();
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            };
            let mut cursor = taken.cursor.parse::<u64>().unwrap_or(0);
            let mut pushes = session.pushes(source(), taken, 1 << 30);
            while !self.stopped() {
                let count = 1 + self.random(20);
                pushes.send(Some(parcel(cursor, count)), Some((cursor + count).to_string()), false, ());
                match pushes.fate().await {
                    Some(Fate::Stored { .. }) => {
                        cursor += count;
                        self.acknowledged.pushed.fetch_add(count, Relaxed);
                    }
                    Some(Fate::Lost(Refusal::Stale | Refusal::StaleBaton { .. })) => continue 'join,
                    fate => panic!("{fate:?}"),
                }
            }
            session.leave().await.ok();
        }
    }

    async fn work(self) {
        let mut session = self.session(Kind::Node).await;
        while !self.stopped() {
            let (n, due) = (1 + self.random(40) as u32, Some(Duration::from_millis(20)));
            let held = match session.claim_when_ready(submitted(), n, 1 << 20, due).await {
                Ok(ClaimReply { held: Some(held), .. }) => held,
                Ok(ClaimReply { held: None, .. }) => continue,
                Err(error) => {
                    assert_eq!(error, StoreError::Refused(Refusal::Stale));
                    session = self.session(Kind::Node).await;
                    continue;
                }
            };
            let (claim_no, queue, spans) = held.into_parts();
            let mut done = 0;
            let mut runs = Vec::new();
            for (span, _) in &spans {
                let outcome = match self.random(12) {
                    0 => Outcome::Retry { after_ms: self.random(50), error: String::new() },
                    1 => Outcome::Failed { error: "by chance".to_owned() },
                    2 => Outcome::Back,
                    _ => Outcome::DONE,
                };
                done += if outcome == Outcome::DONE { u64::from(span.range.len) } else { 0 };
                runs.push(Run { claim_no, queue: queue.clone(), range: span.range, outcome });
            }
            match session.settle(runs).await {
                Ok(settled) => {
                    assert_eq!(settled.refused, [], "nothing else can hold what this session holds");
                    self.acknowledged.done.fetch_add(done, Relaxed);
                }
                Err(error) => {
                    assert_eq!(error, StoreError::Refused(Refusal::Stale));
                    session = self.session(Kind::Node).await;
                }
            }
        }
        session.leave().await.ok();
    }

    async fn drain(self) {
        while !self.stopped() {
            let session = self.session(Kind::Client).await;
            while !self.stopped() {
                match self.drain_page(&session).await {
                    Ok(0) => tokio::time::sleep(Duration::from_millis(10)).await,
                    Ok(count) => _ = self.acknowledged.removed.fetch_add(count, Relaxed),
                    Err(_) => break,
                }
            }
            session.leave().await.ok();
        }
    }

    async fn drain_page(&self, session: &Session) -> Result<u64, StoreError> {
        let upto = session.begin_removal(submitted()).await?.upto;
        let peek = Peek { queue: submitted(), after: 0, upto, limit: 100, max_bytes: 1 << 20 };
        let ids: Vec<MessageId> = ask(&*self.store, peek).await?.errors.iter().map(|error| error.id).collect();
        if ids.is_empty() {
            return Ok(0);
        }
        Ok(session.dispose(submitted(), ids, Disposal::Remove).await?.count)
    }
}

/// The queue of producers and workers.
#[must_use]
pub fn submitted() -> Name {
    Name::new("submitted").expect("a good name")
}

/// The queue of the source; nobody works there.
#[must_use]
pub fn sourced() -> Name {
    Name::new("sourced").expect("a good name")
}

/// The source.
#[must_use]
pub fn source() -> Name {
    Name::new("positions").expect("a good name")
}

/// The positions `from .. from + count` as bodies.
#[must_use]
pub fn parcel(from: u64, count: u64) -> Parcel {
    let mut builder = ParcelBuilder::default();
    for position in from..from + count {
        builder.add(Body::new(position.to_string().as_bytes()).unwrap()).expect("a small body");
    }
    builder.finish().expect("not empty")
}
