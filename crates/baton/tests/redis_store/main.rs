//! What only the store in Redis does: scripts, holds, restarts, memory bounds, unfit servers; bodies and waits.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at what it did not expect")]

mod bodies;
mod bounds;
mod eviction;
mod follow_ups;
mod foreign;
mod holds;
mod inboxes;
mod keeping;
mod monitor;
mod partly;
mod redis_server;
mod remains;
mod rights;
mod short;
mod storms;
mod submits;
mod taken_away;
mod unreaped;
mod used;
mod waits;

use std::io::{Read, Write};

use baton::{
    Key, MessageId, Name, SessionId,
    store::{message::*, *},
};
use bytes::Bytes;
use redis_server::RedisServer;

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn store(server: &RedisServer) -> RedisStore {
    RedisStore::open(&server.url(), name("fleet"), RedisOptions::default()).unwrap()
}

pub(crate) fn behind<T: redis::FromRedisValue>(server: &RedisServer, command: &str) -> T {
    let mut words = command.split(' ');
    let mut to = redis::cmd(words.next().unwrap());
    words.for_each(|word| {
        to.arg(word);
    });
    to.query(&mut server.connection()).unwrap()
}

/// Sets one of the counters that are packed, by its place.
pub(crate) fn set_count(server: &RedisServer, place: usize, count: f64) {
    let mut set = redis::cmd("SETRANGE");
    set.arg("{fleet/0}:k:q").arg(place * 8).arg(&count.to_le_bytes()[..]);
    set.exec(&mut server.connection()).unwrap();
}

pub(crate) async fn join(store: &RedisStore, kind: Kind) -> SessionId {
    let session = SessionId::random();
    let (host, pid, queues, offers) = ("here".to_owned(), 1, vec![name("q")], Vec::new());
    ask(store, Join { session, kind, host, pid, queues, lease_ms: 60_000, heartbeat_ms: 100, offers, former: None })
        .await
        .unwrap();
    session
}

pub(crate) fn submit(session: SessionId, submit_no: u64, bodies: &[&[u8]]) -> Submit {
    let mut builder = ParcelBuilder::default();
    bodies.iter().for_each(|body| builder.add(Body::new(body).unwrap()).unwrap());
    let submissions = vec![Submission { queue: name("q"), parcel: builder.finish().unwrap(), key: None, call: None }];
    Submit { session, submit_no, submissions, bookmark: None, max_queue_bytes: u64::MAX, max_keys: MAX_KEYS }
}

pub(crate) fn claim(session: SessionId, claim_no: u64, n: u32) -> Claim {
    Claim { session, queue: name("q"), claim_no, n, max_bytes: u64::MAX }
}

pub(crate) fn settle(session: SessionId, settle_no: u64, first: u64, len: u32, outcome: Outcome) -> Settle {
    let runs = vec![Run { claim_no: settle_no, queue: name("q"), range: Range { first, len }, outcome }];
    Settle { session, settle_no, runs, max_results: baton::store::MAX_RESULTS }
}

async fn books(store: &RedisStore) -> Books {
    ask(store, TakeSurvey).await.unwrap().queues.into_iter().find(|books| books.queue == name("q")).unwrap()
}

#[tokio::test]
async fn functions_a_server_forgot_are_loaded_again() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    ask(&store, submit(session, 1, &[b"1"])).await.unwrap();
    let _: String = behind(&server, "FUNCTION FLUSH");
    let verdicts = ask(&store, submit(session, 2, &[b"2"])).await.unwrap().submissions;
    assert_eq!(verdicts, [SubmissionVerdict::Stored { first: 2 }]);
    assert_eq!(libraries(&server), 1);
    ask(&store, Leave { session }).await.unwrap();
    ask(&store, Destroy).await.unwrap();
    assert_eq!(libraries(&server), 0, "a destruction leaves none");
    join(&store, Kind::Node).await;
}

/// Libraries of other releases go; one that somebody still uses comes back, and costs no more than that.
#[tokio::test]
async fn a_library_that_is_first_loaded_takes_the_place_of_all_others() {
    let server = RedisServer::start(&[]);
    let load = |library: &str| {
        let text = format!("#!lua name={library}\nredis.register_function('{library}_f', function() return 1 end)");
        redis::cmd("FUNCTION").arg("LOAD").arg(text).exec(&mut server.connection()).unwrap();
    };
    ["baton_0123456789abcdef", "baton_fedcba9876543210", "another"].into_iter().for_each(load);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    assert_eq!(libraries(&server), 1);
    // A fleet of another release: here one with the clock of tests.
    let options = RedisOptions { test_clock: true, ..RedisOptions::default() };
    let other = RedisStore::open(&server.url(), name("other"), options).unwrap();
    let at_other = join(&other, Kind::Node).await;
    assert_eq!(libraries(&server), 1, "that of the first one is gone");
    for round in 1..=3 {
        ask(&store, submit(session, round, &[b"1", b"2"])).await.unwrap();
        ask(&other, submit(at_other, round, &[b"1", b"2"])).await.unwrap();
        assert_eq!(ask(&store, claim(session, round, 9)).await.unwrap().spans.len(), 1);
    }
    assert_eq!(libraries(&server), 2, "both are there for good");
    let calls = behind::<String>(&server, "INFO commandstats");
    let loads = calls.lines().find(|line| line.starts_with("cmdstat_function|load:")).unwrap();
    assert!(loads.contains("calls=6,"), "three of this test, one of each, and one again: {loads}");
    assert_eq!(behind::<Vec<redis::Value>>(&server, "FUNCTION LIST LIBRARYNAME another").len(), 1);
}

fn libraries(server: &RedisServer) -> usize {
    behind::<Vec<redis::Value>>(server, "FUNCTION LIST LIBRARYNAME baton_*").len()
}

/// A user without the right to functions, and a server at its maxmemory that has not got them yet.
#[tokio::test]
async fn where_functions_are_refused_the_same_runs_as_scripts() {
    let server = RedisServer::start(&[]);
    for (nth, rights) in ["-function", "-fcall", "-function -fcall"].into_iter().enumerate() {
        let _: String = behind(&server, &format!("ACL SETUSER u{nth} on >secret ~* &* +@all {rights}"));
        let url = server.url().replace("redis://", &format!("redis://u{nth}:secret@"));
        let store = RedisStore::open(&url, name(&format!("fleet{nth}")), RedisOptions::default()).unwrap();
        let session = join(&store, Kind::Node).await;
        for round in 1..=2 {
            ask(&store, submit(session, round, &[b"1"])).await.unwrap();
            assert_eq!(ask(&store, claim(session, round, 1)).await.unwrap().spans.len(), 1, "{rights}");
            ask(&store, settle(session, round, round, 1, Outcome::DONE)).await.unwrap();
            let _: String = behind(&server, "SCRIPT FLUSH");
        }
    }
    let calls = behind::<String>(&server, "INFO commandstats");
    let loads = calls.lines().find(|line| line.starts_with("cmdstat_function|load:calls=1,"));
    assert!(loads.is_some(), "who may only load them does so once: {calls}");
    let _: String = behind(&server, "FUNCTION FLUSH");
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    ask(&store, submit(session, 1, &[b"1"])).await.unwrap();
    let _: String = behind(&server, "FUNCTION FLUSH");
    let _: String = behind(&server, "CONFIG SET maxmemory 1");
    assert_eq!(ask(&store, claim(session, 1, 1)).await.unwrap().spans.len(), 1);
    ask(&store, settle(session, 1, 1, 1, Outcome::DONE)).await.unwrap();
    store.wait(session, std::sync::Arc::<Vec<Claim>>::default()).await.unwrap();
    let refused = ask(&store, submit(session, 2, &[b"2"])).await.unwrap_err();
    assert!(matches!(refused, StoreError::NoRoom(_)), "{refused:?}");
    let _: String = behind(&server, "CONFIG SET maxmemory 0");
    ask(&store, submit(session, 2, &[b"2"])).await.unwrap();
    assert_eq!(libraries(&server), 1, "they are asked for again");
}

/// The commands that the server has carried out, those inside scripts too.
fn commands(server: &RedisServer) -> u64 {
    let calls = behind::<String>(server, "INFO commandstats");
    let counts = calls.lines().filter(|line| !line.starts_with("cmdstat_info"));
    counts.filter_map(|line| line.split_once(":calls=")?.1.split(',').next()?.parse::<u64>().ok()).sum()
}

#[tokio::test]
async fn a_beat_costs_what_its_session_offers_and_not_what_is_known() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let offering = |sources: std::ops::Range<usize>| {
        let definition = Digest::of(b"a source");
        let offer = |nth| Offer { source: name(&format!("s{nth}")), queue: name("q"), definition, adopts: false };
        let (session, kind, host, pid) = (SessionId::random(), Kind::Node, "here".to_owned(), 1);
        let (queues, offers) = (Vec::new(), sources.map(offer).collect());
        Join { session, kind, host, pid, queues, lease_ms: 60_000, heartbeat_ms: 100, offers, former: None }
    };
    let cost = async |session| {
        let before = commands(&server);
        let beaten = ask(&store, Beat { session, report: Bytes::new(), asks: Vec::new() }).await.unwrap();
        (beaten.due.len(), commands(&server) - before)
    };
    let ten = offering(0..10);
    ask(&store, ten.clone()).await.unwrap();
    cost(ten.session).await;
    let alone = cost(ten.session).await;
    for hundred in 0..10 {
        ask(&store, offering(hundred * 100..hundred * 100 + 100)).await.unwrap();
    }
    let among_many = cost(ten.session).await;
    assert_eq!((alone.0, among_many.0), (10, 10));
    // The clock is written once a millisecond.
    assert!(among_many.1.abs_diff(alone.1) <= 1, "{among_many:?}, alone {alone:?}");
}

#[tokio::test]
async fn a_restarted_server_ends_its_sessions_without_a_loss() {
    let mut server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let store = store(&server);
    let beats = store.apart();
    let session = join(&store, Kind::Node).await;
    ask(&store, submit(session, 1, &[b"1", b"2"])).await.unwrap();
    ask(&store, claim(session, 1, 9)).await.unwrap();
    server.restart();
    let beat = Beat { session, report: Bytes::new(), asks: Vec::new() };
    // The lost connection is noticed by whoever calls first.
    let answer = loop {
        match ask(&beats, beat.clone()).await {
            Err(StoreError::Unreachable(_)) => {}
            answer => break answer,
        }
    };
    assert_eq!(answer.unwrap_err(), Refusal::Stale.into());
    let next = loop {
        let session = SessionId::random();
        let (host, pid, queues, offers) = ("here".to_owned(), 1, vec![], Vec::new());
        let kind = Kind::Node;
        let joining =
            Join { session, kind, host, pid, queues, lease_ms: 60_000, heartbeat_ms: 100, offers, former: None };
        match ask(&store, joining).await {
            Err(StoreError::Unreachable(_)) => {}
            answer => break answer.map(|_| session).unwrap(),
        }
    };
    let spans = ask(&store, claim(next, 1, 9)).await.unwrap().spans;
    assert_eq!((spans[0].0.range, spans[0].0.crashes), (Range { first: 1, len: 2 }, 0));
    assert_eq!(ask(&store, beat).await.unwrap_err(), Refusal::Stale.into());
}

#[tokio::test]
async fn an_interrupted_destruction_is_finished_by_the_next() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let client = join(&store, Kind::Client).await;
    ask(&store, submit(client, 1, &[b"1"])).await.unwrap();
    let node = join(&store, Kind::Node).await;
    assert_eq!(ask(&store, Destroy).await.unwrap_err(), Refusal::NodesAlive { nodes: 1 }.into());
    ask(&store, Leave { session: node }).await.unwrap();
    let other = RedisStore::open(&server.url(), name("fleet2"), RedisOptions::default()).unwrap();
    join(&other, Kind::Node).await;
    let before: u64 = behind(&server, "DBSIZE");
    let _: u64 = behind(&server, "HSET {fleet/0} destroying 3,7,2");
    let (host, pid, queues, offers) = ("here".to_owned(), 1, vec![], Vec::new());
    let (session, kind) = (SessionId::random(), Kind::Node);
    let joining = Join { session, kind, host, pid, queues, lease_ms: 60_000, heartbeat_ms: 100, offers, former: None };
    assert_eq!(ask(&store, joining.clone()).await.unwrap_err(), Refusal::Destroying.into());
    assert_eq!(ask(&store, Order::Pause(name("new"))).await.unwrap_err(), Refusal::Destroying.into());
    let removed = Some(Removed { queues: 3, messages: 7, errors: 2 });
    assert_eq!(ask(&store, Destroy).await.unwrap(), removed, "what was there when the first one began");
    let left: Vec<String> = behind(&server, "KEYS {fleet/0}*");
    assert!(left.is_empty(), "{left:?} of {before}");
    assert_eq!(ask(&other, TakeSurvey).await.unwrap().sessions.len(), 1);
    ask(&store, joining).await.unwrap();
}

#[tokio::test]
async fn reading_a_fleet_that_does_not_exist_creates_nothing() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let survey = ask(&store, TakeSurvey).await.unwrap();
    assert!(survey.sessions.is_empty() && survey.sources.is_empty() && survey.queues.is_empty());
    ask(&store, Peek { queue: name("q"), after: 0, upto: 9, limit: 9, max_bytes: 9 }).await.unwrap();
    ask(&store, ReadResult { queue: name("q"), id: MessageId(u64::MAX) }).await.unwrap();
    ask(&store, ReadBookmark { key: Key::new("k").unwrap() }).await.unwrap();
    ask(&store, Recount { max_hold_ms: 1 }).await.unwrap();
    ask(&store, Rewind { source: name("s"), goes_on: false }).await.unwrap();
    ask(&store, Destroy).await.unwrap();
    let stale = ask(&store, submit(SessionId::random(), 1, &[b"1"])).await.unwrap_err();
    assert_eq!(stale, Refusal::Stale.into());
    assert_eq!(behind::<u64>(&server, "DBSIZE"), 0);
}

#[tokio::test]
async fn a_newer_format_is_refused() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    join(&store, Kind::Client).await;
    let _: u64 = behind(&server, &format!("HSET {{fleet/0}} format {}", FORMAT + 1));
    let (host, pid, queues, offers) = ("here".to_owned(), 1, vec![], Vec::new());
    let (session, kind) = (SessionId::random(), Kind::Node);
    let joining = Join { session, kind, host, pid, queues, lease_ms: 60_000, heartbeat_ms: 100, offers, former: None };
    assert_eq!(
        ask(&store, joining).await.unwrap_err(),
        Refusal::NewerFormat { found: FORMAT + 1, known: FORMAT }.into()
    );
}

#[tokio::test]
async fn at_maxmemory_nothing_comes_in_and_everything_else_goes_on() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    ask(&store, submit(session, 1, &[b"1", b"2", b"3"])).await.unwrap();
    let _: String = behind(&server, "CONFIG SET maxmemory 1000");
    let refused = ask(&store, submit(session, 2, &[b"4"])).await.unwrap_err();
    let told = |text: &str| text.ends_with(" is at its maxmemory: raise it or let workers catch up");
    assert!(matches!(&refused, StoreError::NoRoom(text) if told(text)), "{refused:?}");
    ask(&store, claim(session, 1, 9)).await.unwrap();
    ask(&store, settle(session, 1, 1, 1, Outcome::Retry { after_ms: 60_000, error: String::new() })).await.unwrap();
    let mut dead = settle(session, 2, 2, 1, Outcome::Failed { error: "no".to_owned() });
    dead.runs[0].claim_no = 1;
    ask(&store, dead).await.unwrap();
    ask(&store, Beat { session, report: Bytes::from_static(b"{}"), asks: Vec::new() }).await.unwrap();
    join(&store, Kind::Client).await;
    ask(&store, Leave { session }).await.unwrap();
    let books = books(&store).await;
    assert_eq!((books.pushed, books.ready, books.delayed, books.failed), (3, 1, 1, 1));
    let _: String = behind(&server, "CONFIG SET maxmemory 0");
    assert!(ask(&store, Recount { max_hold_ms: 1 }).await.unwrap().queues.iter().all(QueueRecount::balance));
}

#[tokio::test]
async fn ids_and_sums_are_exact_up_to_the_last_id() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    let last = MessageId::MAX.0 - 3;
    for pushed_or_done in [0, 9] {
        set_count(&server, pushed_or_done, last as f64);
    }
    let first = last + 1;
    let verdicts = ask(&store, submit(session, 1, &[b"1", b"2", b"3"])).await.unwrap().submissions;
    assert_eq!(verdicts, [SubmissionVerdict::Stored { first }]);
    assert_eq!(ask(&store, submit(session, 2, &[b"4"])).await.unwrap().submissions, [SubmissionVerdict::Full]);
    let spans = ask(&store, claim(session, 1, 9)).await.unwrap().spans;
    assert_eq!(spans[0].0.range, Range { first, len: 3 });
    let outcome = Outcome::Done { result: Some(Bytes::from_static(b"17")), follow_ups: vec![] };
    assert!(ask(&store, settle(session, 1, first + 1, 1, outcome)).await.unwrap().refused.is_empty());
    let result = ask(&store, ReadResult { queue: name("q"), id: MessageId(first + 1) }).await.unwrap();
    assert_eq!(result.as_deref(), Some(&b"17"[..]));
    let books = books(&store).await;
    assert_eq!((books.pushed, books.in_flight, books.done), (MessageId::MAX.0, 2, last + 1));
    assert_eq!(books.done_sum, IdSum::of(Range { first: first + 1, len: 1 }));
    let recounted = ask(&store, Recount { max_hold_ms: 1 }).await.unwrap();
    let of_both = IdSum::of(Range { first, len: 1 }).plus(IdSum::of(Range { first: first + 2, len: 1 }));
    assert_eq!(recounted.queues[0].in_flight, Counted { count: 2, sum: of_both, bytes: 9 + 2 * 5 });
}

/// TLS spoken to a server without it: how that ends is up to the server.
fn unfit_or_away(error: StoreError) {
    assert!(matches!(error, StoreError::Unfit(_) | StoreError::Unreachable(_)), "{error:?}");
    println!("{error}");
}

#[tokio::test]
async fn unfit_servers_are_told_apart() {
    let survey = async |url: &str| {
        let store = RedisStore::open(url, name("fleet"), RedisOptions::default()).unwrap();
        ask(&store, TakeSurvey).await.unwrap_err()
    };
    let unfit = |error: StoreError, why: &str| {
        assert!(matches!(&error, StoreError::Unfit(text) if text.contains(why)), "{error:?}, not {why}");
    };
    let server = RedisServer::start(&["--requirepass", "secret"]);
    unfit(survey(&server.url()).await, "wants a password");
    unfit(survey(&(server.url() + "1")).await, "wants a password");
    let wrong = survey(&format!("redis://:wrong@127.0.0.1:{}", server.port)).await;
    assert!(!wrong.to_string().contains("wrong@"), "{wrong}");
    unfit(wrong, "does not take the user or password");
    let right = format!("redis://:secret@127.0.0.1:{}", server.port);
    let right = RedisStore::open(&right, name("fleet"), RedisOptions::default()).unwrap();
    ask(&right, TakeSurvey).await.unwrap();

    let replica = RedisServer::start(&["--replicaof", "127.0.0.1 1"]);
    unfit(survey(&replica.url()).await, "replica");

    unfit_or_away(survey(&server.url().replace("redis:", "rediss:")).await);

    let port = answers_once(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    unfit(survey(&format!("redis://127.0.0.1:{port}")).await, "does not speak Redis");

    let port = answers_once(b"$3000\r\n# Server");
    let cut = survey(&format!("redis://127.0.0.1:{port}")).await;
    assert!(cut.is_retryable(), "a connection cut within an answer: {cut:?}");

    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let away = survey(&format!("redis://127.0.0.1:{port}")).await;
    let text = format!("cannot reach redis://127.0.0.1:{port}: connection refused");
    assert_eq!(away, StoreError::Unreachable(text));
}

/// A port where somebody answers this to whatever is asked, and hangs up.
fn answers_once(answer: &'static [u8]) -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _read = stream.read(&mut [0; 64]).unwrap();
        stream.write_all(answer).unwrap();
    });
    port
}
