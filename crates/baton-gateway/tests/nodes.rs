//! The answer of a push says how many live nodes work for its queue.

mod scene;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use baton::{
    Context, Done, Fleet, FleetOptions, Name, SessionId,
    store::{Answer, BoxFuture, MemoryStore, Request, Store, StoreError, Waiting, Woken},
};
use scene::{JSON, NDJSON, Scene, on_each_store, until};
use serde_json::json;

fn works(scene: &Scene, queue: &str) {
    scene.work(scene.fleet.node().handler(queue, async |_: u64, _: Context| Ok(Done::default())));
}

#[test]
fn a_push_says_how_many_live_nodes_work_for_its_queue_in_each_of_its_forms() {
    on_each_store(|scene| {
        works(scene, "mail");
        until("the node is seen", || scene.push("mail", b"1").json()["nodes"] == 1);
        let lines = scene.ask("POST", "/push/mail", &[NDJSON], b"1\n2\n");
        assert_eq!((lines.status, &lines.json()["nodes"]), (202, &json!(1)));
        let waited = scene.ask("POST", "/push/mail", &[JSON, ("prefer", "wait=30")], b"3");
        assert_eq!((waited.status, &waited.json()["nodes"]), (200, &json!(1)));
        let keyed = [JSON, ("idempotency-key", "k")];
        assert_eq!(scene.ask("POST", "/push/mail", &keyed, b"4").json()["nodes"], 1);
        // A name that nothing works for.
        assert_eq!(scene.push("mial", b"1").json()["nodes"], 0);
        assert_eq!(scene.ask("POST", "/push/mial", &[NDJSON], b"1\n").json()["nodes"], 0);
        let not_yet = scene.ask("POST", "/push/mial", &[JSON, ("prefer", "wait=1")], b"1");
        assert_eq!((not_yet.status, &not_yet.json()["nodes"]), (202, &json!(0)));
    });
}

/// A store in memory that counts surveys.
#[derive(Clone, Default)]
struct Counting {
    inner: MemoryStore,
    surveys: Arc<AtomicUsize>,
}

impl Store for Counting {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, StoreError>> {
        if matches!(request, Request::Survey(_)) {
            self.surveys.fetch_add(1, Ordering::SeqCst);
        }
        self.inner.call(request)
    }

    fn apart(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    fn wait(&self, session: SessionId, waiting: Arc<dyn Waiting>) -> BoxFuture<'_, Result<Woken, StoreError>> {
        self.inner.wait(session, waiting)
    }
}

/// A gateway over a store that counts surveys.
fn counted(change: impl FnOnce(&mut baton_gateway::GatewayOptions)) -> (Scene, Arc<AtomicUsize>) {
    let store = Counting::default();
    let surveys = Arc::clone(&store.surveys);
    let options = FleetOptions::new(Name::new("test").unwrap());
    let scene = Scene::over(|| Fleet::over(Arc::new(store), options), change);
    scene.until_ready();
    (scene, surveys)
}

#[test]
fn many_pushes_share_one_survey_a_second() {
    let (scene, surveys) = counted(|_| {});
    let begun = Instant::now();
    let mut pushed = 0;
    while begun.elapsed() < Duration::from_millis(1500) {
        assert_eq!(scene.push(&format!("q{}", pushed % 7), b"1").json()["nodes"], 0);
        pushed += 1;
    }
    let (most, surveys) = (begun.elapsed().as_secs() as usize + 1, surveys.load(Ordering::SeqCst));
    assert!(surveys <= most && pushed > most, "{surveys} surveys for {pushed} pushes");
}
