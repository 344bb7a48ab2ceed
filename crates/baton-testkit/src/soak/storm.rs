//! The storm: faults from the deck, thrown one after the other for as long as the soak lasts.
//!
//! Blows to the generator and to the server are followed until the fleet pushes again before the next fault is
//! thrown. So a measured gap is that of one blow under a live store, and faults that bring everything to a stand
//! do not hide behind each other. Stopped workers, lost replies and replays go on all the while.

use std::{sync::Arc, time::Duration};

use baton::store::{Order, Store, ask};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use super::{
    faults::{Deck, Fault, Fired, ROUND_SECONDS},
    findings::Findings,
    launch::SPARED,
    nodes::{Blow, Nodes},
    observer::{Gap, Observer, Sight},
    random::Random,
    target::Target,
};

/// How long anything may take to come back.
const RECOVERY: Duration = Duration::from_secs(20);
/// What is taken away from half of the nodes, one at a time, and for how long. The right to functions stays: the proxy loses
/// replies to calls of these.
const RIGHTS: [&str; 7] = ["unlink", "hset", "setrange", "rpush", "lpop", "@sortedset", "@list"];
const AWAY: Duration = Duration::from_millis(700);
/// Generators killed under a deep backlog.
const DEEP_KILLS: usize = 6;

/// How long the source stood still after which kind of blow.
#[derive(Debug, Default)]
pub struct Stillness {
    /// After kill -9 of the generator.
    pub killed: Vec<Gap>,
    /// After SIGSTOP of the generator.
    pub stopped: Vec<Gap>,
    /// After kill -9 of the server, until the next push.
    pub restarted: Vec<Duration>,
    /// After DEBUG SLEEP began, until the next push.
    pub stalled: Vec<Duration>,
}

/// What the storm is thrown at and with.
pub struct Storm<'a> {
    /// The store's side.
    pub target: &'a mut Target,
    /// The nodes.
    pub nodes: Arc<Nodes>,
    /// The observer.
    pub observer: &'a Observer,
    /// A direct way to the store, for orders.
    pub store: Arc<dyn Store>,
    /// Counts what fired.
    pub fired: Fired,
    /// Gets what must not be.
    pub findings: Findings,
    /// The choices.
    pub random: Random,
    /// A backlog as deep as generators are to be killed under; 0 for none.
    pub deep: u64,
    /// Bytes at which the queue is full.
    pub max_queue_bytes: u64,
}

impl Storm<'_> {
    /// Throws faults for so many seconds.
    pub async fn rage(mut self, mut deck: Deck, seconds: u64) -> Stillness {
        let begin = Instant::now();
        let end = begin + Duration::from_secs(seconds);
        let beat = Duration::from_secs(seconds.min(ROUND_SECONDS)).div_f64(deck.round_len() as f64);
        let mut still = Stillness::default();
        let mut stops = JoinSet::new();
        let mut deep = self.deep > 0;
        let mut due = begin;
        while Instant::now() < end {
            if deep && begin.elapsed() > Duration::from_secs(seconds) / 2 {
                deep = false;
                self.go_deep(&mut still).await;
                due = Instant::now();
            }
            due += beat;
            sleep_until(due.min(end)).await;
            match deck.deal() {
                Fault::KillGenerator => self.kill_generator(&mut still).await,
                Fault::StopGenerator => self.stop_generator(&mut still, &mut stops).await,
                Fault::KillWorker => {
                    if let Some(worker) = self.worker()
                        && self.nodes.strike(worker, Blow::Kill).await
                    {
                        self.fired.note(Fault::KillWorker);
                    }
                }
                Fault::StopWorker => {
                    if let Some(worker) = self.worker() {
                        self.stop(worker, Fault::StopWorker, &mut stops).await;
                    }
                }
                Fault::DebugSleep => {
                    let time = self.random.millis(500..1_500);
                    let at = Instant::now();
                    let slept = self.target.sleep(time).await;
                    self.went_on(Fault::DebugSleep, slept, at, &mut still.stalled).await;
                }
                Fault::KillServer => {
                    let pause = self.random.millis(0..300);
                    let at = Instant::now();
                    let killed = self.target.kill_server(pause).await;
                    self.went_on(Fault::KillServer, killed, at, &mut still.restarted).await;
                }
                Fault::ClientKill => self.count(Fault::ClientKill, self.target.cut_clients().await),
                Fault::FunctionFlush => self.count(Fault::FunctionFlush, self.target.flush_functions().await),
                Fault::TakeRight => self.take_right(&mut stops).await,
                Fault::LoseReply => self.target.lose_reply(),
                // The replayer's.
                Fault::ReplayToken | Fault::ReplaySpent | Fault::ReplayBaton => {}
            }
        }
        // Every process that was stopped goes on before the fleet is asked to finish.
        while stops.join_next().await.is_some() {}
        still
    }

    async fn kill_generator(&self, still: &mut Stillness) {
        let Some((before, slot)) = self.holder().await else { return };
        let at = Instant::now();
        if !self.nodes.strike(slot, Blow::Kill).await {
            return;
        }
        self.fired.note(Fault::KillGenerator);
        match self.observer.gap(&before, at, RECOVERY).await {
            Some(gap) => still.killed.push(gap),
            None => self.findings.note(format!("nobody pushed within {RECOVERY:?} of the generator's death")),
        }
    }

    async fn stop_generator(&self, still: &mut Stillness, stops: &mut JoinSet<()>) {
        let Some((before, slot)) = self.holder().await else { return };
        let at = Instant::now();
        if !self.stop(slot, Fault::StopGenerator, stops).await {
            return;
        }
        // Stopped inside a write transaction it holds everybody up, keeps its session, and goes on itself.
        // On a machine that is too busy to find it out in time, it goes on too.
        let may_go_on = self.target.is_file();
        let limit = if may_go_on { Duration::from_secs(4) } else { RECOVERY };
        match self.observer.gap(&before, at, limit).await {
            Some(gap) => still.stopped.push(gap),
            None if may_go_on || self.observer.is_pushed(RECOVERY).await => {}
            None => self.findings.note(format!("nobody pushed within {RECOVERY:?} of the generator being stopped")),
        }
    }

    /// Takes a right away for a moment. Nodes that lack it end with the reason, and are started again.
    async fn take_right(&mut self, stops: &mut JoinSet<()>) {
        let Some(right) = self.random.pick(&RIGHTS).copied() else { return };
        self.nodes.expect_failures(true);
        let taken = self.target.grant(right, false).await;
        sleep(AWAY).await;
        let given = self.target.grant(right, true).await;
        self.count(Fault::TakeRight, taken.and(given));
        let nodes = self.nodes.clone();
        // One that heard of it last has its claims to hand back first.
        let joining = async move {
            sleep(RECOVERY / 4).await;
            nodes.expect_failures(false);
        };
        stops.spawn(joining);
    }

    /// Stops a node past its lease; it goes on by itself, at once or, where it may hold everybody up, before this
    /// returns.
    async fn stop(&self, slot: usize, fault: Fault, stops: &mut JoinSet<()>) -> bool {
        // Drawn from the clock of the run, not from the sequence: what follows must not depend on who was stopped.
        let time = Duration::from_millis(1_300 + slot as u64 * 100);
        if !self.nodes.strike(slot, Blow::Stop).await {
            return false;
        }
        self.fired.note(fault);
        let nodes = self.nodes.clone();
        let going_on = async move {
            sleep(time).await;
            nodes.strike(slot, Blow::Continue).await;
        };
        if self.target.is_file() && fault == Fault::StopWorker {
            going_on.await;
        } else {
            stops.spawn(going_on);
        }
        true
    }

    /// Lets the queue fill up while nobody works, and kills generators in front of it.
    async fn go_deep(&self, still: &mut Stillness) {
        let pause = |pause: bool| {
            let queue = super::queue();
            let order = if pause { Order::Pause(queue) } else { Order::Resume(queue) };
            let store = self.store.clone();
            async move {
                // Repeated over whatever breaks the connection just now.
                for _ in 0..500 {
                    if ask(&*store, order.clone()).await.is_ok() {
                        return;
                    }
                    sleep(Duration::from_millis(20)).await;
                }
            }
        };
        let full = self.max_queue_bytes / 10;
        for _ in 0..DEEP_KILLS {
            // A full queue takes no push, however soon the successor is there: it must have room for a while.
            if self.observer.latest().is_some_and(|sight| sight.books().bytes > full * 8) {
                pause(false).await;
                self.observer.see(RECOVERY, |sight| sight.books().bytes < full * 6).await;
            }
            pause(true).await;
            let deep = |sight: &Sight| sight.books().ready >= self.deep || sight.books().bytes > full * 9;
            if self.observer.see(Duration::from_secs(60), deep).await.is_none() {
                self.findings.note(format!("no backlog of {} messages came about in a minute", self.deep));
                break;
            }
            self.kill_generator(still).await;
        }
        pause(false).await;
    }

    /// The holder and its process, once there is one.
    async fn holder(&self) -> Option<(Sight, usize)> {
        let slot = |sight: &Sight| sight.holder_pid().and_then(|pid| self.nodes.by_pid(pid));
        let sight = self.observer.see(RECOVERY, |sight| slot(sight).is_some()).await;
        let Some(sight) = sight else {
            self.findings.note(format!("no generator for {RECOVERY:?}"));
            return None;
        };
        let slot = slot(&sight)?;
        Some((sight, slot))
    }

    /// A running node that does not hold the baton and may be struck.
    fn worker(&mut self) -> Option<usize> {
        let holder = self.observer.latest().and_then(|sight| sight.holder_pid());
        let holder = holder.and_then(|pid| self.nodes.by_pid(pid));
        let running: Vec<usize> = self.nodes.running(holder).into_iter().filter(|slot| *slot != SPARED).collect();
        self.random.pick(&running).copied()
    }

    /// Counts a blow to the server and waits until the fleet pushes again.
    async fn went_on(&self, fault: Fault, struck: Result<(), String>, at: Instant, still: &mut Vec<Duration>) {
        let good = struck.is_ok();
        self.count(fault, struck);
        let mut pushed = None;
        let grown = self.observer.see(RECOVERY, |sight| {
            let now = sight.books().pushed;
            sight.source().is_some_and(|source| source.holder.is_some()) && now > *pushed.get_or_insert(now)
        });
        match grown.await {
            Some(sight) if good => still.push(sight.at - at),
            Some(_) => {}
            None => self.findings.note(format!("nobody pushed within {RECOVERY:?} of {}", fault.name())),
        }
    }

    fn count(&self, fault: Fault, fired: Result<(), String>) {
        match fired {
            Ok(()) => self.fired.note(fault),
            Err(error) => self.findings.note(format!("{} could not be thrown: {error}", fault.name())),
        }
    }
}
