//! The tasks that a session cannot live without: its beats, its submits, its settles, its wake-ups.
//!
//! If one of them breaks off, the session is over at once, and whoever waits for it hears so. A session without beats would
//! go on until others take its work; one without its other tasks would leave its callers waiting.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;

use super::caller::Caller;
use crate::{
    panics,
    store::{Refusal, StoreError},
};

/// Runs a task. The session is over if it panics, or if it is dropped before its end, as when its runtime shuts down.
pub(super) fn vital(caller: Caller, task: impl Future<Output = ()>) -> impl Future<Output = ()> {
    // Here, since a runtime that shuts down drops a new task before it is polled.
    let lifeline = Lifeline(Some(caller.clone()));
    async move {
        unless_it_panics(&caller, task).await;
        lifeline.reached_the_end();
    }
}

/// The same, but the task may be dropped at any time.
pub(super) async fn unless_it_panics(caller: &Caller, task: impl Future<Output = ()>) {
    if let Err(panic) = AssertUnwindSafe(task).catch_unwind().await {
        let text = panics::text(panic);
        caller.end(StoreError::Unreachable(format!("a task of this session panicked ({text}): repeat the call")));
    }
}

/// Ends the session when it is dropped.
struct Lifeline(Option<Caller>);

impl Lifeline {
    fn reached_the_end(mut self) {
        self.0 = None;
    }
}

impl Drop for Lifeline {
    fn drop(&mut self) {
        if let Some(caller) = self.0.take() {
            caller.end(Refusal::Stale.into());
        }
    }
}

#[cfg(test)]
#[cfg(feature = "memory")]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    use super::*;
    use crate::{
        Done, Fleet, FleetOptions, Shutdown,
        message::{Body, Key, Name, Outcome, Parcel, Range, Run, Submission},
        store::{
            Answer, BoxFuture, Kind, MemoryStore, MoveBookmark, Place, Request, Store, Waiting, Woken,
            session::{Session, SessionOptions, SubmitError},
        },
    };

    /// A store that panics in the first calls of some kind.
    #[derive(Clone)]
    struct Panicking {
        inner: MemoryStore,
        on: fn(&Request) -> bool,
        times: Arc<AtomicUsize>,
        in_wait: bool,
    }

    impl Panicking {
        fn on(on: fn(&Request) -> bool) -> Self {
            Self { inner: MemoryStore::default(), on, times: Arc::new(AtomicUsize::new(1)), in_wait: false }
        }

        fn session(&self, kind: Kind) -> impl Future<Output = Session> {
            let options = SessionOptions { kind, queues: vec![queue()], ..SessionOptions::client() };
            let store = Arc::new(self.clone());
            async move { Session::join(store, options).await.unwrap() }
        }
    }

    impl Store for Panicking {
        fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, StoreError>> {
            let is_due = |left: usize| left.checked_sub(1);
            let panics =
                (self.on)(&request) && self.times.fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_due).is_ok();
            assert!(!panics, "out of tea");
            self.inner.call(request)
        }

        fn apart(&self) -> Arc<dyn Store> {
            Arc::new(self.clone())
        }

        fn wait(
            &self, session: crate::message::SessionId, waiting: Arc<dyn Waiting>,
        ) -> BoxFuture<'_, Result<Woken, StoreError>> {
            assert!(!self.in_wait, "out of tea");
            self.inner.wait(session, waiting)
        }
    }

    fn queue() -> Name {
        Name::new("q").unwrap()
    }

    /// What must end within a bounded time.
    async fn bounded<T>(future: impl Future<Output = T>) -> T {
        tokio::time::timeout(Duration::from_secs(20), future).await.expect("nobody waits for ever")
    }

    #[tokio::test]
    async fn a_push_whose_task_panics_says_so_and_the_next_one_joins_again() {
        let store = Panicking::on(|request| matches!(request, Request::Submit(_)));
        let fleet = Fleet::over(Arc::new(store), FleetOptions::new(Name::new("test").unwrap()));
        let queue = fleet.queue::<u32>("q");
        // Both go in one group then.
        fleet.session().await.unwrap();
        let (one, other) = bounded(async { tokio::join!(queue.push(&1), queue.push(&2)) }).await;
        for failed in [one, other] {
            let told = failed.unwrap_err().to_string();
            assert!(
                told.contains("out of tea") && told.contains("whether the messages were stored is not known"),
                "{told}"
            );
        }
        assert_eq!(bounded(queue.push(&3)).await.unwrap().0, 1);
    }

    #[tokio::test]
    async fn what_was_not_sent_when_the_task_panicked_is_not_stored() {
        let session = Panicking::on(|request| matches!(request, Request::Submit(_))).session(Kind::Client).await;
        let submissions = || {
            let parcel = Parcel::single(Body::new(b"1").unwrap());
            vec![Submission { queue: queue(), parcel, key: None, call: None }]
        };
        let to = Place { lines: 1, ..Place::START };
        let alone = MoveBookmark { key: Key::new("k").unwrap(), from: Place::START, to };
        let (sent, unsent) = bounded(async {
            tokio::join!(session.submit(submissions(), Some(alone)), session.submit(submissions(), None))
        })
        .await;
        assert!(sent.is_err_and(|error| error.maybe_stored && error.to_string().contains("out of tea")));
        assert_eq!(unsent, Err(SubmitError { error: Refusal::Stale.into(), maybe_stored: false }));
    }

    #[tokio::test]
    async fn a_session_whose_beats_panic_is_over() {
        for kind in [Kind::Client, Kind::Node] {
            let session = Panicking::on(|request| matches!(request, Request::Beat(_))).session(kind).await;
            bounded(session.over()).await;
            let claimed = bounded(session.claim(queue(), 1, 1)).await;
            assert!(claimed.is_err_and(|error| error.to_string().contains("out of tea")));
        }
    }

    #[tokio::test]
    async fn a_report_whose_task_panics_fails_and_ends_the_session() {
        let session = Panicking::on(|request| matches!(request, Request::Settle(_))).session(Kind::Node).await;
        let run = Run { claim_no: 1, queue: queue(), range: Range { first: 1, len: 1 }, outcome: Outcome::DONE };
        assert!(bounded(session.settle(vec![run])).await.is_err());
        bounded(session.over()).await;
    }

    #[tokio::test]
    async fn nobody_waits_for_a_wake_up_that_no_task_hears() {
        let store = Panicking { in_wait: true, ..Panicking::on(|_| false) };
        let session = store.session(Kind::Node).await;
        assert!(bounded(session.claim_when_ready(queue(), 1, 1, None)).await.is_err());
    }

    #[tokio::test]
    async fn a_node_whose_sessions_break_off_rests_between_them() {
        let store = Panicking::on(|request| matches!(request, Request::Beat(_)));
        store.times.store(usize::MAX, Ordering::SeqCst);
        let joined = store.times.clone();
        let fleet = Fleet::over(Arc::new(store), FleetOptions::new(Name::new("test").unwrap()));
        let node = fleet.node().handler("q", async |_: u32, _| Ok(Done::default()));
        let (shutdown, begun) = (Shutdown::new(), std::time::Instant::now());
        let running = tokio::spawn(node.run(shutdown.clone()));
        bounded(async {
            while joined.load(Ordering::SeqCst) > usize::MAX - 4 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        assert!(begun.elapsed() >= Duration::from_millis(300));
        shutdown.now();
        bounded(running).await.unwrap().unwrap();
    }

    #[test]
    fn a_session_ends_with_the_runtime_it_was_joined_in() {
        let joined_in = tokio::runtime::Runtime::new().unwrap();
        let session = joined_in.block_on(Panicking::on(|_| false).session(Kind::Client));
        assert!(!session.is_over());
        drop(joined_in);
        assert!(session.is_over());
    }
}
