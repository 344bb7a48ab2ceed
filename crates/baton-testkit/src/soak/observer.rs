//! The observer looks at the whole fleet many times a second and holds it against what must be so at every instant.
//!
//! One baton a source, held by a live session; an epoch belongs to one session for ever and never decreases; ids and
//! positions grow together; the books balance. It also measures how long a source stood still when its generator
//! was struck down: from the blow to the first growth under a new epoch.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use baton::{
    Name, SessionId,
    store::{Books, SourceView, Store, Survey, TakeSurvey, ask},
};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout_at},
};

use super::findings::Findings;

/// How often it looks, and how often while a gap is being measured.
const PACE: Duration = Duration::from_millis(60);
const FAST_PACE: Duration = Duration::from_millis(15);

/// One look at the fleet.
#[derive(Debug, Clone)]
pub struct Sight {
    /// When the answer was there.
    pub at: Instant,
    /// What was seen.
    pub survey: Arc<Survey>,
    queue: Name,
}

impl Sight {
    /// The source that feeds the queue.
    #[must_use]
    pub fn source(&self) -> Option<&SourceView> {
        self.survey.sources.iter().find(|source| source.queue == self.queue)
    }

    /// The books of the queue.
    #[must_use]
    pub fn books(&self) -> Books {
        let books = self.survey.queues.iter().find(|books| books.queue == self.queue);
        books.cloned().unwrap_or_else(|| Books::new(self.queue.clone()))
    }

    /// The process that holds the baton.
    #[must_use]
    pub fn holder_pid(&self) -> Option<u32> {
        let holder = self.source()?.holder?;
        self.survey.sessions.iter().find(|session| session.session == holder).map(|session| session.pid)
    }

    /// Whether a session of this id is alive.
    #[must_use]
    pub fn knows(&self, session: SessionId) -> bool {
        self.survey.sessions.iter().any(|view| view.session == session)
    }
}

/// How long a source stood still.
#[derive(Debug, Clone, Copy)]
pub struct Gap {
    /// From the blow to the successor's first push.
    pub push: Duration,
    /// Messages that were waiting at the blow.
    pub backlog: u64,
}

/// The observer of a run.
pub struct Observer {
    latest: watch::Receiver<Option<Sight>>,
    /// Who held the baton in which epoch.
    batons: Arc<Mutex<BTreeMap<u64, SessionId>>>,
    looks: Arc<AtomicU64>,
    /// Gaps being measured now.
    hurry: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Observer {
    /// Begins to look, over a connection that no fault but those of the server touches.
    #[must_use]
    pub fn start(store: Arc<dyn Store>, queue: Name, findings: Findings) -> Self {
        let (seen, latest) = watch::channel(None);
        let (batons, looks, hurry) = (Arc::default(), Arc::default(), Arc::default());
        let eye = Eye {
            queue,
            findings,
            batons: Arc::clone(&batons),
            looks: Arc::clone(&looks),
            hurry: Arc::clone(&hurry),
            last: None,
        };
        Self { latest, batons, looks, hurry, task: tokio::spawn(eye.watch(store, seen)) }
    }

    /// The newest look.
    #[must_use]
    pub fn latest(&self) -> Option<Sight> {
        self.latest.borrow().clone()
    }

    /// How often it has looked.
    #[must_use]
    pub fn looks(&self) -> u64 {
        self.looks.load(Relaxed)
    }

    /// Batons of the past, none of which is in force any more.
    #[must_use]
    pub fn past_batons(&self) -> Vec<(u64, SessionId)> {
        let batons = self.batons.lock().expect("no panic while noting");
        let past = batons.len().saturating_sub(1);
        batons.iter().take(past).map(|(epoch, session)| (*epoch, *session)).collect()
    }

    /// How many batons were seen.
    #[must_use]
    pub fn epochs(&self) -> u64 {
        self.batons.lock().expect("no panic while noting").len() as u64
    }

    /// A look from now on that is as wished, within the limit.
    pub async fn see(&self, limit: Duration, mut good: impl FnMut(&Sight) -> bool) -> Option<Sight> {
        let (now, mut latest) = (Instant::now(), self.latest.clone());
        let seeing = latest.wait_for(|sight| sight.as_ref().is_some_and(|sight| sight.at > now && good(sight)));
        timeout_at(now + limit, seeing).await.ok()?.ok()?.clone()
    }

    /// Whether somebody pushes, within the limit.
    pub async fn is_pushed(&self, limit: Duration) -> bool {
        let mut first = None;
        self.see(limit, |sight| sight.books().pushed > *first.get_or_insert(sight.books().pushed)).await.is_some()
    }

    /// The gap after a blow struck at `at` to the holder seen in `before`; none if nobody followed in time.
    pub async fn gap(&self, before: &Sight, at: Instant, limit: Duration) -> Option<Gap> {
        self.hurry.fetch_add(1, Relaxed);
        let old = before.source().map_or(0, |source| source.epoch);
        let mut pushed = before.books().pushed;
        let after = self.see(limit, |sight| {
            let now = sight.books().pushed;
            if sight.source().is_some_and(|source| source.epoch > old) {
                return now > pushed;
            }
            // What the old holder had sent before the blow may still arrive.
            pushed = now;
            false
        });
        let after = after.await;
        self.hurry.fetch_sub(1, Relaxed);
        Some(Gap { push: after?.at - at, backlog: before.books().ready })
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Eye {
    queue: Name,
    findings: Findings,
    batons: Arc<Mutex<BTreeMap<u64, SessionId>>>,
    looks: Arc<AtomicU64>,
    hurry: Arc<AtomicU64>,
    last: Option<Sight>,
}

impl Eye {
    async fn watch(mut self, store: Arc<dyn Store>, seen: watch::Sender<Option<Sight>>) {
        loop {
            match ask(&*store, TakeSurvey).await {
                Ok(survey) => {
                    let sight = Sight { at: Instant::now(), survey: Arc::new(survey), queue: self.queue.clone() };
                    self.check(&sight);
                    self.looks.fetch_add(1, Relaxed);
                    self.last = Some(sight.clone());
                    seen.send_replace(Some(sight));
                }
                Err(error) => self.findings.demand(error.is_retryable(), || format!("a survey fails: {error}")),
            }
            let pace = if self.hurry.load(Relaxed) > 0 { FAST_PACE } else { PACE };
            tokio::time::sleep(pace).await;
        }
    }

    fn check(&self, sight: &Sight) {
        let books = sight.books();
        for source in &sight.survey.sources {
            let alive = source.holder.is_none_or(|holder| sight.knows(holder));
            self.findings.demand(alive, || format!("a session that is over holds a baton: {source:?}"));
        }
        for books in &sight.survey.queues {
            self.findings.demand(books.balance(), || format!("the books do not balance: {books:?}"));
        }
        if let Some(last) = &self.last {
            let before = last.books().pushed;
            self.findings.demand(books.pushed >= before, || format!("ids fell from {before} to {}", books.pushed));
            self.findings.demand(books.done >= last.books().done, || "fewer messages are done than before".to_owned());
        }
        let Some(source) = sight.source() else { return };
        // One source feeds the queue and nobody else: its position is the number of ids.
        let position = source.cursor.parse().unwrap_or(0);
        self.findings.demand(position == books.pushed, || format!("position {position} with {} ids", books.pushed));
        let last_epoch = self.last.as_ref().and_then(Sight::source).map_or(0, |source| source.epoch);
        self.findings.demand(source.epoch >= last_epoch, || format!("epoch {} after {last_epoch}", source.epoch));
        let Some(holder) = source.holder else { return };
        let mut batons = self.batons.lock().expect("no panic while noting");
        let owner = *batons.entry(source.epoch).or_insert(holder);
        self.findings.demand(owner == holder, || format!("epoch {} was held by {owner} and {holder}", source.epoch));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: u128) -> SessionId {
        SessionId::from_u128(number)
    }

    fn sight(epoch: u64, holder: u128, cursor: u64, pushed: u64) -> Sight {
        let queue = Name::new("q").unwrap();
        let source = SourceView {
            name: Name::new("s").unwrap(),
            queue: queue.clone(),
            holder: Some(session(holder)),
            epoch,
            cursor: cursor.to_string(),
            ended: false,
        };
        let view = baton::store::SessionView {
            session: session(holder),
            kind: baton::store::Kind::Node,
            host: String::new(),
            pid: 40 + u32::try_from(holder).unwrap(),
            queues: Vec::new(),
            lease_ms: 1,
            join_no: 1,
            joined_ms: 1,
            beat_ms: 1,
            report: bytes::Bytes::new(),
        };
        let books = Books { pushed, ready: pushed, ..Books::new(queue.clone()) };
        let survey = Survey { now_ms: 1, sessions: vec![view], sources: vec![source], queues: vec![books] };
        Sight { at: Instant::now(), survey: Arc::new(survey), queue }
    }

    #[tokio::test]
    async fn sights_that_break_a_rule_are_findings() {
        let look = |sights: &[Sight]| {
            let findings = Findings::default();
            let mut eye = Eye {
                queue: Name::new("q").unwrap(),
                findings: findings.clone(),
                batons: Arc::default(),
                looks: Arc::default(),
                hurry: Arc::default(),
                last: None,
            };
            for sight in sights {
                eye.check(sight);
                eye.last = Some(sight.clone());
            }
            findings.all()
        };
        let sound = [sight(5, 1, 10, 10), sight(5, 1, 11, 11), sight(6, 2, 11, 11)];
        assert_eq!(look(&sound), Vec::<String>::new());
        assert_eq!(sound[2].holder_pid(), Some(42));
        for (second, finding) in [
            (sight(4, 1, 10, 10), "epoch 4 after 5"),
            (sight(5, 2, 10, 10), "epoch 5 was held by"),
            (sight(5, 1, 12, 11), "position 12 with 11 ids"),
            (sight(5, 1, 9, 9), "ids fell from 10 to 9"),
        ] {
            let found = look(&[sight(5, 1, 10, 10), second]);
            assert!(found.iter().any(|found| found.contains(finding)), "{finding}: {found:?}");
        }
        let mut lonely = sight(5, 1, 10, 10);
        Arc::get_mut(&mut lonely.survey).unwrap().sessions.clear();
        assert!(look(&[lonely])[0].contains("a session that is over holds a baton"));
    }
}
