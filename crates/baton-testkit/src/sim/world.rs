//! A simulated fleet at work: real nodes over the memory store, in time that jumps to the next thing that happens.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use baton::{
    CallOptions, Event, Fleet, FleetOptions, Name, NodeError, Observer, Role, Shutdown,
    store::{
        Clock, MemoryStore, Order,
        session::{Environment, SessionOptions},
    },
};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};

use super::{
    assembly::assemble,
    body::Body,
    chance::drawn,
    end,
    known::{Handlers, KnownNode},
    link::{Link, Switch},
    report::{Failed, Summary},
    rules,
    scene::{Scene, Shared, number},
    topology::{NodePlan, SimFault, Topology},
    witness::{Life, Witness},
};
use crate::soak::random::Random;

/// Store time at the beginning.
const START_MS: u64 = 1_700_000_000_000;
/// Each so many a held queue is purged before it goes on.
const PURGED: u64 = 2;

/// One run.
pub(super) struct World {
    pub(super) topology: Arc<Topology>,
    pub(super) scene: Shared,
    pub(super) store: MemoryStore,
    pub(super) began: Instant,
    /// Shows the watchman how far the fleet is.
    time: Arc<AtomicU64>,
    stall: Arc<Switch>,
    nodes: Mutex<Vec<Option<Running>>>,
}

/// A node that runs.
struct Running {
    shutdown: Shutdown,
    link: Link,
    task: JoinHandle<()>,
}

impl World {
    pub(super) fn new(topology: Topology, time: Arc<AtomicU64>) -> Arc<Self> {
        let began = Instant::now();
        let clock = Clock::read_by(move || START_MS + u64::try_from(began.elapsed().as_millis()).unwrap_or(0));
        let mut scene = Scene::new(&topology);
        scene.nodes = topology.nodes.iter().map(known_node).collect();
        let nodes = Mutex::new(topology.nodes.iter().map(|_| None).collect());
        Arc::new(Self {
            topology: Arc::new(topology),
            scene: Arc::new(Mutex::new(scene)),
            store: MemoryStore::new(clock),
            began,
            time,
            stall: Arc::default(),
            nodes,
        })
    }

    /// Runs it to its end.
    pub(super) async fn run(self: Arc<Self>) -> Result<Summary, Failed> {
        for node in 0..self.topology.nodes.len() {
            let world = self.clone();
            tokio::spawn(async move {
                world.until(world.topology.nodes[node].starts_ms).await;
                world.start(node);
            });
        }
        tokio::spawn(self.clone().push_all());
        tokio::spawn(self.clone().throw_all());
        let length = self.topology.length_ms;
        self.watch(|now| now >= length).await?;
        end::play_out(&self).await
    }

    async fn until(&self, at_ms: u64) {
        sleep_until(self.began + Duration::from_millis(at_ms)).await;
    }

    /// Looks at the rules until `done`.
    pub(super) async fn watch(&self, mut done: impl FnMut(u64) -> bool) -> Result<(), Failed> {
        loop {
            let now = {
                let mut scene = self.scene.lock().unwrap();
                rules::look(&mut scene, &self.topology);
                if let Some(broken) = &scene.broken {
                    return Err(Failed::new(&self.topology, broken, &scene.journal));
                }
                scene.now()
            };
            self.time.store(now + 1, Ordering::Relaxed);
            if done(now) {
                return Ok(());
            }
            let next = (now / rules::EVERY_MS + 1) * rules::EVERY_MS;
            self.until(next).await;
        }
    }

    pub(super) fn link(&self, caller: Option<(usize, u32)>, part: u64) -> Link {
        let random = Random::part(self.topology.seed, part);
        Link::new(self.scene.clone(), self.store.clone(), caller, self.stall.clone(), random)
    }

    pub(super) fn fleet(&self, link: Link, part: u64) -> Fleet {
        let environment = Environment::simulated(drawn(self.topology.seed, &[part], 0));
        let options = FleetOptions {
            session: SessionOptions { environment, ..SessionOptions::client() },
            wait: Duration::from_secs(3_600),
            ..FleetOptions::new(Name::new("simulated").unwrap())
        };
        Fleet::over(Arc::new(link), options)
    }

    /// Starts a life of a node.
    pub(super) fn start(self: &Arc<Self>, nth: usize) {
        let mut scene = self.scene.lock().unwrap();
        if scene.nodes[nth].alive {
            return;
        }
        // What a finished run had, a node that comes back has not.
        let plan = self.topology.nodes.get(nth).cloned().unwrap_or_else(|| end::sweeper(&self.topology));
        let life = scene.nodes[nth].life + 1;
        scene.nodes[nth] = KnownNode { life, alive: true, ..known_node(&plan) };
        scene.note(Some(nth), "starts", String::new());
        drop(scene);
        let part = 1_000 + nth as u64 * 100 + u64::from(life);
        let link = self.link(Some((nth, life)), part);
        let told = Told { scene: self.scene.clone(), node: nth };
        let witness: Arc<dyn Witness> = self.scene.clone();
        let node = self.fleet(link.clone(), part).node().observed_by(Arc::new(told));
        let node = assemble(node, &self.topology, &plan, Life { node: nth, life }, &witness);
        let (shutdown, world) = (Shutdown::new(), self.clone());
        let running = node.run(shutdown.clone());
        let task = tokio::spawn(async move {
            let ended = running.await;
            world.ended(nth, life, ended);
        });
        let mut nodes = self.nodes.lock().unwrap();
        if nodes.len() <= nth {
            nodes.resize_with(nth + 1, || None);
        }
        nodes[nth] = Some(Running { shutdown, link, task });
    }

    /// A node has ended by itself.
    fn ended(&self, nth: usize, life: u32, ended: Result<(), NodeError>) {
        let mut scene = self.scene.lock().unwrap();
        scene.note(Some(nth), "has ended", format!("{ended:?}"));
        let node = &mut scene.nodes[nth];
        if node.life != life {
            return;
        }
        node.alive = false;
        if ended.is_err() || node.leaving_since.is_none() {
            scene.violated(format!("a node ends only when it is asked to: node {nth} ended with {ended:?}"), None);
        }
    }

    /// Asks a node to finish and leave.
    pub(super) fn drain(&self, nth: usize) {
        let nodes = self.nodes.lock().unwrap();
        let mut scene = self.scene.lock().unwrap();
        let now = scene.now();
        if let Some(Some(running)) = nodes.get(nth)
            && scene.nodes[nth].alive
        {
            scene.note(Some(nth), "is asked to finish", String::new());
            scene.nodes[nth].leaving_since.get_or_insert(now);
            drop(scene);
            running.shutdown.graceful();
        }
    }

    /// Ends a node from one moment to the next.
    pub(super) fn kill(&self, nth: usize) {
        let Some(Running { link, task, .. }) = self.nodes.lock().unwrap()[nth].take() else { return };
        {
            let mut scene = self.scene.lock().unwrap();
            scene.note(Some(nth), "is killed", String::new());
            let now = scene.now();
            for known in scene.sources.iter_mut().filter(|known| known.open.iter().any(|(open, _)| *open == nth)) {
                known.open.retain(|(open, _)| *open != nth);
                known.generated_ms = now;
            }
            scene.nodes[nth].alive = false;
        }
        link.cut();
        task.abort();
    }

    async fn back(self: &Arc<Self>, nth: usize, after: Option<u64>) {
        let Some(after) = after else { return };
        sleep(Duration::from_millis(after)).await;
        while self.scene.lock().unwrap().nodes[nth].alive {
            sleep(Duration::from_millis(100)).await;
        }
        if !self.scene.lock().unwrap().winding_down {
            self.start(nth);
        }
    }

    /// Pushes what comes from outside.
    async fn push_all(self: Arc<Self>) {
        let fleet = self.fleet(self.link(None, 2), 2);
        for (nth, push) in self.topology.pushes.iter().enumerate() {
            self.until(push.at_ms).await;
            let (fleet, bodies) = (fleet.clone(), Body::pushed_at(&self.topology, nth));
            let (queue, cancel_after) = (push.queue, self.call_at(nth));
            tokio::spawn(async move {
                let queue = fleet.queue::<Body>(&format!("q{queue}"));
                match &*bodies {
                    [one] if cancel_after.is_some() => {
                        let call = queue.call(one, &CallOptions::default()).await.unwrap();
                        if let Some(Some(pause)) = cancel_after {
                            tokio::time::sleep(pause).await;
                            // One whose link is cut for good cancels nothing.
                            fleet.cancel_call(&call).await.ok();
                        }
                    }
                    [one] => queue.push(one).await.map(|_| ()).unwrap(),
                    many => queue.push_all(many).await.map(|_| ()).unwrap(),
                }
            });
        }
    }

    /// Whether the `nth` push is a call, if it is of one message, and after how long it is cancelled: in a sixth of the
    /// fleets every second one is, and most of these are cancelled.
    fn call_at(&self, nth: usize) -> Option<Option<Duration>> {
        let seed = self.topology.seed;
        let drawn = drawn(seed, &[77, nth as u64], 0);
        let is_call = seed.is_multiple_of(6) && drawn.is_multiple_of(2);
        is_call.then(|| (!(drawn / 2).is_multiple_of(4)).then(|| Duration::from_millis(drawn / 8 % 1_500)))
    }

    /// Throws the faults.
    async fn throw_all(self: Arc<Self>) {
        for fault in &self.topology.faults {
            self.until(fault.at_ms).await;
            let (world, fault) = (self.clone(), fault.fault);
            tokio::spawn(async move { world.throw(fault).await });
        }
    }

    async fn throw(self: Arc<Self>, fault: SimFault) {
        let link = |nth: usize| self.nodes.lock().unwrap()[nth].as_ref().map(|running| running.link.clone());
        let millis = Duration::from_millis;
        self.scene.lock().unwrap().note(None, "fault:", format!("{fault:?}"));
        match fault {
            SimFault::Kill { node, back_after } => {
                self.kill(node);
                self.back(node, back_after).await;
            }
            SimFault::Drain { node, back_after } => {
                self.drain(node);
                self.back(node, back_after).await;
            }
            SimFault::Pause { node, ms } => {
                let Some(link) = link(node) else { return };
                let life = self.paused(node, None);
                link.pause(true);
                sleep(millis(ms)).await;
                self.paused(node, Some(life));
                link.pause(false);
            }
            SimFault::Lossy { node, ms, per_mille } => {
                let Some(link) = link(node) else { return };
                link.set_weather(|weather| weather.lost_per_mille = per_mille);
                sleep(millis(ms)).await;
                link.set_weather(|weather| weather.lost_per_mille = 0);
            }
            SimFault::Late { node, ms, per_mille, delay } => {
                let Some(link) = link(node) else { return };
                link.set_weather(|weather| (weather.late_per_mille, weather.late_ms) = (per_mille, delay));
                sleep(millis(ms)).await;
                link.set_weather(|weather| weather.late_per_mille = 0);
            }
            SimFault::Stall { ms } => {
                if self.stall.turn(true) {
                    return;
                }
                self.scene.lock().unwrap().stalled = true;
                sleep(millis(ms)).await;
                let mut scene = self.scene.lock().unwrap();
                scene.stalled = false;
                scene.clear_since = scene.now();
                drop(scene);
                self.stall.turn(false);
            }
            SimFault::HoldQueue { queue, ms } => {
                let fleet = self.fleet(self.link(None, 3), 3);
                let name = Name::new(&format!("q{queue}")).unwrap();
                fleet.ask(Order::Pause(name.clone())).await.unwrap();
                sleep(millis(ms)).await;
                if ms % PURGED == 0 {
                    self.purge(&fleet, &name).await;
                }
                fleet.ask(Order::Resume(name)).await.unwrap();
            }
        }
    }

    /// Removes what waits in a queue.
    async fn purge(&self, fleet: &Fleet, name: &Name) {
        let (session, mut upto) = (fleet.session().await.unwrap(), None);
        loop {
            let purged = session.purge(name.clone(), upto, false).await.unwrap();
            upto = Some(purged.upto);
            if !purged.left {
                break;
            }
        }
        session.leave().await.unwrap();
    }

    /// Notes that a node is held (`None`), or that the life that was held goes on.
    fn paused(&self, nth: usize, ends: Option<u32>) -> u32 {
        let mut scene = self.scene.lock().unwrap();
        let now = scene.now();
        let node = &mut scene.nodes[nth];
        if ends.is_none_or(|life| life == node.life) {
            node.paused = ends.is_none();
            node.disturbed_until = if ends.is_none() { node.disturbed_until } else { now };
        }
        for known in scene.sources.iter_mut().filter(|known| known.open.iter().any(|(open, _)| *open == nth)) {
            known.generated_ms = now;
        }
        scene.nodes[nth].life
    }
}

/// A node of this plan before it starts.
pub(super) fn known_node(plan: &NodePlan) -> KnownNode {
    let works = plan.works.iter().filter(|_| plan.role != Role::Generator);
    KnownNode {
        role: plan.role,
        lease_ms: plan.lease_ms,
        heartbeat_ms: plan.heartbeat_ms,
        offers: plan.offers.clone(),
        handlers: works
            .map(|&(queue, concurrency)| (queue, Handlers { concurrency, running: 0, free_since: 0 }))
            .collect(),
        life: 0,
        alive: false,
        paused: false,
        leaving_since: None,
        session: None,
        joined_ms: 0,
        disturbed_until: 0,
        busy_until: 0,
        pushed_ms: 0,
        calls: 0,
    }
}

/// Notes what nodes tell people.
struct Told {
    scene: Shared,
    node: usize,
}

impl Observer for Told {
    fn on_event(&self, event: &Event) {
        if event.is_routine() {
            return;
        }
        let mut scene = self.scene.lock().unwrap();
        scene.note(Some(self.node), "says:", event.to_string());
        let now = scene.now();
        let source = match event {
            Event::SourceFailed { source, .. } | Event::SourceEnded { source, .. } => number(source.as_str()),
            _ => None,
        };
        let Some(known) = source.and_then(|source| scene.sources.get_mut(source)) else { return };
        if matches!(event, Event::SourceFailed { .. }) {
            // Its rest begins when the node hears of the failure, which one that was paused does late.
            known.failed_ms = Some(now);
        } else if !known.ended {
            let node = self.node;
            scene.violated(format!("a source is told to have ended when it has: node {node} says {event}"), None);
        }
    }
}
