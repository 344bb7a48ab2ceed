//! A node: joins, works, generates when a baton is due, joins anew when it was forgotten, leaves in good order.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use serde::de::DeserializeOwned;
use tokio::runtime::Handle;
use tracing::{Instrument as _, Span as TraceSpan};

use super::{
    Fleet,
    blocking::Blocking,
    event::Event,
    handler::{AnyHandler, Context, Done, Failure, Handler, Typed},
    io_thread,
    metrics::Metrics,
    node_error::NodeError,
    observer::{Guarded, Nobody, Observer, tell},
    outage::Outage,
    permits::Permits,
    policy::QueuePolicy,
    service::Service,
    shutdown::Shutdown,
    source::Source,
    stillness::Stillness,
    traces,
};
use crate::{
    drivers,
    message::{InvalidMessage, Name},
    store::{
        MAX_LOTS, Rewind, StoreError,
        session::{Session, host_name},
    },
};

/// What a node is willing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Works, and generates when a baton is due. While generating keeps it busy it leaves a queue to nodes that hold no
    /// baton, as long as they keep up with it.
    #[default]
    Auto,
    /// Only works.
    Worker,
    /// Only generates.
    Generator,
}

/// A source as a node offers it.
pub(super) struct Offered {
    pub(super) name: Name,
    pub(super) queue: Name,
    pub(super) source: Arc<dyn Source>,
}

/// A queue as a node works it.
#[derive(Clone)]
pub(super) struct Worked {
    pub(super) queue: Name,
    pub(super) handler: Arc<dyn AnyHandler>,
    pub(super) policy: QueuePolicy,
    /// Shared by all sessions of the node.
    pub(super) permits: Arc<Permits>,
}

impl Worked {
    pub(super) fn new(queue: Name, handler: Arc<dyn AnyHandler>, policy: QueuePolicy) -> Self {
        let permits = Permits::new(policy.concurrency);
        Self { queue, handler, policy, permits }
    }
}

/// A node of a fleet, put together and then run.
pub struct Node {
    pub(super) fleet: Fleet,
    pub(super) role: Role,
    pub(super) lease: Duration,
    pub(super) heartbeat: Duration,
    pub(super) max_queue_bytes: u64,
    /// See [`Node::beside_workers`].
    pub(super) cores: Option<u32>,
    pub(super) offered: Vec<Offered>,
    pub(super) worked: Vec<Worked>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) stillness: Stillness,
    policy: QueuePolicy,
    invalid: Option<InvalidMessage>,
}

impl Node {
    pub(super) fn new(fleet: Fleet) -> Self {
        Self {
            fleet,
            role: Role::Auto,
            lease: Duration::from_secs(1),
            heartbeat: Duration::from_millis(200),
            max_queue_bytes: 64 << 20,
            cores: None,
            offered: Vec::new(),
            worked: Vec::new(),
            observer: Arc::new(Nobody),
            stillness: Stillness::default(),
            policy: QueuePolicy::default(),
            invalid: None,
        }
    }

    /// What it is willing to do.
    #[must_use]
    pub const fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// Silence after which others take its work, 1 s by default, and how often it beats, at most a third of that: 200 ms.
    #[must_use]
    pub const fn lease(mut self, lease: Duration, heartbeat: Duration) -> Self {
        self.lease = lease;
        self.heartbeat = heartbeat;
        self
    }

    /// Bytes a queue may hold before sources have to wait; 64 MiB by default.
    #[must_use]
    pub const fn max_queue_bytes(mut self, bytes: u64) -> Self {
        self.max_queue_bytes = bytes;
        self
    }

    /// Tells with its beats that this process starts worker processes by load on a machine of so many cores: those that do
    /// share the load by them. See [`Spawner`](crate::admin::Spawner).
    #[must_use]
    pub const fn beside_workers(mut self, cores: u32) -> Self {
        self.cores = Some(cores);
        self
    }

    /// How handlers added from here on are run.
    #[must_use]
    pub fn policy(mut self, policy: QueuePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Offers a source whose messages go to the queue `messages`.
    #[must_use]
    pub fn source(self, name: &str, source: impl Source) -> Self {
        self.source_into(DEFAULT_QUEUE, name, source)
    }

    /// Offers a source whose messages go to this queue.
    #[must_use]
    pub fn source_into(mut self, queue: &str, name: &str, source: impl Source) -> Self {
        match (Name::new(name), Name::new(queue)) {
            (Ok(name), Ok(queue)) => self.offered.push(Offered { name, queue, source: Arc::new(source) }),
            (Err(invalid), _) | (_, Err(invalid)) => self.invalid = Some(invalid),
        }
        self
    }

    /// Runs an async function over the bodies of a queue. One that captures something clones it for each message:
    /// `move |job, context| { let pool = pool.clone(); async move { … } }`.
    ///
    /// Its error is a [`Failure`]: `?` makes one of any [`std::error::Error`]; of anything else that can be printed, as
    /// boxed errors, [`Failure::new`] does.
    #[must_use]
    pub fn handler<T, F, Fut>(self, queue: &str, function: F) -> Self
    where
        T: DeserializeOwned + 'static,
        F: Fn(T, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Done, Failure>> + Send + 'static,
    {
        self.handle_with(queue, Typed::new(function))
    }

    /// Runs a function over the bodies of a queue that may block its thread: it computes, or waits in ways that are not
    /// async. Each message has a thread of the node's runtime for itself
    /// ([`spawn_blocking`](tokio::task::spawn_blocking)), as many at once as the policy's concurrency says; beats, other
    /// queues and the rest of the program go on meanwhile, however long it takes.
    ///
    /// Nobody can break a function off. Past its timeout, or when the node stops at once, its message is given up and
    /// its thread stays taken until it returns: one that may take long should look at [`Context::is_cancelled`].
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use baton::{Context, Done, testing::TestFleet};
    ///
    /// let fleet = TestFleet::new();
    /// fleet.queue::<u64>("primes").push(&1_000_003).await?;
    /// let node = fleet.node().handler_blocking("primes", |number: u64, context: Context| {
    ///     let mut factors = (2..number).take_while(|factor| factor * factor <= number && !context.is_cancelled());
    ///     Ok(Done::with(&!factors.any(|factor| number % factor == 0))?)
    /// });
    /// assert_eq!(fleet.settle(node).await?.done, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn handler_blocking<T, F>(self, queue: &str, function: F) -> Self
    where
        T: DeserializeOwned + 'static,
        F: Fn(T, Context) -> Result<Done, Failure> + Send + Sync + 'static,
    {
        self.work(queue, Arc::new(Blocking::new(function)))
    }

    /// Runs a handler over the messages of a queue.
    #[must_use]
    pub fn handle_with(self, queue: &str, handler: impl Handler) -> Self {
        self.work(queue, Arc::new(handler))
    }

    fn work(mut self, queue: &str, handler: Arc<dyn AnyHandler>) -> Self {
        let policy = self.policy.clone();
        match Name::new(queue) {
            Ok(queue) => self.worked.push(Worked::new(queue, handler, policy)),
            Err(invalid) => self.invalid = Some(invalid),
        }
        self
    }

    /// Tells an observer what the node does. Without one, it is in the events of `tracing` alone.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Arc::new(Guarded::new(observer));
        self
    }

    /// Starts its sources over: needs that nobody runs them.
    ///
    /// # Errors
    /// [`Refusal::BatonHeld`](crate::store::Refusal::BatonHeld) while a live session holds a baton, or the store's failure.
    pub async fn rewind(&self) -> Result<(), NodeError> {
        for offered in &self.offered {
            self.fleet.ask(Rewind { source: offered.name.clone(), goes_on: false }).await?;
        }
        Ok(())
    }

    /// Runs until it is asked to stop, through every outage of the store. Its handlers and sources run in the runtime
    /// this is called in, on all its threads; the store is called from a thread of its own, which all nodes of a process
    /// share.
    ///
    /// # Errors
    /// [`NodeError`] if the node was put together wrongly, the runtime has no timers or the store refuses the node. A store
    /// that is away is waited for.
    ///
    /// # Cancel safety
    /// A dropped node leaves nothing behind but its session, which others find out after its lease. To have its
    /// claims handed back at once, ask it to stop by `shutdown`.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), NodeError> {
        self.check()?;
        drivers::timers_here().map_err(StoreError::from)?;
        let (store, observer) = (self.fleet.store().clone(), self.observer.clone());
        store.hear(Arc::new(move |event| tell(&*observer, &Event::Store(event.clone()))));
        let (environment, home) = (self.fleet.environment().clone(), Handle::current());
        let ended = io_thread::run(&environment, self.serve(shutdown, home).instrument(TraceSpan::current())).await;
        store.close().await;
        ended?
    }

    /// Joins and serves, again and again; handlers and sources run in `home`.
    async fn serve(mut self, shutdown: Shutdown, home: Handle) -> Result<(), NodeError> {
        // Its connections live where it is called from.
        self.fleet = self.fleet.apart();
        let metrics = Arc::new(Metrics::default());
        let (outage, shortage) = (Outage::new(self.observer.clone()), Outage::of_room(self.observer.clone()));
        let (mut former, mut incarnation) = (None, None);
        while shutdown.asked().is_none() {
            let session = match self.join(&home, &shutdown, former, &outage).await? {
                Some(session) => session,
                None => return Ok(()),
            };
            let _beats = Beats(session.clone());
            let id = session.id();
            let joined = Event::Joined { session: id, host: host_name(), pid: std::process::id() };
            tell(&*self.observer, &joined);
            former = Some(session.join_no());
            let before = incarnation.replace(session.incarnation());
            if before.is_some_and(|before| before != session.incarnation()) {
                tell(&*self.observer, &Event::StoreRenewed { session: id });
            }
            let service = Service::new(&self, session.clone(), shutdown.clone(), metrics.clone(), home.clone());
            let served = tokio::select! {
                biased;
                served = service.run().instrument(traces::session(id)) => served,
                () = outage.watch(&session) => Ok(()),
                () = shortage.watch(&session) => Ok(()),
            };
            if session.is_over() {
                tell(&*self.observer, &Event::SessionOver { session: id });
                if session.has_broken_off() {
                    tokio::time::sleep(AFTER_A_PANIC).await;
                }
                continue;
            }
            // The lease does the rest if the store is away.
            let left = tokio::time::timeout(self.lease, session.leave()).await;
            if shutdown.asked().is_none() {
                served?;
            }
            let left = match left {
                Ok(Ok(())) => Event::Left { session: id },
                _ => Event::LeftUnheard { session: id },
            };
            tell(&*self.observer, &left);
        }
        Ok(())
    }

    /// Refuses a node that would do nothing, or not what was meant.
    fn check(&self) -> Result<(), NodeError> {
        if let Some(invalid) = &self.invalid {
            return Err(invalid.clone().into());
        }
        if self.queues().next().is_none() && self.sources().next().is_none() {
            return Err(NodeError::NothingToDo);
        }
        for (what, count) in [("queues", self.queues().count()), ("sources", self.sources().count())] {
            if count > MAX_LOTS {
                return Err(NodeError::TooMany { what, count, most: MAX_LOTS });
            }
        }
        if let Some(idle) = self.worked.iter().find(|worked| worked.policy.concurrency == 0) {
            return Err(NodeError::NoConcurrency(idle.queue.clone()));
        }
        if let Some(queue) = twice(self.worked.iter().map(|worked| &worked.queue)) {
            return Err(NodeError::QueueTwice(queue));
        }
        match twice(self.offered.iter().map(|offered| &offered.name)) {
            Some(source) => Err(NodeError::SourceTwice(source)),
            None => Ok(()),
        }
    }

    /// The queues it works for in its role.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &Name> {
        self.worked.iter().filter(|_| self.role != Role::Generator).map(|worked| &worked.queue)
    }

    /// The sources it generates in its role.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Name> {
        self.offered.iter().filter(|_| self.role != Role::Worker).map(|offered| &offered.name)
    }

    #[cfg(feature = "testing")]
    /// What its sources are about.
    pub(crate) fn stillness(&self) -> Stillness {
        self.stillness.clone()
    }
}

/// The beats of a session, which end with its node: what holds the session beyond that, as a handler that works on, must not
/// keep its messages from others.
struct Beats(Session);

impl Drop for Beats {
    fn drop(&mut self) {
        self.0.heart().stop();
    }
}

/// How long a node waits before it joins again after a task of its session panicked: the next one may too.
const AFTER_A_PANIC: Duration = Duration::from_millis(100);

/// The first name that was named before.
fn twice<'a>(names: impl Iterator<Item = &'a Name>) -> Option<Name> {
    let mut seen = BTreeSet::new();
    let mut names = names;
    names.find(|name| !seen.insert(*name)).cloned()
}

/// The queue where none is given.
pub const DEFAULT_QUEUE: &str = "messages";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{builtin::Tick, store::MemoryStore};

    /// How a node over an empty store ends by itself.
    async fn refusal(put_together: impl Fn(Node) -> Node) -> NodeError {
        let options = super::super::FleetOptions::new(Name::new("test").unwrap());
        let node = put_together(Fleet::over(Arc::new(MemoryStore::default()), options).node());
        let ended = tokio::time::timeout(Duration::from_secs(10), node.run(Shutdown::new())).await;
        ended.expect("it is refused at once").unwrap_err()
    }

    fn with_handler(node: Node, queue: &str) -> Node {
        node.handler(queue, async |_: u32, _| Ok(Done::default()))
    }

    #[tokio::test]
    async fn a_node_that_would_not_do_what_was_meant_is_refused_at_once() {
        let named = |text| Name::new(text).unwrap();
        let idle = QueuePolicy { concurrency: 0, ..QueuePolicy::default() };
        assert_eq!(refusal(|node| node).await, NodeError::NothingToDo);
        assert_eq!(refusal(|node| with_handler(node.role(Role::Generator), "q")).await, NodeError::NothingToDo);
        assert_eq!(refusal(|node| node.role(Role::Worker).source("s", Tick::default())).await, NodeError::NothingToDo);
        let twice = refusal(|node| with_handler(with_handler(with_handler(node, "q"), "r"), "q")).await;
        assert_eq!(twice, NodeError::QueueTwice(named("q")));
        let twice = refusal(|node| node.source("s", Tick::default()).source_into("r", "s", Tick::default())).await;
        assert_eq!(twice, NodeError::SourceTwice(named("s")));
        let none = refusal(|node| with_handler(node.policy(idle.clone()), "q")).await;
        assert_eq!(none, NodeError::NoConcurrency(named("q")));
        let many = refusal(|node| (0..1_025).fold(node, |node, nth| with_handler(node, &format!("q{nth}")))).await;
        assert_eq!(many.to_string(), "this node has 1025 queues, 1024 at most: spread them over several nodes");
        assert!(matches!(refusal(|node| with_handler(node, "no name")).await, NodeError::Invalid(_)));
    }
}
