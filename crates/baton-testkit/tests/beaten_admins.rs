//! Two commands remove the same failed messages: the second one says what the first has done.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at what it did not expect")]

use std::{
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use baton::{
    Context, Done, Failure, Fleet, FleetOptions, SessionId, Shutdown,
    admin::{Admin, HandedOver, Taken, Wanted},
    store::{Answer, BoxFuture, Disposal, Request, Store, StoreError, TakeSurvey, Waiting, Woken, ask},
};
use baton_testkit::{stores, subject::test_fleet};

const ERRORS: u64 = 5;

/// A store on which another one removes these errors right before the first drain begins.
#[derive(Clone)]
struct Beaten {
    inner: Arc<dyn Store>,
    removed: Wanted,
    is_beaten: Arc<AtomicBool>,
}

impl Store for Beaten {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, StoreError>> {
        Box::pin(async move {
            if matches!(request, Request::RemovalBegin(_)) && !self.is_beaten.swap(true, SeqCst) {
                let first = Admin::new(&Fleet::over(self.inner.clone(), FleetOptions::new(test_fleet())));
                first.hand_over(&self.removed, Some(Disposal::Remove), None, |_| Taken::Yes).await.unwrap();
            }
            self.inner.call(request).await
        })
    }

    fn apart(&self) -> Arc<dyn Store> {
        Arc::new(Self { inner: self.inner.apart(), ..self.clone() })
    }

    fn wait(&self, session: SessionId, waiting: Arc<dyn Waiting>) -> BoxFuture<'_, Result<Woken, StoreError>> {
        self.inner.wait(session, waiting)
    }
}

/// What a requeue of these errors comes to, if others remove those first.
async fn requeued(wanted: Wanted, removed: Wanted) -> HandedOver {
    let store = stores::in_memory();
    let fleet = Fleet::over(store.clone(), FleetOptions::new(test_fleet()));
    fleet.queue::<u64>("q").push_all(1..=ERRORS).await.unwrap();
    let fails = |n: u64, _: Context| ready(Err::<Done, _>(Failure::fatal(format!("no {n}"))));
    let shutdown = Shutdown::new();
    let node = tokio::spawn(fleet.node().handler("q", fails).run(shutdown.clone()));
    while ask(&*store, TakeSurvey).await.unwrap().queues[0].failed < ERRORS {
        assert!(!node.is_finished());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    shutdown.graceful();
    node.await.unwrap().unwrap();
    let beaten = Beaten { inner: store, removed, is_beaten: Arc::default() };
    let second = Admin::new(&Fleet::over(Arc::new(beaten), FleetOptions::new(test_fleet())));
    second.hand_over(&wanted, Some(Disposal::Requeue), None, |_| Taken::Yes).await.unwrap()
}

#[tokio::test]
async fn a_requeue_says_what_a_drain_has_removed_before() {
    let of = |text: &str| Wanted { containing: Some(text.to_owned()), ..Wanted::default() };
    let (all, one) = (Wanted::default, || of("no 3"));
    let came_to = async |wanted, removed| {
        let HandedOver { count, total, missed, .. } = requeued(wanted, removed).await;
        (count, total, missed)
    };
    assert_eq!(came_to(all(), all()).await, (0, ERRORS, ERRORS));
    assert_eq!(came_to(all(), one()).await, (ERRORS - 1, ERRORS, 1));
    assert_eq!(came_to(one(), one()).await, (0, ERRORS, 1));
    assert_eq!(came_to(of("none"), Wanted { limit: Some(0), ..all() }).await, (0, ERRORS, 0));
}
