//! Where the queues of a fleet are described, a mistyped one is refused before anything is stored.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

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
    store::{Answer, BoxFuture, Kind, MemoryStore, Request, Store, StoreError, TakeSurvey, Waiting, Woken},
};
use baton_gateway::GatewayOptions;
use scene::{JSON, NDJSON, Scene, until};

fn closed(options: &mut GatewayOptions) {
    options.queues = Some(["messages", "resize"].map(|queue| Name::new(queue).unwrap()).into());
}

fn has_queue(scene: &Scene, queue: &str) -> bool {
    let survey = scene.runtime.block_on(scene.fleet.ask(TakeSurvey)).unwrap();
    survey.queues.iter().any(|books| books.queue.as_str() == queue)
}

#[test]
fn a_queue_that_is_not_known_is_refused_with_the_one_that_was_probably_meant() {
    let scene = Scene::with(closed);
    let waits = [JSON, ("prefer", "wait=9")];
    for (path, headers, body) in [
        ("/push/mesages", &[JSON][..], &b"1"[..]),
        ("/push/mesages", &[NDJSON], b"1\n2\n"),
        ("/push/mesages", &waits, b"1"),
        ("/call/mesages", &[JSON], b"1"),
    ] {
        let problem = scene.ask("POST", path, headers, body).problem(404, "unknown-queue");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.starts_with("no queue `mesages`; did you mean `messages`?"), "{detail}");
        assert!(detail.contains("--open-queues"), "{detail}");
    }
    let far = scene.push("orders", b"1").problem(404, "unknown-queue");
    let detail = far["detail"].as_str().unwrap();
    assert!(detail.starts_with("no queue `orders`: ") && !detail.contains("did you mean"), "{detail}");
    assert!(!has_queue(&scene, "mesages") && !has_queue(&scene, "orders"));
    // A queue that is described is known before anything was stored in it.
    assert_eq!(scene.push("messages", b"1").status, 202);
    assert_eq!(scene.open("POST", "/call/resize", &[JSON], b"1").0.status, 200);
}

#[test]
fn a_queue_that_is_stored_or_has_just_got_a_node_is_known() {
    let scene = Scene::with(closed);
    scene.push("stored", b"1").problem(404, "unknown-queue");
    scene.runtime.block_on(scene.fleet.queue::<u64>("stored").push(&1)).unwrap();
    assert_eq!(scene.push("stored", b"1").status, 202);
    for nth in 1..=4 {
        let queue = format!("new{nth}");
        scene.push(&queue, b"1").problem(404, "unknown-queue");
        scene.work(scene.fleet.node().handler(&queue, async |_: u64, _: Context| Ok(Done::default())));
        let works = || {
            let survey = scene.runtime.block_on(scene.fleet.ask(TakeSurvey)).unwrap();
            let mut nodes = survey.sessions.into_iter().filter(|it| it.kind == Kind::Node);
            nodes.any(|node| node.queues.iter().any(|it| it.as_str() == queue))
        };
        until("the node works", works);
        assert_eq!(scene.push(&queue, b"1").status, 202, "{queue}");
    }
}

#[test]
fn without_a_description_any_queue_is_taken() {
    let scene = Scene::new();
    assert_eq!(scene.push("mesages", b"1").status, 202);
}

#[test]
fn a_store_that_is_away_is_named_and_no_queue_is_refused_for_it() {
    let scene = Scene::begin(
        "redis://127.0.0.1:1/",
        |_| {},
        |options| {
            closed(options);
            options.limits.waiting.patience = Duration::from_millis(200);
        },
    );
    scene.push("mesages", b"1").problem(503, "store-away");
    scene.push("messages", b"1").problem(503, "store-away");
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
fn counted(change: impl FnOnce(&mut GatewayOptions)) -> (Scene, Arc<AtomicUsize>) {
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
    let (begun, mut pushed) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_millis(1500) {
        assert_eq!(scene.push(&format!("q{}", pushed % 7), b"1").json()["nodes"], 0);
        pushed += 1;
    }
    let (most, surveys) = (begun.elapsed().as_secs() as usize + 1, surveys.load(Ordering::SeqCst));
    assert!(surveys <= most && pushed > most, "{surveys} surveys for {pushed} pushes");
}

#[test]
fn wrong_names_share_surveys_that_are_a_quarter_of_a_second_apart() {
    let (scene, surveys) = counted(closed);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for nth in 0..40 {
            let scene = &scene;
            scope.spawn(move || scene.push(&format!("wrong{nth}"), b"1").problem(404, "unknown-queue"));
        }
    });
    // Those that came before a survey began share it.
    let (most, surveys) = (begun.elapsed().as_millis() as usize / 250 + 1, surveys.load(Ordering::SeqCst));
    assert!(surveys <= most, "{surveys} surveys in {:?}", begun.elapsed());
}
