//! A store that comes late, goes away under load, or cannot be used: who waits, for how long, and what each is told.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on fails")]

mod scene;

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use baton::{Context, Done, deferred::Bounds};
use baton_servers::RedisServer;
use scene::{JSON, NDJSON, Peer, Scene, request, until};

/// How late the store is.
const LATE: Duration = Duration::from_secs(3);

/// A server that is not up: its port is free, and it can be started there.
fn absent(folder: &std::path::Path) -> RedisServer {
    let mut server = RedisServer::start(folder, &["--appendonly", "yes", "--appendfsync", "always"]).unwrap();
    server.kill();
    server
}

/// How many requests wait; nothing if the store answers.
fn waiting(scene: &Scene) -> Option<u64> {
    let ready = scene.get("/health/ready");
    (ready.status == 503).then(|| ready.problem(503, "store-away")["waiting"].as_u64().unwrap())
}

/// Sends pushes, each by a peer of its own, each when the one before it waits.
fn line_up(scene: &Scene, queue: &str, count: u64) -> Vec<Peer> {
    let before = waiting(scene).unwrap();
    let one = |number: u64| {
        let mut peer = scene.peer();
        peer.send(&request("POST", &format!("/push/{queue}"), &[JSON], number.to_string().as_bytes()));
        until("it waits", || waiting(scene).unwrap() > before + number);
        peer
    };
    (0..count).map(one).collect()
}

/// Asserts that they were stored in the order in which they were sent.
fn stored_in_order(peers: Vec<Peer>) {
    let ids = peers.into_iter().map(|mut peer| {
        let answer = peer.answer();
        assert_eq!(answer.status, 202, "{}", answer.text());
        answer.json()["ids"][0]["first"].as_u64().unwrap()
    });
    let ids: Vec<u64> = ids.collect();
    assert!(ids.windows(2).all(|two| two[0] < two[1]), "{ids:?}");
}

#[test]
fn requests_sent_before_the_store_is_up_are_answered_in_their_order_when_it_is() {
    let folder = tempfile::TempDir::new().unwrap();
    let mut server = absent(folder.path());
    let scene = Scene::begin(&server.url(), |_| {}, |_| {});
    let begun = Instant::now();
    assert_eq!(scene.get("/health").text(), "I'm alive!");
    until("it was looked for", || waiting(&scene) == Some(0));
    let pushes = line_up(&scene, "q", 40);
    let (mut lines, mut message) = (scene.peer(), scene.peer());
    lines.send(&request("POST", "/push/lines", &[NDJSON], b"1\n2\n3\n"));
    message.send(&request("GET", "/messages/q/1", &[], b""));
    until("they wait", || waiting(&scene) == Some(42));
    std::thread::sleep(LATE.saturating_sub(begun.elapsed()));
    assert_eq!((scene.get("/health").status, waiting(&scene)), (200, Some(42)));
    server.restart().unwrap();
    stored_in_order(pushes);
    assert_eq!(lines.answer().json()["stored"], 3);
    // It is asked for behind the pushes, and may be looked for before they are stored.
    let message = message.answer();
    assert!([200, 404].contains(&message.status), "{}", message.text());
    assert_eq!((scene.ready("q"), scene.ready("lines")), (40, 3));
    scene.until_ready();
}

#[test]
fn what_waits_is_bounded_before_its_body_is_read_and_late_ones_are_told_when_to_come_again() {
    let patience = Duration::from_secs(8);
    let bounds = Bounds { calls: 3, bytes: 1000, patience };
    let scene = Scene::begin("redis://127.0.0.1:1/", |_| {}, |options| options.limits.waiting = bounds);
    let begun = Instant::now();
    let hold = |length: &str| {
        let mut peer = scene.peer();
        peer.send(&request("POST", "/push/q", &[JSON, ("content-length", length)], b""));
        peer
    };
    // A length that is only declared takes a seat and holds no bytes.
    let declared = hold("900");
    until("it has a seat", || waiting(&scene) == Some(1));
    let mut large = scene.peer();
    large.send(&request("POST", "/push/q", &[JSON], format!("\"{}\"", "x".repeat(898)).as_bytes()));
    let holds_bytes = || {
        let mut peer = scene.peer();
        let headers = [JSON, ("content-length", "101"), ("expect", "100-continue")];
        peer.send(&request("POST", "/push/q", &headers, b""));
        peer.head().status == 503
    };
    until("its bytes have come", holds_bytes);
    drop(declared);
    until("those have gone that were let in", || waiting(&scene) == Some(1));
    // By bytes, and nothing of it is wanted: there is no word to go on.
    let mut refused = scene.peer();
    refused.send(&request("POST", "/push/q", &[JSON, ("content-length", "101"), ("expect", "100-continue")], b""));
    let answer = refused.answer();
    assert!(answer.problem(503, "store-away")["detail"].as_str().unwrap().contains("as many requests wait"));
    assert!(answer.header("retry-after").is_some());
    // What has no length may come to be a whole message.
    scene
        .ask("POST", "/push/q", &[JSON, ("transfer-encoding", "chunked")], b"1\r\n1\r\n0\r\n\r\n")
        .problem(503, "store-away");
    // By number.
    let (one, other) = (hold("1"), hold("1"));
    until("there are three", || waiting(&scene) == Some(3));
    assert!(scene.get("/messages/q/1").problem(503, "store-away")["detail"].as_str().unwrap().contains("as many"));
    assert_eq!(scene.get("/health").status, 200);
    assert!(begun.elapsed() < patience, "the machine is too slow for this test: {:?}", begun.elapsed());
    // Who leaves makes room; who stays is late.
    drop((large, one));
    until("they have gone", || waiting(&scene) == Some(1));
    let begun = Instant::now();
    let late = scene.push("q", b"1");
    assert!(begun.elapsed() >= patience, "{:?}", begun.elapsed());
    late.problem(503, "store-away");
    assert!(late.header("retry-after").is_some());
    drop(other);
    until("nobody waits", || waiting(&scene) == Some(0));
}

#[test]
fn a_store_that_cannot_be_used_is_told_to_each_who_waits_and_to_who_comes_later() {
    let folder = tempfile::TempDir::new().unwrap();
    let mut server = RedisServer::start(folder.path(), &["--requirepass", "secret"]).unwrap();
    server.kill();
    let scene = Scene::begin(&server.url(), |_| {}, |_| {});
    until("it was looked for", || waiting(&scene) == Some(0));
    let pushes = line_up(&scene, "q", 3);
    server.restart().unwrap();
    for mut push in pushes {
        push.answer().problem(503, "store-unfit");
    }
    let later = scene.push("q", b"1").problem(503, "store-unfit");
    assert!(!later.to_string().contains(&server.port().to_string()), "{later}");
    assert_eq!((scene.get("/health").status, scene.get("/health/ready").status), (200, 503));
}

#[test]
fn whoever_waits_for_the_store_is_told_when_the_gateway_stops() {
    let scene = Scene::begin("redis://127.0.0.1:1/", |_| {}, |_| {});
    until("it was looked for", || waiting(&scene) == Some(0));
    let mut peers = line_up(&scene, "q", 2);
    let mut message = scene.peer();
    message.send(&request("GET", "/messages/q/1", &[], b""));
    until("it waits", || waiting(&scene) == Some(3));
    let mut search = scene.peer();
    search.send(&request("GET", "/subsetSum?data=[1]&sum=1", &[], b""));
    until("it waits", || waiting(&scene) == Some(4));
    let ready = scene.get("/health/ready").problem(503, "store-away");
    assert!(ready["detail"].as_str().unwrap().contains("`baton status`"), "{ready}");
    peers.extend([message, search]);
    scene.shutdown.graceful();
    // Each is told what became of what it asked for.
    let outcomes = ["nothing was stored", "nothing was stored", "it is safe to ask again", "no search was begun"];
    for (mut peer, outcome) in peers.into_iter().zip(outcomes) {
        let problem = peer.answer().problem(503, "store-away");
        assert_eq!(problem["detail"], format!("the store does not answer; {outcome}"));
    }
}

/// Pushes without an end, each body once, every other one with a key; what was answered to each.
struct Load {
    peers: Vec<std::thread::JoinHandle<HashMap<u64, (u16, String)>>>,
    over: Arc<AtomicBool>,
    paused: Arc<AtomicBool>,
    /// Requests that are sent and not answered.
    under_way: Arc<AtomicUsize>,
}

const PEERS: u64 = 8;

impl Load {
    fn begin(scene: &Scene) -> Self {
        let (over, paused, under_way) = Default::default();
        let load = Self { peers: Vec::new(), over, paused, under_way };
        let peers = (0..PEERS).map(|peer| {
            let (over, paused, under_way) =
                (Arc::clone(&load.over), Arc::clone(&load.paused), Arc::clone(&load.under_way));
            let address = scene.address;
            std::thread::spawn(move || {
                let (mut answers, mut connection) = (HashMap::new(), Peer::new(address));
                let mut number = peer;
                while !over.load(Ordering::SeqCst) {
                    if paused.load(Ordering::SeqCst) {
                        std::thread::sleep(Duration::from_millis(1));
                        continue;
                    }
                    let (key, body) = (format!("key-{number}"), number.to_string());
                    let keyed = [JSON, ("idempotency-key", &*key)];
                    let headers = if is_keyed(number) { &keyed[..] } else { &keyed[..1] };
                    connection.send(&request("POST", "/push/load", headers, body.as_bytes()));
                    under_way.fetch_add(1, Ordering::SeqCst);
                    let answer = connection.answer();
                    under_way.fetch_sub(1, Ordering::SeqCst);
                    let code = if answer.status == 202 { String::new() } else { answer.json()["code"].to_string() };
                    answers.insert(number, (answer.status, code));
                    number += PEERS;
                }
                answers
            })
        });
        Self { peers: peers.collect(), ..load }
    }

    fn end(self) -> HashMap<u64, (u16, String)> {
        self.over.store(true, Ordering::SeqCst);
        self.peers.into_iter().flat_map(|peer| peer.join().unwrap()).collect()
    }
}

const fn is_keyed(number: u64) -> bool {
    (number / PEERS).is_multiple_of(2)
}

#[test]
fn a_store_that_is_restarted_under_load_loses_nothing_and_what_is_not_known_is_said() {
    let folder = tempfile::TempDir::new().unwrap();
    let mut server = absent(folder.path());
    server.restart().unwrap();
    let scene = Scene::begin(&server.url(), |_| {}, |_| {});
    scene.until_ready();
    let (load, mut queues) = (Load::begin(&scene), Vec::new());
    for round in 0..2 {
        until("there is load", || scene.ready("load") > 200 * (round + 1));
        server.kill();
        let begun = Instant::now();
        until("it is noticed", || waiting(&scene).is_some());
        load.paused.store(true, Ordering::SeqCst);
        // Those under way wait, or were with the store when it went; what is unchanged for a while is in its place.
        let (mut last, mut since) = (0, Instant::now());
        until("all have settled", || {
            let now = waiting(&scene).unwrap();
            if now != last {
                (last, since) = (now, Instant::now());
            }
            since.elapsed() > Duration::from_millis(300)
        });
        assert!(load.under_way.load(Ordering::SeqCst) as u64 >= last);
        let queue = format!("ordered-{round}");
        let pushes = line_up(&scene, &queue, 20);
        std::thread::sleep(LATE.saturating_sub(begun.elapsed()));
        server.restart().unwrap();
        stored_in_order(pushes);
        assert_eq!(scene.ready(&queue), 20);
        queues.push(queue);
        load.paused.store(false, Ordering::SeqCst);
    }
    let answers = load.end();
    let found: Arc<Mutex<Vec<u64>>> = Arc::default();
    let kept = Arc::clone(&found);
    scene.work(scene.fleet.node().handler("load", move |number: u64, _: Context| {
        kept.lock().unwrap().push(number);
        async { Ok(Done::default()) }
    }));
    until("all are done", || {
        let survey = scene.runtime.block_on(scene.fleet.ask(baton::store::TakeSurvey)).unwrap();
        survey.queues.iter().any(|books| books.queue.as_str() == "load" && books.done == books.pushed)
    });
    let found = std::mem::take(&mut *found.lock().unwrap());
    let once: HashSet<u64> = found.iter().copied().collect();
    assert_eq!(once.len(), found.len(), "something was stored twice");
    let mut not_known = 0;
    for (number, (status, code)) in &answers {
        match status {
            202 => assert!(once.contains(number), "{number} was lost"),
            503 if code == "\"maybe-stored\"" => {
                assert!(!is_keyed(*number), "{number} has a key and was not repeated");
                not_known += 1;
            }
            _ => panic!("{number}: {status} {code}"),
        }
    }
    assert!(once.iter().all(|number| answers.contains_key(number)));
    println!("{} pushes, {not_known} of which it was not known whether they are stored", answers.len());
    assert!(not_known <= 2 * PEERS);
}
