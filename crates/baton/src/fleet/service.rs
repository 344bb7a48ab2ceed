//! What a node does during one session: a worker a queue, a generator a baton, and the gate between the two.
//!
//! Roles follow the store: a baton that a beat reports as due is taken whatever the backlog, one that is held but not
//! run is given back, and generators end with their baton. A node never decides by itself that it is the generator.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::{
    runtime::Handle,
    task::{Id, JoinError, JoinSet},
    time::Instant,
};
use tracing::Instrument as _;

use super::{
    activity::Activity,
    event::Event,
    generator::{Ended, Generator},
    metrics::{Metrics, Report},
    node::{Node, Offered, Role},
    observer::tell,
    shutdown::Shutdown,
    source::SourceError,
    worker::{Dispatcher, Executor},
};
use crate::{
    message::{CallId, Name},
    store::{Beaten, Lost, Refusal, Stop, StoreError, notice::Notice, session::Session},
};

/// How long a source that failed is left alone.
const AFTER_A_FAILURE: Duration = Duration::from_secs(1);
/// How long a node that is to stop, and has nothing left to do but to report, waits for a store that is away.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// How long a node whose session is over tells the store what it had begun, before it joins again.
const LOSING: Duration = Duration::from_secs(1);
/// How often such a node looks whether its handlers have ended.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How much is reported of why a source failed for good.
const CAUSE_CHARS: usize = 200;

/// One session's work.
pub(super) struct Service<'a> {
    node: &'a Node,
    session: Session,
    shutdown: Shutdown,
    metrics: Arc<Metrics>,
    /// Where handlers and sources run.
    home: Handle,
    /// The queues that its workers leave to others.
    closed: Arc<Notice<BTreeSet<Name>>>,
    workers: JoinSet<Result<(), StoreError>>,
    executors: Vec<Arc<Executor>>,
    generators: JoinSet<Ended>,
    running: BTreeMap<Name, Baton>,
    /// Sources that failed, and when they may be tried again; never if they failed for good.
    resting: BTreeMap<Name, Option<Instant>>,
    /// Sources that failed for good, and why.
    failed: BTreeMap<String, String>,
}

/// A baton this node runs.
struct Baton {
    task: Id,
    epoch: u64,
    activity: Arc<Activity>,
}

impl<'a> Service<'a> {
    pub(super) fn new(
        node: &'a Node, session: Session, shutdown: Shutdown, metrics: Arc<Metrics>, home: Handle,
    ) -> Self {
        Self {
            node,
            session,
            shutdown,
            metrics,
            home,
            closed: Arc::default(),
            workers: JoinSet::new(),
            executors: Vec::new(),
            generators: JoinSet::new(),
            running: BTreeMap::new(),
            resting: BTreeMap::new(),
            failed: BTreeMap::new(),
        }
    }

    /// Serves until asked to stop, with everything settled or handed back, or until the session is over.
    pub(super) async fn run(mut self) -> Result<(), StoreError> {
        self.start_workers();
        let mut beats = self.session.beats();
        let session = self.session.clone();
        let shutdown = self.shutdown.clone();
        loop {
            tokio::select! {
                biased;
                () = session.over() => {
                    self.lose().await;
                    return Ok(());
                }
                () = shutdown.any() => return self.drain().await,
                Some(ended) = self.generators.join_next_with_id() => {
                    // However it broke off, its baton is not kept without a generator.
                    let broken_off = |error: JoinError| (error.id(), Ended::Failed(SourceError::new(error)));
                    let (task, ended) = ended.unwrap_or_else(broken_off);
                    self.generator_ended(task, ended).await?;
                }
                Some(ended) = self.workers.join_next() => match ended {
                    Ok(Err(error)) => return Err(error),
                    _ if shutdown.asked().is_none() && !session.is_over() => return Ok(()),
                    _ => {}
                },
                changed = beats.changed() => {
                    if changed.is_err() {
                        // Nothing beats any more: a task that breaks off ends its session a moment later.
                        session.over().await;
                        return Ok(());
                    }
                    let beaten = beats.borrow_and_update().clone();
                    if let Some(beaten) = beaten {
                        self.beaten(&beaten).await?;
                    }
                }
            }
        }
    }

    /// The session is over: lets the workers tell what they had begun. A store that is away hears nothing of it.
    async fn lose(&mut self) {
        self.generators.abort_all();
        let workers = &mut self.workers;
        let told = async { while workers.join_next().await.is_some() {} };
        tokio::time::timeout(LOSING, told).await.ok();
    }

    fn start_workers(&mut self) {
        if self.node.role == Role::Generator {
            return;
        }
        for worked in &self.node.worked {
            let environment = self.node.fleet.environment().clone();
            let (metrics, observer) = (self.metrics.clone(), self.node.observer.clone());
            let executor = Executor::new(
                worked.clone(),
                environment,
                metrics,
                observer,
                self.home.clone(),
                Some(self.session.clone()),
            );
            self.executors.push(Arc::clone(&executor));
            let dispatcher = Dispatcher::new(self.session.clone(), executor);
            self.workers.spawn(dispatcher.run(self.closed.clone(), self.shutdown.clone()));
        }
    }

    async fn beaten(&mut self, beaten: &Beaten) -> Result<(), StoreError> {
        if let Some(stop) = beaten.stop {
            self.ordered(stop);
        }
        self.cancel(&beaten.cancelled);
        for name in &beaten.due {
            self.take(name).await?;
        }
        for (name, epoch) in &beaten.held {
            if self.running.get(name).is_none_or(|baton| baton.epoch < *epoch) {
                self.session.resign(name.clone(), *epoch).await.or_else(unless_over)?;
            }
        }
        self.metrics.store_time(beaten.now_ms);
        let (failed_sources, cores) = (self.failed.clone(), self.node.cores);
        let report = Report { failed_sources, cores, ..self.metrics.report() };
        let report = serde_json::to_vec(&report).unwrap_or_default();
        self.session.heart().report(report.into());
        self.session.look_after_strays(beaten.claims.clone());
        self.set_gates(&beaten.helped);
        self.report_lost();
        Ok(())
    }

    /// Reports the nodes that this one found dead.
    fn report_lost(&self) {
        for Lost { node, silent_ms, back, failed, .. } in self.session.heart().take_lost() {
            let (silent, back) = (silent_ms.map(Duration::from_millis), back.into_iter().collect());
            self.tell(&Event::NodeDied { node, silent, back, failed });
        }
    }

    /// Ends the work on messages of calls that were cancelled.
    fn cancel(&self, calls: &[CallId]) {
        if !calls.is_empty() {
            let calls = calls.iter().cloned().collect();
            self.executors.iter().for_each(|executor| executor.cancel(&calls));
        }
    }

    /// Follows an order to stop, which every beat from then on repeats; it is told once.
    fn ordered(&self, stop: Stop) {
        let at_once = stop == Stop::Now;
        let asked = self.shutdown.asked();
        if asked.is_none() || (at_once && asked != Some(Stop::Now)) {
            self.tell(&Event::StopOrdered { at_once });
        }
        if at_once { self.shutdown.now() } else { self.shutdown.graceful() }
    }

    /// A worker leaves its queue to others while generating keeps this node busy, nothing is full, and the store says
    /// that others see to the queue.
    fn set_gates(&self, helped: &[Name]) {
        let no_room = matches!(self.session.trouble(), Some(StoreError::NoRoom(_)));
        // All are asked, since each looks back on when it was asked before.
        let busy = self.running.values().filter(|baton| baton.activity.is_busy()).count() > 0;
        let generates = busy && !no_room && !self.running.values().any(|baton| baton.activity.is_full());
        let worked = |name: &&Name| self.node.worked.iter().any(|worked| worked.queue == **name);
        let closed: BTreeSet<Name> = helped.iter().filter(|_| generates).filter(worked).cloned().collect();
        self.closed.change(|before| std::mem::replace(before, closed.clone()) != closed);
        let asks = self.node.worked.iter().filter(|_| generates && self.node.role == Role::Auto);
        self.session.heart().ask_about(asks.map(|worked| worked.queue.clone()).collect());
    }

    async fn take(&mut self, name: &Name) -> Result<(), StoreError> {
        let Some(offered) = self.node.offered.iter().find(|offered| offered.name == *name) else { return Ok(()) };
        let rests = self.resting.get(name).is_some_and(|until| until.is_none_or(|until| until > Instant::now()));
        if rests || self.running.contains_key(name) {
            return Ok(());
        }
        let taken = match self.session.take(name.clone()).await {
            Ok(taken) => taken,
            Err(StoreError::Refused(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        let Offered { name, source, queue } = offered;
        self.tell(&Event::BatonTaken {
            session: self.session.id(),
            source: name.clone(),
            queue: queue.clone(),
            epoch: taken.epoch,
            cursor: taken.cursor.clone(),
        });
        let (epoch, activity) = (taken.epoch, Arc::<Activity>::default());
        let generator = Generator {
            session: self.session.clone(),
            name: name.clone(),
            queue: queue.clone(),
            source: source.clone(),
            taken,
            max_queue_bytes: self.node.max_queue_bytes,
            activity: activity.clone(),
            observer: self.node.observer.clone(),
            clock: self.node.fleet.options.clock.clone(),
            stillness: self.node.stillness.clone(),
            home: self.home.clone(),
        };
        self.node.stillness.note(name, false);
        let task = self.generators.spawn(generator.run().in_current_span()).id();
        self.running.insert(name.clone(), Baton { task, epoch, activity });
        Ok(())
    }

    async fn generator_ended(&mut self, task: Id, ended: Ended) -> Result<(), StoreError> {
        let Some(name) = self.running.iter().find(|(_, baton)| baton.task == task).map(|(name, _)| name.clone()) else {
            return Ok(());
        };
        let Some(Baton { epoch, .. }) = self.running.remove(&name) else { return Ok(()) };
        match ended {
            Ended::Source => self.tell(&Event::SourceEnded { source: name.clone(), epoch }),
            Ended::Baton => self.tell(&Event::BatonPassed { source: name.clone(), epoch }),
            Ended::Failed(error) => {
                let again = (!error.is_for_good()).then(|| Instant::now() + AFTER_A_FAILURE);
                if again.is_none() {
                    self.failed.insert(name.to_string(), error.to_string().chars().take(CAUSE_CHARS).collect());
                }
                self.tell(&Event::SourceFailed { source: name.clone(), epoch, error });
                self.node.stillness.note(&name, true);
                self.resting.insert(name.clone(), again);
            }
            Ended::Store(error) => return Err(error),
        }
        self.session.resign(name, epoch).await.or_else(unless_over)
    }

    fn tell(&self, event: &Event) {
        tell(&*self.node.observer, event);
    }

    /// Stops generating, lets the workers end in good order. Batons are given back at once: handlers may take long, and
    /// others can generate meanwhile. A store that is away is waited for, but not for ever: what it is not told runs again.
    async fn drain(mut self) -> Result<(), StoreError> {
        self.generators.shutdown().await;
        let session = self.session.clone();
        let resign = |(name, epoch): (&Name, u64)| session.resign(name.clone(), epoch);
        let mut resigning: FuturesUnordered<_> =
            self.running.iter().map(|(name, baton)| resign((name, baton.epoch))).collect();
        let mut beats = session.beats();
        let shutdown = self.shutdown.clone();
        // Asked to stop at once, it waits for its last report no longer than others would wait for a beat.
        let at_once = async {
            shutdown.at_once().await;
            tokio::time::sleep(self.node.lease).await;
        };
        tokio::pin!(at_once);
        let mut look = Instant::now() + LAST_WORDS;
        loop {
            tokio::select! {
                biased;
                () = session.over() => {
                    self.lose().await;
                    return Ok(());
                }
                () = &mut at_once => return Ok(()),
                () = tokio::time::sleep_until(look) => {
                    if self.executors.iter().all(|executor| executor.is_at_rest()) {
                        return Ok(());
                    }
                    look = Instant::now() + LOOK_AGAIN;
                }
                ended = self.workers.join_next() => match ended {
                    None => return Ok(()),
                    Some(Ok(Err(error))) => return Err(error),
                    Some(_) => {}
                },
                // One that fails is told of as held by the next beat, or leaves with the session.
                Some(_) = resigning.next() => {}
                changed = beats.changed() => {
                    look = Instant::now() + LAST_WORDS;
                    let beaten = beats.borrow_and_update().clone();
                    if changed.is_err() {
                        self.shutdown.now();
                    } else if beaten.as_ref().is_some_and(|beaten| beaten.stop == Some(Stop::Now)) {
                        self.ordered(Stop::Now);
                    }
                    beaten.iter().for_each(|beaten| self.cancel(&beaten.cancelled));
                    self.report_lost();
                    let held = beaten.iter().flat_map(|beaten| &beaten.held);
                    resigning.extend(held.map(|(name, epoch)| resign((name, *epoch))));
                }
            }
        }
    }
}

/// A session that is over is noticed elsewhere.
fn unless_over(error: StoreError) -> Result<(), StoreError> {
    match error {
        StoreError::Refused(Refusal::Stale) => Ok(()),
        error => Err(error),
    }
}
