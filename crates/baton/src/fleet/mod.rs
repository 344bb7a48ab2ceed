//! A fleet as a program sees it: connect, push, and run a node.
//!
//! A [`Fleet`] is usable at once. Its first call joins the store as a visitor and waits for a store that is not up
//! yet; when the store has forgotten the visitor (it was cut off for too long, or the store restarted), the next
//! call joins anew.

mod activity;
mod blocking;
mod call;
mod emitting;
mod event;
mod follow;
mod generator;
mod handler;
mod io_thread;
mod joining;
mod metrics;
mod node;
mod node_error;
mod observer;
mod outage;
mod permits;
mod policy;
mod queue;
mod service;
mod shutdown;
mod source;
mod stillness;
mod store_signal;
mod threads;
mod traces;
mod worker;

use std::{sync::Arc, time::Duration};

use tokio::{sync::Mutex, time::Instant};

pub use call::{CallOptions, CallStatus};
pub use emitting::EmitError;
pub use event::Event;
pub use follow::{Chunk, Follow, FollowError, Followed, Since};
pub use handler::{Context, Done, Failure, Handler, Message};
pub use metrics::{Handled, Report};
pub use node::{DEFAULT_QUEUE, Node, Role};
pub use node_error::NodeError;
pub use observer::Observer;
pub use policy::QueuePolicy;
pub use queue::{PushAllError, PushError, Queue, ResultError};
pub use shutdown::Shutdown;
pub use source::{Batch, Flow, Source, SourceError, Stream};
#[cfg(feature = "testing")]
pub(crate) use stillness::Stillness;
pub(crate) use store_signal::StoreSignal;
#[cfg(feature = "testing")]
pub use worker::trial;

pub use crate::store::BoxFuture;

use crate::{
    backoff::Backoff,
    drivers,
    message::Name,
    moment,
    store::{
        self, Clock, InvalidUrl, Store, StoreError, StoreUrl,
        session::{Environment, Session, SessionOptions},
    },
};

/// How a program takes part in a fleet.
#[derive(Debug, Clone)]
pub struct FleetOptions {
    /// The fleet's name; [`Fleet::connect`] takes [`DEFAULT_FLEET`].
    pub fleet: Name,
    /// How long a call waits for a store that is not up yet; 10 s by default.
    pub wait: Duration,
    /// Whether a store that does not exist is made; it is by default.
    pub create: bool,
    /// The clock that sources go by: the system's by default, another in tests.
    pub clock: Clock,
    /// How the visitor's session presents itself, [`SessionOptions::client`] by default; its environment is that of nodes
    /// too.
    pub session: SessionOptions,
}

impl FleetOptions {
    /// The defaults for the fleet of this name.
    #[must_use]
    pub const fn new(fleet: Name) -> Self {
        Self {
            fleet,
            wait: Duration::from_secs(10),
            create: true,
            clock: Clock::system(),
            session: SessionOptions::client(),
        }
    }
}

/// Why a fleet could not be addressed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL is no store's.
    #[error(transparent)]
    Url(#[from] InvalidUrl),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The session that the calls of a program share.
#[derive(Default)]
struct Visitor {
    session: Option<Session>,
    /// When it last failed to join, and why.
    failed: Option<(Instant, StoreError)>,
}

/// A handle to a fleet; clones share it.
#[derive(Clone)]
pub struct Fleet {
    store: Arc<dyn Store>,
    options: Arc<FleetOptions>,
    visitor: Arc<Mutex<Visitor>>,
    /// What is followed by its visitor.
    follows: Arc<follow::Follows>,
}

impl Fleet {
    /// Addresses the fleet named `baton` in the store at `url`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ConnectError`] if the URL is no store's, or what is there can never be used.
    pub fn connect(url: &str) -> Result<Self, ConnectError> {
        let name = Name::new(DEFAULT_FLEET).map_err(StoreError::from)?;
        Self::connect_with(&url.parse()?, FleetOptions::new(name))
    }

    /// As [`Fleet::connect`], with everything said.
    ///
    /// # Errors
    /// [`ConnectError::Store`] if what is there can never be used.
    pub fn connect_with(url: &StoreUrl, options: FleetOptions) -> Result<Self, ConnectError> {
        let store = store::open(url, options.fleet.clone(), options.create)?;
        Ok(Self::over(store, options))
    }

    /// The fleet in a store that is open already.
    #[must_use]
    pub fn over(store: Arc<dyn Store>, options: FleetOptions) -> Self {
        Self { store, options: Arc::new(options), visitor: Arc::default(), follows: Arc::default() }
    }

    /// The store itself.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The same fleet, for calls from another runtime.
    fn apart(&self) -> Self {
        let (visitor, follows) = (Arc::default(), Arc::default());
        Self { store: self.store.apart(), options: Arc::clone(&self.options), visitor, follows }
    }

    /// The same fleet for a visitor of its own, whose calls are tried once and do not wait; and how long they would have.
    pub(crate) fn visited(&self) -> (Self, Duration) {
        let options = FleetOptions { wait: Duration::ZERO, ..FleetOptions::clone(&self.options) };
        (Self::over(self.store.clone(), options), self.options.wait)
    }

    /// The same as visited by one who counts a store as away that leaves a beat unanswered for so long.
    pub(crate) fn visited_within(&self, timeout: Duration) -> Self {
        let mut options = FleetOptions { wait: Duration::ZERO, ..FleetOptions::clone(&self.options) };
        options.session.beat_timeout = options.session.beat_timeout.min(timeout);
        Self::over(self.store.clone(), options)
    }

    /// The fleet's name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.options.fleet
    }

    /// The lease of its visitor's session.
    pub(crate) fn lease(&self) -> Duration {
        self.options.session.lease
    }

    /// How many bytes a queue may hold before its pushes wait.
    pub(crate) fn max_queue_bytes(&self) -> u64 {
        self.options.session.max_queue_bytes
    }

    /// The environment of its sessions.
    fn environment(&self) -> &Environment {
        &self.options.session.environment
    }

    /// A queue of bodies of type `T`. A name that is not usable is reported by the first push.
    #[must_use]
    pub fn queue<T: serde::Serialize + ?Sized>(&self, name: &str) -> Queue<T> {
        Queue::new(self.clone(), name)
    }

    /// A node of the fleet, to be given sources and handlers and then run.
    #[must_use]
    pub fn node(&self) -> Node {
        Node::new(self.clone())
    }

    /// The visitor's session, joined now if there is none or the last one is over.
    ///
    /// # Errors
    /// The store's failure after the time to wait for it; its refusal at once.
    pub async fn session(&self) -> Result<Session, StoreError> {
        let called = Instant::now();
        let deadline = moment::after(called, self.options.wait);
        let mut visitor = self.visitor.lock().await;
        if let Some(live) = visitor.session.as_ref().filter(|session| !session.is_over()) {
            return Ok(live.clone());
        }
        // Those who waited while another tried in vain do not wait once more, one after the other.
        if let Some((_, error)) = visitor.failed.as_ref().filter(|(at, _)| *at >= called && Instant::now() >= deadline)
        {
            return Err(error.clone());
        }
        let joining = self.when_up_by(deadline, || Session::join(self.store.clone(), self.options.session.clone()));
        match joining.await {
            Ok(joined) => Ok(visitor.session.insert(joined).clone()),
            Err(error) => {
                visitor.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// The visitor's session, if it has joined and that is not over.
    async fn joined(&self) -> Option<Session> {
        self.visitor.lock().await.session.clone().filter(|session| !session.is_over())
    }

    /// Carries out an operation that needs no session, waiting for a store that is not up yet.
    ///
    /// # Errors
    /// The store's failure after the time to wait for it; its refusal at once.
    pub async fn ask<O: store::Operation + Clone>(&self, operation: O) -> Result<O::Answer, StoreError> {
        self.when_up(|| store::ask(&*self.store, operation.clone())).await
    }

    /// Leaves, if it had joined, and closes the store in order; a later call, also one that follows, opens it anew. What is under way is answered
    /// first only if its callers wait for it.
    ///
    /// # Errors
    /// The store's failure; the lease then does the rest.
    pub async fn leave(&self) -> Result<(), StoreError> {
        // Else it would join again at once, for what is followed still.
        self.follows.rest().await;
        let left = match self.visitor.lock().await.session.take() {
            Some(session) => session.leave().await,
            None => Ok(()),
        };
        self.store.close().await;
        left
    }

    /// Repeats `attempt` while the store cannot be reached and time is left.
    async fn when_up<T, F: Future<Output = Result<T, StoreError>>>(
        &self, attempt: impl Fn() -> F,
    ) -> Result<T, StoreError> {
        self.when_up_by(moment::after(Instant::now(), self.options.wait), attempt).await
    }

    async fn when_up_by<T, F: Future<Output = Result<T, StoreError>>>(
        &self, deadline: Instant, attempt: impl Fn() -> F,
    ) -> Result<T, StoreError> {
        drivers::timers_here()?;
        let mut backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(250));
        loop {
            let result = attempt().await;
            let pause = backoff.pause();
            if !result.as_ref().is_err_and(StoreError::is_retryable) || Instant::now() + pause >= deadline {
                return result;
            }
            tokio::time::sleep(pause).await;
        }
    }
}

/// The fleet's name where none is given.
pub const DEFAULT_FLEET: &str = "baton";

#[cfg(test)]
#[cfg(feature = "memory")]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;

    use super::*;
    use crate::{
        message::SessionId,
        store::{Answer, Request, Waiting, Woken},
    };

    /// A store that cannot be reached, and how often that was tried. A try takes its time.
    #[derive(Clone, Default)]
    struct Away(Arc<AtomicUsize>);

    impl Store for Away {
        fn call(&self, _: Request) -> BoxFuture<'_, Result<Answer, StoreError>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(async {
                tokio::time::sleep(Duration::from_secs(2)).await;
                Err(StoreError::Unreachable("away".to_owned()))
            })
        }

        fn apart(&self) -> Arc<dyn Store> {
            Arc::new(self.clone())
        }

        fn wait(&self, _: SessionId, _: Arc<dyn Waiting>) -> BoxFuture<'_, Result<Woken, StoreError>> {
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_calls_wait_for_a_store_that_is_away_no_longer_than_one() {
        let store = Away::default();
        let fleet = Fleet::over(Arc::new(store.clone()), FleetOptions::new(Name::new("test").unwrap()));
        let queue = fleet.queue::<u32>("q");
        let (queue, begun) = (&queue, Instant::now());
        let pushes = (0..50).map(|nth| async move {
            tokio::time::sleep(Duration::from_millis(nth)).await;
            queue.push(&1).await
        });
        assert!(join_all(pushes).await.iter().all(Result::is_err));
        let (waited, tries) = (begun.elapsed(), store.0.load(Ordering::Relaxed));
        assert!(waited < Duration::from_secs(15) && tries < 10, "{tries} tries, {waited:?}");
        // Who comes later tries again.
        assert!(queue.push(&1).await.is_err());
        assert!(store.0.load(Ordering::Relaxed) > tries);
    }
}
