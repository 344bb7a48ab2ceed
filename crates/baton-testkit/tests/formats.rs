//! Stores of every earlier format are refused until they are migrated, and then hold what they held.
//!
//! A fixture holds messages in every state: waiting, delayed, in flight, suspect, failed, removed, requeued; a key, a
//! bookmark, a result, a paused queue, and a source midway, from format 6 on singles; three sessions are silent. See
//! `fixtures/README.md`.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at what it did not expect")]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use baton::{
    DEFAULT_FLEET, Fleet, FleetOptions, Key, MessageId, Name, SessionId,
    admin::{Admin, AdminError, Migrated, MigrationProgress},
    builtin::Tick,
    store::{
        Books, Claim, Clock, Conversion, FORMAT, Join, KEY_TTL_MS, Kind, Leave, MAX_KEYS, Offer, Order, Peek,
        ReadBookmark, ReadResult, Recount, RedisOptions, RedisStore, Refusal, Settle, SqliteOptions, SqliteStore,
        Store, StoreError, SubmissionVerdict, Submit, Take, TakeSurvey, ask,
        message::{Body, Digest, Outcome, Parcel, Range, Run, Submission, SubmissionKey},
    },
};
use baton_testkit::server::RedisServer;

/// The formats of which there are fixtures. Format 7 differs from 6 only in Redis, by what a fixture of 6 is converted to.
const FIXTURES: std::ops::Range<u32> = 1..7;
/// Store time when the fixtures were written.
const WRITTEN_MS: u64 = 1_700_000_001_500;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A fixture that may be changed, and what it lies in.
enum Home {
    File(tempfile::TempDir),
    Server(Box<RedisServer>),
}

impl Home {
    fn sqlite(format: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(fixture(&format!("format-{format}.sqlite")), Self::file(folder.path())).unwrap();
        Self::File(folder)
    }

    fn redis(format: u32) -> Self {
        Self::Server(Box::new(RedisServer::start_from(&fixture(&format!("format-{format}.rdb")))))
    }

    fn file(folder: &Path) -> PathBuf {
        folder.join("store.db")
    }

    /// The store, at the time it was written.
    fn open(&self) -> Arc<dyn Store> {
        let fleet = name(DEFAULT_FLEET);
        match self {
            Self::File(folder) => {
                let options = SqliteOptions { clock: Clock::manual(WRITTEN_MS), create: false };
                Arc::new(SqliteStore::open(&Self::file(folder.path()), fleet, options).unwrap())
            }
            Self::Server(server) => {
                let options = RedisOptions { test_clock: true, ..RedisOptions::default() };
                Arc::new(RedisStore::open(&server.url(), fleet, options).unwrap())
            }
        }
    }
}

fn join(kind: Kind, queues: &[&str], offers: Vec<Offer>) -> Join {
    let (session, host, pid) = (SessionId::random(), "here".to_owned(), 7);
    let queues = queues.iter().map(|queue| name(queue)).collect();
    Join { session, kind, host, pid, queues, lease_ms: 60_000, heartbeat_ms: 100, offers, former: None }
}

async fn migrate(store: &Arc<dyn Store>) -> Result<Migrated, AdminError> {
    let fleet = Fleet::over(Arc::clone(store), FleetOptions::new(name(DEFAULT_FLEET)));
    Admin::new(&fleet).migrate(|_| ()).await
}

/// Nobody may use it, whatever they want.
async fn is_refused(store: &dyn Store, found: u32) {
    let older = StoreError::Refused(Refusal::OlderFormat { found, known: FORMAT });
    assert_eq!(ask(store, join(Kind::Client, &[], Vec::new())).await.unwrap_err(), older);
    assert_eq!(ask(store, TakeSurvey).await.unwrap_err(), older);
    assert_eq!(ask(store, Recount { max_hold_ms: 1_000 }).await.unwrap_err(), older);
    assert_eq!(ask(store, ReadBookmark { key: Key::new("import").unwrap() }).await.unwrap_err(), older);
    assert_eq!(ask(store, ReadResult { queue: name("work"), id: MessageId(1) }).await.unwrap_err(), older);
    assert_eq!(ask(store, peek()).await.unwrap_err(), older);
    assert_eq!(ask(store, Order::Resume(name("import"))).await.unwrap_err(), older);
    assert!(!older.is_retryable() && older.to_string().contains("migrate"));
}

fn peek() -> Peek {
    Peek { queue: name("work"), after: 0, upto: 1 << 40, limit: 99, max_bytes: 1 << 20 }
}

/// What a queue has in each state, and the sums of what has gone.
fn figures(books: &Books) -> [u64; 8] {
    [books.pushed, books.ready, books.delayed, books.in_flight, books.done, books.failed, books.removed, books.requeued]
}

/// Everything is there: books, bodies, key, bookmark, result, error, and the place of the source.
async fn holds_all(store: &Arc<dyn Store>) {
    let recounted = ask(&**store, Recount { max_hold_ms: 1_000 }).await.unwrap();
    assert!(recounted.queues.iter().all(|queue| queue.balance()), "{recounted:?}");
    assert!(recounted.queues.iter().all(|queue| queue.bytes() == queue.books.bytes), "{recounted:?}");
    let survey = ask(&**store, TakeSurvey).await.unwrap();
    assert!(survey.sessions.is_empty());
    let books: BTreeMap<String, &Books> = survey.queues.iter().map(|it| (it.queue.to_string(), it)).collect();
    assert_eq!(figures(books["import"]), [3, 3, 0, 0, 0, 0, 0, 0]);
    assert_eq!(figures(books["long"]), [40, 40, 0, 0, 0, 0, 0, 0]);
    assert_eq!(figures(books["ticks"]), [7, 7, 0, 0, 0, 0, 0, 0]);
    assert_eq!(figures(books["work"]), [21, 13, 2, 0, 4, 1, 1, 1]);
    assert_eq!((books["import"].paused, books["work"].bytes, books["long"].bytes), (true, 216, 9180));
    let source = survey.sources.first().unwrap();
    assert_eq!((source.cursor.as_str(), source.ended, source.holder), ("7", false, None));

    let errors = ask(&**store, peek()).await.unwrap().errors;
    assert_eq!(errors.len(), 1);
    assert_eq!((errors[0].id.0, errors[0].error.as_str(), &errors[0].body[..]), (7, "no good", &b"{\"n\":7}"[..]));
    assert!(errors[0].headers.is_empty());
    let result = ask(&**store, ReadResult { queue: name("work"), id: MessageId(1) }).await.unwrap();
    assert_eq!(result.unwrap(), "{\"made\":1}");
    let bookmark = ask(&**store, ReadBookmark { key: Key::new("import").unwrap() }).await.unwrap();
    assert_eq!(bookmark.lines, 3);

    let worker = join(Kind::Node, &["work"], Vec::new());
    let session = worker.session;
    ask(&**store, worker).await.unwrap();
    let body = b"{\"keyed\":1}";
    let key = SubmissionKey { key: Key::new("once").unwrap(), digest: Digest::of(body), lives_ms: KEY_TTL_MS };
    let submissions = vec![Submission {
        queue: name("work"),
        parcel: Parcel::single(Body::new(body).unwrap()),
        key: Some(key),
        call: None,
    }];
    let submit =
        Submit { session, submit_no: 1, submissions, bookmark: None, max_queue_bytes: 1 << 30, max_keys: MAX_KEYS };
    assert_eq!(ask(&**store, submit).await.unwrap().submissions, [SubmissionVerdict::Duplicate { first: 21 }]);
    ask(&**store, Order::Resume(name("import"))).await.unwrap();
    every_body(store, session).await;
    let second = join(Kind::Node, &["work"], Vec::new());
    let other = second.session;
    ask(&**store, second).await.unwrap();
    assert_eq!(claimed(store, other, "work", 1).await, [(12, 2, "{\"n\":12}".to_owned())], "the other suspect");
    for session in [session, other] {
        ask(&**store, Leave { session }).await.unwrap();
    }
}

/// Claims from a queue: id, crashes and body of each message.
async fn claimed(store: &Arc<dyn Store>, session: SessionId, queue: &str, claim_no: u64) -> Vec<(u64, u32, String)> {
    let claim = Claim { session, queue: name(queue), claim_no, n: 99, max_bytes: 1 << 20 };
    let spans = ask(&**store, claim).await.unwrap().spans;
    let of_span = |(span, parcel): &(baton::store::message::Span, Parcel)| -> Vec<_> {
        let bodies = parcel.bodies().map(|body| String::from_utf8(body.to_vec()).unwrap());
        (span.range.first..).zip(bodies).map(|(id, body)| (id, span.crashes, body)).collect()
    };
    spans.iter().flat_map(of_span).collect()
}

/// What waited has its body as before; what silent nodes held is back with a crash.
async fn every_body(store: &Arc<dyn Store>, session: SessionId) {
    let work = claimed(store, session, "work", 1).await;
    let numbered = |id: u64, crashes: u32| (id, crashes, format!("{{\"n\":{id}}}"));
    let mut expected = vec![numbered(11, 3), numbered(9, 1)];
    expected.extend((13..=20).map(|id| numbered(id, 0)));
    expected.extend([(21, 0, "{\"keyed\":1}".to_owned()), numbered(10, 0)]);
    assert_eq!(work, expected, "of two suspects one");
    let long = claimed(store, session, "long", 1).await;
    let body = |n: usize| format!("\"{n} {}\"", "x".repeat(200 + n));
    let expected: Vec<_> = (1..=40).map(|n: usize| (n as u64, u32::from(n <= 5), body(n))).collect();
    assert_eq!(long, expected);
    let import: Vec<String> = claimed(store, session, "import", 1).await.into_iter().map(|it| it.2).collect();
    assert_eq!(import, ["10", "11", "12"]);
    let ticks: Vec<String> = claimed(store, session, "ticks", 1).await.into_iter().map(|it| it.2).collect();
    assert_eq!(ticks, (1..=7).map(|tick| format!("{{\"tick\":{tick}}}")).collect::<Vec<_>>());
}

/// What was pushed one by one: in Redis a line, a bundle and an inbox.
async fn singles_are_in_order(store: &Arc<dyn Store>) {
    let member = join(Kind::Node, &["singles"], Vec::new());
    let session = member.session;
    ask(&**store, member).await.unwrap();
    let mut singles = Vec::new();
    for claim_no in 1..=2 {
        singles.extend(claimed(store, session, "singles", claim_no).await);
    }
    let expected: Vec<_> = (1..=150usize).map(|n| (n as u64, 0, format!("\"{n}{}\"", "x".repeat(n % 7)))).collect();
    assert_eq!(singles, expected);
    ask(&**store, Leave { session }).await.unwrap();
}

/// A node that offers the source goes on with the eighth tick, once each.
async fn source_goes_on(store: &Arc<dyn Store>) {
    let offer = Offer { source: name("ticks"), queue: name("ticks"), definition: Digest::of(b"tick"), adopts: false };
    let holder = join(Kind::Node, &[], vec![offer]);
    let session = holder.session;
    ask(&**store, holder).await.unwrap();
    assert_eq!(ask(&**store, Take { session, source: name("ticks") }).await.unwrap().cursor, "7");
    ask(&**store, Leave { session }).await.unwrap();
    let fleet = Fleet::over(Arc::clone(store), FleetOptions::new(name(DEFAULT_FLEET)));
    let (heard, seen) = tokio::sync::mpsc::unbounded_channel();
    let mut seen = seen;
    let node = fleet
        .node()
        .source_into("ticks", "ticks", Tick::every(std::time::Duration::from_millis(1)).count(20))
        .handler("ticks", move |tick: serde_json::Value, _| {
            heard.send(tick["tick"].as_u64().unwrap()).unwrap();
            async { Ok(baton::Done::default()) }
        });
    let shutdown = baton::Shutdown::new();
    let running = tokio::spawn({
        let shutdown = shutdown.clone();
        async move { node.run(shutdown).await }
    });
    let mut ticks = Vec::new();
    while ticks.len() < 20 {
        ticks.push(seen.recv().await.unwrap());
    }
    shutdown.graceful();
    running.await.unwrap().unwrap();
    ticks.sort_unstable();
    assert_eq!(ticks, (1..=20).collect::<Vec<_>>());
    let survey = ask(&**store, TakeSurvey).await.unwrap();
    assert!(survey.sources[0].ended && survey.sources[0].cursor == "20");
    let recounted = ask(&**store, Recount { max_hold_ms: 1_000 }).await.unwrap();
    assert!(recounted.queues.iter().all(|queue| queue.balance()), "{recounted:?}");
}

async fn is_migrated(home: Home, format: u32) {
    let store = home.open();
    is_refused(&*store, format).await;
    let mut told = Vec::new();
    let fleet = Fleet::over(Arc::clone(&store), FleetOptions::new(name(DEFAULT_FLEET)));
    let did = Admin::new(&fleet).migrate(|progress| told.push(progress)).await.unwrap();
    let expected = Migrated { migrated: true, from: Some(format), to: FORMAT, sessions: 3, back: 7, failed: 0 };
    assert_eq!(did, expected);
    let time = std::time::Duration::from_millis(1_200);
    assert_eq!(told[0], MigrationProgress::Watching { sessions: 3, time });
    assert_eq!(told.last(), Some(&MigrationProgress::Converting { done: 3, left: 0 }));
    let again = migrate(&store).await.unwrap();
    assert_eq!((again.migrated, again.from), (false, Some(FORMAT)));
    holds_all(&store).await;
    if format == 6 {
        singles_are_in_order(&store).await;
    }
    // Opened by another, as after a restart.
    source_goes_on(&home.open()).await;
}

/// Killed after each of its steps, with another process to go on each time.
async fn goes_on_after_kills(home: Home, format: u32) {
    let since = home.open().standing().await.unwrap();
    let mut steps = 0;
    loop {
        let store = home.open();
        let Conversion::Step { left, .. } = store.convert(since.clone()).await.unwrap() else { panic!() };
        steps += 1;
        if left == 0 {
            break;
        }
        is_refused(&*home.open(), format).await;
    }
    assert_eq!(steps, if matches!(home, Home::File(_)) { 1 } else { 3 }, "a session a step in Redis");
    let store = home.open();
    assert!(!migrate(&store).await.unwrap().migrated);
    holds_all(&store).await;
    if let Home::File(folder) = &home {
        let head = std::fs::read(Home::file(folder.path())).unwrap();
        assert_ne!(head[64..68], [0; 4], "pages can leave the file from now on");
    }
}

/// Whoever calls while it is watched keeps it as it is.
async fn is_refused_while_used(home: Home, format: u32) {
    let store = home.open();
    let since = store.standing().await.unwrap();
    call_as_delta(&home).await;
    assert_eq!(store.convert(since.clone()).await.unwrap(), Conversion::Disturbed);
    let now = store.standing().await.unwrap();
    assert_eq!(now.alive_since(&since).map(|it| it.host.as_str()).collect::<Vec<_>>(), ["delta"]);
    let fleet = Fleet::over(Arc::clone(&store), FleetOptions::new(name(DEFAULT_FLEET)));
    let admin = Admin::new(&fleet);
    let (watching, watched) = tokio::sync::oneshot::channel();
    let mut watching = Some(watching);
    let migration = admin.migrate(|progress| {
        if matches!(progress, MigrationProgress::Watching { .. }) {
            watching.take().unwrap().send(()).unwrap();
        }
    });
    let call = async {
        watched.await.unwrap();
        call_as_delta(&home).await;
    };
    let (migrated, ()) = tokio::join!(migration, call);
    let Err(AdminError::InUse { by }) = migrated else { panic!("{migrated:?}") };
    assert_eq!(by.iter().map(ToString::to_string).collect::<Vec<_>>(), ["delta/11"]);
    is_refused(&*store, format).await;
}

/// What a call of the session that joined last leaves behind, in the words of every format.
async fn call_as_delta(home: &Home) {
    match home {
        Home::File(folder) => {
            let file = rusqlite::Connection::open(Home::file(folder.path())).unwrap();
            file.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
            let sql = "BEGIN IMMEDIATE; UPDATE fleets SET clock = clock + 1, last = last + 1; \
                       UPDATE sessions SET expires = expires + 1 WHERE session = (SELECT max(session) FROM sessions); COMMIT";
            file.execute_batch(sql).unwrap();
        }
        Home::Server(server) => {
            let client = redis::Client::open(server.url()).unwrap();
            let mut connection = client.get_multiplexed_async_connection().await.unwrap();
            let delta = format!("{:032x}", 5);
            redis::pipe()
                .atomic()
                .cmd("HINCRBY")
                .arg("{baton/0}")
                .arg("clock")
                .arg(1)
                .cmd("HINCRBY")
                .arg("{baton/0}")
                .arg("last")
                .arg(1)
                .cmd("ZINCRBY")
                .arg("{baton/0}:sessions")
                .arg(1)
                .arg(delta)
                .exec_async(&mut connection)
                .await
                .unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_format_1_is_migrated() {
    is_migrated(Home::sqlite(1), 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_format_2_is_migrated() {
    is_migrated(Home::sqlite(2), 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_format_3_is_migrated() {
    is_migrated(Home::sqlite(3), 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_format_4_is_migrated() {
    is_migrated(Home::sqlite(4), 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_format_5_is_migrated() {
    is_migrated(Home::sqlite(5), 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_format_6_is_migrated() {
    is_migrated(Home::sqlite(6), 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_format_1_is_migrated() {
    is_migrated(Home::redis(1), 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_format_2_is_migrated() {
    is_migrated(Home::redis(2), 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_format_3_is_migrated() {
    is_migrated(Home::redis(3), 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_format_4_is_migrated() {
    is_migrated(Home::redis(4), 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_format_5_is_migrated() {
    is_migrated(Home::redis(5), 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_format_6_is_migrated() {
    is_migrated(Home::redis(6), 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_earlier_format_is_migrated_in_spite_of_kills() {
    for format in FIXTURES {
        goes_on_after_kills(Home::sqlite(format), format).await;
        goes_on_after_kills(Home::redis(format), format).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_format_is_migrated_while_it_is_used() {
    for format in FIXTURES {
        is_refused_while_used(Home::sqlite(format), format).await;
        is_refused_while_used(Home::redis(format), format).await;
    }
}

/// Bundles of former formats held their entries: more of them than one step looks at, some of entries of one length.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_line_of_bundles_is_converted_in_steps() {
    const BUNDLES: u64 = 150;
    const EACH: u64 = 128;
    let home = Home::redis(6);
    let Home::Server(server) = &home else { unreachable!() };
    let mut connection = redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
    let body = |id: u64| if id % 256 < EACH { format!("{id:06}") } else { id.to_string() };
    let (mut written, mut bytes) = (redis::pipe(), 0);
    written.cmd("DEL").arg("{baton/0}:r:singles").arg("{baton/0}:i:singles");
    for first in (0..BUNDLES).map(|nth| nth * EACH + 1) {
        let entry = |id: u64| {
            let body = format!("\"{}\"", body(id));
            [b"1700000001500|", &Parcel::single(Body::new(body.as_bytes()).unwrap()).bytes()[..]].concat()
        };
        let entries: Vec<_> = (first..first + EACH).map(entry).collect();
        bytes += entries.iter().map(|entry| entry.len() as u64 - 14).sum::<u64>();
        let lengths: Vec<_> = entries.iter().map(|entry| entry.len().to_string()).collect();
        let same = lengths.iter().all(|length| *length == lengths[0]);
        let lengths = if same { lengths[0].clone() } else { lengths.join(";") };
        let bundle = [format!("*{first},{EACH},{lengths}|").into_bytes(), entries.concat()].concat();
        written.cmd("RPUSH").arg("{baton/0}:r:singles").arg(bundle);
    }
    // Pushed, bytes and ready, by their places.
    for (place, count) in [(0, BUNDLES * EACH), (1, bytes), (6, BUNDLES * EACH)] {
        let packed = (count as f64).to_le_bytes();
        written.cmd("SETRANGE").arg("{baton/0}:k:singles").arg(place * 8).arg(&packed[..]);
    }
    // Another queue, called as an inbox of the first one would be if it had kept its letter.
    let shadow = format!("singles:{}", BUNDLES * EACH);
    for kind in ["k", "q", "r"] {
        let [from, to] = ["singles", &shadow].map(|queue| format!("{{baton/0}}:{kind}:{queue}"));
        written.cmd("COPY").arg(from).arg(to);
    }
    let entry = [b"1700000001500|", &Parcel::single(Body::new(b"7").unwrap()).bytes()[..]].concat();
    written.cmd("RPUSH").arg(format!("{{baton/0}}:i:{shadow}")).arg(entry);
    written.cmd("DEL").arg(format!("{{baton/0}}:r:{shadow}"));
    for (place, count) in [(0, 0_f64), (1, 0.0), (6, 0.0)] {
        written.cmd("SETRANGE").arg(format!("{{baton/0}}:k:{shadow}")).arg(place * 8).arg(&count.to_le_bytes()[..]);
    }
    written.cmd("SADD").arg("{baton/0}:queues").arg(&shadow);
    written.exec_async(&mut connection).await.unwrap();

    let store = home.open();
    let since = store.standing().await.unwrap();
    let mut steps = 0;
    loop {
        steps += 1;
        match home.open().convert(since.clone()).await.unwrap() {
            Conversion::Step { left: 0, .. } => break,
            step => assert!(matches!(step, Conversion::Step { .. }), "{step:?}"),
        }
    }
    assert!(steps > 4, "{steps} steps");
    let recounted = ask(&*store, Recount { max_hold_ms: 10_000 }).await.unwrap();
    assert!(recounted.queues.iter().all(|queue| queue.balance()), "{recounted:?}");
    assert!(recounted.queues.iter().all(|queue| queue.bytes() == queue.books.bytes), "{recounted:?}");
    let worker = join(Kind::Node, &["singles", &shadow], Vec::new());
    let session = worker.session;
    ask(&*store, worker).await.unwrap();
    assert_eq!(claimed(&store, session, &shadow, 1).await, [(1, 0, "7".to_owned())]);
    let mut seen = 0;
    for claim_no in 1.. {
        let given = claimed(&store, session, "singles", claim_no).await;
        if given.is_empty() {
            break;
        }
        let range = Range { first: seen + 1, len: given.len() as u32 };
        for (id, _, found) in given {
            seen += 1;
            assert_eq!((id, found), (seen, format!("\"{}\"", body(seen))));
        }
        let runs = vec![Run { claim_no, queue: name("singles"), range, outcome: Outcome::DONE }];
        let settle = Settle { session, settle_no: claim_no, runs, max_results: baton::store::MAX_RESULTS };
        assert_eq!(ask(&*store, settle).await.unwrap().refused, []);
    }
    assert_eq!(seen, BUNDLES * EACH);
}

#[tokio::test]
async fn an_empty_store_needs_no_migration() {
    let server = RedisServer::start_from(&fixture("format-1.rdb"));
    let store = RedisStore::open(&server.url(), name("another"), RedisOptions::default()).unwrap();
    let did = migrate(&(Arc::new(store) as Arc<dyn Store>)).await.unwrap();
    assert_eq!((did.migrated, did.from), (false, None));
}
