//! Redis killed, rolled back and out of memory: the books balance and nothing acknowledged is lost.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::{fs::OpenOptions, path::PathBuf, sync::Arc, sync::atomic::Ordering::Relaxed, time::Duration};

use baton::{
    Name,
    store::{
        Beat, Books, Claim, Claimed, Kind, Recount, RedisOptions, RedisStore, Settle, Store, StoreError,
        SubmissionVerdict, Submit, TakeSurvey, ask,
        message::{Outcome, Run, Submission},
        session::{Session, SessionOptions},
    },
};
use baton_testkit::{
    load::{self, Load},
    machine,
    server::{Persistence, RedisServer},
    subject::test_fleet,
};
use bytes::Bytes;

fn store(server: &RedisServer) -> Arc<dyn Store> {
    Arc::new(RedisStore::open(&server.url(), test_fleet(), RedisOptions::default()).unwrap())
}

async fn deep_audit(server: &RedisServer) {
    let recounted = ask(&*store(server), Recount { max_hold_ms: 10_000 }).await.unwrap();
    for queue in &recounted.queues {
        assert!(queue.balance(), "{queue:?}");
    }
}

async fn books(server: &RedisServer, name: &Name) -> Books {
    let survey = ask(&*store(server), TakeSurvey).await.unwrap();
    survey.queues.into_iter().find(|books| books.queue == *name).unwrap_or_else(|| Books::new(name.clone()))
}

/// The bodies of the source's queue in the order of ids must be the positions 0, 1, 2 … without a gap or a repeat.
async fn check_positions(server: &RedisServer) -> u64 {
    let store = store(server);
    let options = SessionOptions { kind: Kind::Node, ..SessionOptions::client() };
    let session = Session::join(store, options).await.unwrap();
    let (mut position, mut id) = (0_u64, 1);
    while let Some(held) = session.claim(load::sourced(), 5_000, 1 << 24).await.unwrap().held {
        let (_, _, spans) = held.into_parts();
        for (span, parcel) in spans {
            assert_eq!(span.range.first, id, "ids are consecutive");
            id = span.range.end();
            for body in parcel.bodies() {
                assert_eq!(body, position.to_string(), "a gap or a repeat in the source");
                position += 1;
            }
        }
    }
    session.leave().await.unwrap();
    position
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_kills_with_a_synced_log_lose_nothing_acknowledged() {
    let (seed, _) = machine::settings(0, 0);
    println!("BATON_SEED={seed}");
    let mut server = RedisServer::start(Persistence::AofAlways);
    let load = Load::start(store(&server), seed);
    for round in 0..20 {
        load.progress(300).await;
        server.kill();
        server.restart();
        deep_audit(&server).await;
        println!("round {round}: {:?}", load.acknowledged);
    }
    load.progress(300).await;
    let told = load.stop().await;
    deep_audit(&server).await;
    let submitted = books(&server, &load::submitted()).await;
    // An unanswered call may have been carried out, so the store may know of more than callers were told.
    assert!(submitted.pushed >= told.submitted.load(Relaxed), "{submitted:?} {told:?}");
    assert!(submitted.done >= told.done.load(Relaxed), "{submitted:?} {told:?}");
    assert!(submitted.removed >= told.removed.load(Relaxed), "{submitted:?} {told:?}");
    assert!(check_positions(&server).await >= told.pushed.load(Relaxed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_tail_rolls_back_to_a_consistent_prefix() {
    let (seed, _) = machine::settings(0, 0);
    println!("BATON_SEED={seed}");
    let mut server = RedisServer::start(Persistence::AofEverySecond);
    let load = Load::start(store(&server), seed);
    let mut rolled_back = 0;
    for round in 0..8_u64 {
        load.progress(400).await;
        log_is_mended(&server).await;
        server.kill();
        let whole = moves(&server.copy(Persistence::AofEverySecond)).await;
        cut_tail(&server, 1 + (seed ^ (round * 7_919)) % 20_000);
        let cut = server.copy(Persistence::AofEverySecond);
        deep_audit(&cut).await;
        let cut = moves(&cut).await;
        assert!(cut.0 <= whole.0 && cut.1 <= whole.1, "{cut:?} {whole:?}");
        rolled_back += u64::from(cut != whole);
        server.restart();
        deep_audit(&server).await;
        let survey = ask(&*store(&server), TakeSurvey).await.unwrap();
        if let Some(source) = survey.sources.iter().find(|source| source.name == load::source()) {
            // The load may have pushed again already, but a cursor never runs ahead of the messages.
            let pushed = books(&server, &load::sourced()).await.pushed;
            assert!(source.cursor.parse::<u64>().unwrap_or(0) <= pushed, "{source:?} {pushed}");
        }
    }
    load.progress(300).await;
    load.stop().await;
    deep_audit(&server).await;
    assert!(check_positions(&server).await > 0);
    println!("{rolled_back} of 8 restarts took messages back");
    assert!(rolled_back > 0, "nothing was lost that could have been noticed");
}

/// Messages ever pushed and ever done.
async fn moves(server: &RedisServer) -> (u64, u64) {
    let (sourced, submitted) = (books(server, &load::sourced()).await, books(server, &load::submitted()).await);
    (sourced.pushed + submitted.pushed, sourced.done + submitted.done)
}

/// Returns when no rewrite of the server's log is under way or due.
async fn log_is_mended(server: &RedisServer) {
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    loop {
        let info: String = redis::cmd("INFO").arg("persistence").query_async(&mut connection).await.unwrap();
        if info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Takes bytes off the end of the server's newest log file, as a power cut does.
fn cut_tail(server: &RedisServer, bytes: u64) {
    let folder = server.folder().join("appendonlydir");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let log: PathBuf = files.filter(|path| path.to_string_lossy().ends_with(".incr.aof")).max().unwrap();
    let file = OpenOptions::new().write(true).open(log).unwrap();
    let len = file.metadata().unwrap().len();
    file.set_len(len.saturating_sub(bytes)).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn out_of_memory_refuses_pushes_whole_and_nothing_else() {
    let limits = ["--maxmemory", "6mb", "--maxmemory-policy", "noeviction"];
    let server = RedisServer::start_with(Persistence::None, &limits);
    let store = store(&server);
    let options = SessionOptions { kind: Kind::Node, lease: Duration::from_secs(30), ..SessionOptions::client() };
    let session = Session::join(store.clone(), options).await.unwrap().id();
    let submission = || Submission { queue: load::submitted(), parcel: load::parcel(0, 1_000), key: None, call: None };
    let submit = |submit_no| Submit {
        session,
        submit_no,
        submissions: vec![submission(), submission()],
        bookmark: None,
        max_queue_bytes: 1 << 40,
        max_keys: 9,
    };
    let mut stored = 0;
    let refusal = loop {
        match ask(&*store, submit(stored + 1)).await {
            Ok(answer) => {
                assert!(
                    answer.submissions.iter().all(|submission| matches!(submission, SubmissionVerdict::Stored { .. }))
                );
                stored += 1;
            }
            Err(error) => break error,
        }
    };
    assert!(matches!(&refusal, StoreError::NoRoom(why) if why.contains("maxmemory")), "{refusal:?}");
    assert_eq!(books(&server, &load::submitted()).await.pushed, stored * 2_000, "refused whole");
    deep_audit(&server).await;
    // Everything that makes room, or keeps a session alive, goes on.
    ask(&*store, Beat { session, report: Bytes::new(), asks: Vec::new() }).await.unwrap();
    for number in 1..=stored * 2 {
        let claim = Claim { session, queue: load::submitted(), claim_no: number, n: 1_000, max_bytes: 1 << 20 };
        let Claimed { queue, spans, .. } = ask(&*store, claim).await.unwrap();
        assert!(!spans.is_empty(), "messages are lost");
        let run = |range| Run { claim_no: number, queue: queue.clone(), range, outcome: Outcome::DONE };
        let runs = spans.iter().map(|(span, _)| run(span.range)).collect();
        let settled = ask(&*store, Settle { session, settle_no: number, runs, max_results: baton::store::MAX_RESULTS })
            .await
            .unwrap();
        assert_eq!(settled.refused, []);
    }
    let books = books(&server, &load::submitted()).await;
    assert_eq!((books.done, books.ready, books.in_flight), (stored * 2_000, 0, 0));
    ask(&*store, submit(stored + 1)).await.unwrap();
    deep_audit(&server).await;
}
