//! The fleet as all requests of a gateway see it: its queues, how they stand, and how many live nodes work for each.
//!
//! **Invariant.** A survey costs the store more the larger the fleet is. So one survey answers all requests that it is
//! new enough for, two never overlap, and two begin at least [`PAUSE`] apart, however many requests come.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use baton::{
    CallState, Fleet, Name,
    admin::Overview,
    store::{Survey, TakeSurvey},
};
use tokio::time::{Duration, Instant, sleep_until, timeout};

use crate::pace::QueuePaces;

/// How old a view may be where a request does not need a newer one.
const FRESH: Duration = Duration::from_secs(1);
/// The shortest time between the beginnings of two surveys.
const PAUSE: Duration = Duration::from_millis(250);
/// How long a survey may take.
const SURVEY_TIME: Duration = Duration::from_secs(2);
/// How long a request waits for a survey; the survey goes on for later requests.
const WAIT: Duration = Duration::from_secs(1);

/// The view that all requests share; clones are the same one.
#[derive(Clone)]
pub(crate) struct FleetView(Arc<Shared>);

struct Shared {
    fleet: Fleet,
    paces: QueuePaces,
    seen: Mutex<Seen>,
    /// Held by the one survey that is under way.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Seen {
    /// The newest survey, which may have failed.
    last: Option<Attempt>,
    /// The newest survey that the store answered.
    answered: Option<Arc<View>>,
}

#[derive(Clone)]
struct Attempt {
    begun: Instant,
    view: Option<Arc<View>>,
}

/// The fleet at one instant.
#[derive(Debug, Default)]
pub(crate) struct View {
    queues: BTreeMap<Name, QueueView>,
}

/// A queue that is stored, or that a live node works for.
#[derive(Debug, Default)]
struct QueueView {
    nodes: u64,
    is_paused: bool,
    ready: u64,
}

impl FleetView {
    pub(crate) fn new(fleet: &Fleet) -> Self {
        let (fleet, paces) = (fleet.clone(), QueuePaces::default());
        Self(Arc::new(Shared { fleet, paces, seen: Mutex::default(), turn: tokio::sync::Mutex::default() }))
    }

    /// The fleet as it was at most [`FRESH`] ago; nothing if the store does not answer in time.
    pub(crate) async fn now(&self) -> Option<Arc<View>> {
        let now = Instant::now();
        self.begun_since(now.checked_sub(FRESH).unwrap_or(now)).await
    }

    /// The fleet by a survey that began at this time or later; nothing if the store does not answer in time.
    pub(crate) async fn begun_since(&self, least: Instant) -> Option<Arc<View>> {
        if let Some(attempt) = self.0.attempt_since(least) {
            return attempt.view;
        }
        let shared = Arc::clone(&self.0);
        // A task of its own: the survey serves others, also when this request goes.
        let looking = tokio::spawn(async move { shared.look(least).await });
        timeout(WAIT, looking).await.ok()?.ok()?
    }

    /// Whether this queue is stored or worked for, by the newest answer of the store.
    pub(crate) fn has_seen(&self, queue: &Name) -> bool {
        self.0.seen().answered.as_ref().is_some_and(|view| view.has(queue))
    }

    /// How many live nodes work for this queue; nothing if the store does not answer in time.
    pub(crate) async fn nodes_of(&self, queue: &Name) -> Option<u64> {
        Some(self.now().await?.nodes_of(queue))
    }

    /// The pace of the queues, by the surveys taken.
    pub(crate) fn paces(&self) -> &QueuePaces {
        &self.0.paces
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attempt_since(&self, least: Instant) -> Option<Attempt> {
        self.seen().last.clone().filter(|attempt| attempt.begun >= least)
    }

    async fn look(&self, least: Instant) -> Option<Arc<View>> {
        let _turn = self.turn.lock().await;
        if let Some(attempt) = self.attempt_since(least) {
            return attempt.view;
        }
        let before = self.seen().last.as_ref().map(|attempt| attempt.begun);
        if let Some(before) = before {
            sleep_until(before + PAUSE).await;
        }
        let begun = Instant::now();
        let survey = timeout(SURVEY_TIME, self.fleet.ask(TakeSurvey)).await;
        let view = survey.ok().and_then(Result::ok).map(|survey| {
            self.paces.look(&survey);
            Arc::new(View::of(&survey))
        });
        let mut seen = self.seen();
        seen.answered = view.clone().or_else(|| seen.answered.take());
        seen.last = Some(Attempt { begun, view: view.clone() });
        view
    }
}

impl View {
    fn of(survey: &Survey) -> Self {
        let Overview { queues, nodes, .. } = Overview::of(survey);
        let queues = queues.into_iter().map(|it| {
            let view = QueueView { nodes: 0, is_paused: it.paused, ready: it.ready };
            (it.name, view)
        });
        let mut view = Self { queues: queues.collect() };
        for queue in nodes.into_iter().flat_map(|node| node.queues) {
            view.queues.entry(queue).or_default().nodes += 1;
        }
        view
    }

    /// Whether this queue is stored, or a live node works for it.
    pub(crate) fn has(&self, queue: &Name) -> bool {
        self.queues.contains_key(queue)
    }

    /// The queues that are stored or worked for.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &Name> {
        self.queues.keys()
    }

    /// The obstacle that keeps messages of this queue from running, if there is one.
    pub(crate) fn obstacle(&self, queue: &Name) -> Option<String> {
        match self.queues.get(queue) {
            Some(it) if it.is_paused => Some(format!("queue {queue} is paused; `baton resume {queue}` lets it go on")),
            None | Some(QueueView { nodes: 0, .. }) => Some(format!("no live node works for queue {queue}")),
            Some(_) => None,
        }
    }

    /// Why a message of this queue, whose call is in this state, has not ended.
    pub(crate) fn why_unended(&self, queue: &Name, state: CallState) -> Option<String> {
        match state {
            CallState::InFlight => Some("a node runs it".to_owned()),
            CallState::Delayed => self.obstacle(queue).or_else(|| Some("it waits for its next attempt".to_owned())),
            CallState::Ready | CallState::Cancelling => self.obstacle(queue).or_else(|| self.ahead(queue)),
            CallState::Done | CallState::Failed | CallState::Cancelled => None,
        }
    }

    /// How many messages a waiting one may have before it.
    fn ahead(&self, queue: &Name) -> Option<String> {
        match self.queues.get(queue).map_or(0, |it| it.ready) {
            0 | 1 => None,
            2 => Some(format!("up to 1 message is before it in queue {queue}")),
            ready => Some(format!("up to {} messages are before it in queue {queue}", ready - 1)),
        }
    }

    /// How many live nodes work for this queue.
    pub(crate) fn nodes_of(&self, queue: &Name) -> u64 {
        self.queues.get(queue).map_or(0, |it| it.nodes)
    }
}
