//! A node whose session ends under its hands, as after a pause of its machine: what it had begun runs again elsewhere, is
//! told, and is counted once.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at what it did not expect")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use baton::{
    Context, Done, Event, Fleet, FleetOptions, Observer, Shutdown,
    store::{Answer, BoxFuture, Leave, Request, Store, StoreError, Survey, TakeSurvey, Waiting, Woken, ask},
};
use baton_testkit::{on_every_store, subject::test_fleet};

const MESSAGES: u64 = 5;

/// A store that keeps reports on their way while it is told to.
struct Slow {
    inner: Arc<dyn Store>,
    holds: Arc<AtomicBool>,
}

impl Store for Slow {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, StoreError>> {
        Box::pin(async move {
            while matches!(request, Request::Settle(_)) && self.holds.load(SeqCst) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            self.inner.call(request).await
        })
    }

    fn apart(&self) -> Arc<dyn Store> {
        Arc::new(Self { inner: self.inner.apart(), holds: self.holds.clone() })
    }

    fn wait(&self, session: baton::SessionId, waiting: Arc<dyn Waiting>) -> BoxFuture<'_, Result<Woken, StoreError>> {
        self.inner.wait(session, waiting)
    }
}

#[derive(Default)]
struct Lost(Mutex<Vec<u64>>);

impl Observer for Lost {
    fn on_event(&self, event: &Event) {
        if let Event::RunsLost { messages, .. } = event {
            self.0.lock().unwrap().push(*messages);
        }
    }
}

async fn survey(store: &dyn Store) -> Survey {
    ask(store, TakeSurvey).await.unwrap()
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds().await {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Has the session end while all messages are begun: while their handlers run, or while all are done and being reported.
async fn loses(store: Arc<dyn Store>, while_reporting: bool) {
    let (holds, waits) = (Arc::new(AtomicBool::new(while_reporting)), Arc::new(AtomicBool::new(!while_reporting)));
    let slow = Arc::new(Slow { inner: store.clone(), holds: holds.clone() });
    let fleet = Fleet::over(slow, FleetOptions::new(test_fleet()));
    fleet.queue::<u64>("q").push_all(0..MESSAGES).await.unwrap();
    let (ran, lost, shutdown) = (Arc::<AtomicU64>::default(), Arc::<Lost>::default(), Shutdown::new());
    let (count, hold) = (ran.clone(), waits.clone());
    let node = fleet.node().observed_by(lost.clone()).handler("q", move |_: u64, _: Context| {
        let hold = hold.clone();
        count.fetch_add(1, SeqCst);
        async move {
            while hold.load(SeqCst) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Ok(Done::default())
        }
    });
    let node = tokio::spawn(node.run(shutdown.clone()));
    until("all have begun", async || ran.load(SeqCst) == MESSAGES).await;
    let session = survey(&*store).await.sessions.iter().find(|it| !it.queues.is_empty()).unwrap().session;
    ask(&*store, Leave { session }).await.unwrap();
    holds.store(false, SeqCst);
    until("it is told", async || !lost.0.lock().unwrap().is_empty()).await;
    waits.store(false, SeqCst);
    until("all are done", async || survey(&*store).await.queues[0].done == MESSAGES).await;
    shutdown.graceful();
    node.await.unwrap().unwrap();
    assert_eq!((ran.load(SeqCst), lost.0.lock().unwrap().as_slice()), (2 * MESSAGES, &[MESSAGES][..]));
    assert_eq!(survey(&*store).await.queues[0].stale_settles, MESSAGES, "while reporting: {while_reporting}");
    fleet.leave().await.unwrap();
}

/// A store of each kind.
struct Setting(Arc<dyn Store>);

impl Setting {
    fn over(store: Arc<dyn Store>) -> Self {
        Self(store)
    }
}

async fn messages_that_run_when_the_session_ends_are_told_and_counted_once(setting: Setting) {
    loses(setting.0, false).await;
}

async fn messages_that_are_being_reported_when_the_session_ends_are_told_and_counted_once(setting: Setting) {
    loses(setting.0, true).await;
}

on_every_store! {
    messages_that_run_when_the_session_ends_are_told_and_counted_once
    messages_that_are_being_reported_when_the_session_ends_are_told_and_counted_once
}
