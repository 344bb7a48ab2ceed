//! What a file gives back: pages that nothing is in, after the messages are done and after a destruction. Counted, not timed.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use baton::{
    SessionId,
    store::{
        Beat, Claim, Destroy, Recount, Settle, SqliteStore, Store as _, Submit, TakeSurvey, ask,
        message::{Outcome, Run, Submission},
    },
};
use rusqlite::Connection;

use crate::{join, name, open, parcel};

/// What is left free, and what an empty store takes.
const SMALL: u32 = 256 + 100;

fn number(path: &Path, pragma: &str) -> u32 {
    Connection::open(path).unwrap().pragma_query_value(None, pragma, |row| row.get(0)).unwrap()
}

/// Waits until this holds of the file; a minute is more than it ever takes.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The body of each message that is stored under a number: no two are alike.
fn body(submit_no: u64) -> String {
    format!("\"{}\"", format!("{submit_no} ").repeat(3_000))
}

/// Stores so many parcels of about 100 KB, by turns in these queues; the first number is 1.
async fn fill(store: &SqliteStore, session: SessionId, queues: &[&str], parcels: u64) {
    for (submit_no, queue) in (1..=parcels).zip(queues.iter().cycle()) {
        let body = body(submit_no);
        let submissions =
            vec![Submission { queue: name(queue), parcel: parcel(&[body.as_bytes(); 10]), key: None, call: None }];
        let submit =
            Submit { session, submit_no, submissions, bookmark: None, max_queue_bytes: 1 << 30, max_keys: 100 };
        ask(store, submit).await.unwrap();
    }
}

/// Has everything in a queue done; how many messages that was.
async fn work_off(store: &SqliteStore, session: SessionId, queue: &str) -> u64 {
    let mut done = 0;
    for no in 1.. {
        let claim = Claim { session, claim_no: no, n: 100, max_bytes: 4 << 20, queue: name(queue) };
        let spans = ask(store, claim).await.unwrap().spans;
        if spans.is_empty() {
            break;
        }
        let run = |range| Run { claim_no: no, queue: name(queue), range, outcome: Outcome::DONE };
        let runs: Vec<Run> = spans.iter().map(|(span, _)| run(span.range)).collect();
        done += runs.iter().map(|run| u64::from(run.range.len)).sum::<u64>();
        assert!(
            ask(store, Settle { session, settle_no: no, runs, max_results: baton::store::MAX_RESULTS })
                .await
                .unwrap()
                .refused
                .is_empty()
        );
    }
    done
}

#[tokio::test]
async fn when_all_messages_are_done_the_file_is_small_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (store, session) = (open(&path, "baton", true), SessionId::random());
    ask(&store, join(session)).await.unwrap();
    fill(&store, session, &["a"], 400).await;
    let full = number(&path, "page_count");
    assert!(full > 9_000, "{full}");
    assert_eq!(work_off(&store, session, "a").await, 4_000);
    until("few pages are left", || number(&path, "page_count") <= SMALL).await;
    until("the file is short", || fs::metadata(&path).unwrap().len() <= u64::from(SMALL) * 4_096).await;
    fill_again(&store, &path, session).await;
}

/// The file can be used as before.
async fn fill_again(store: &SqliteStore, path: &Path, session: SessionId) {
    let submissions = vec![Submission { queue: name("b"), parcel: parcel(&[b"1"]), key: None, call: None }];
    let submit =
        Submit { session, submit_no: 401, submissions, bookmark: None, max_queue_bytes: 1 << 30, max_keys: 100 };
    ask(store, submit).await.unwrap();
    let recounted = ask(store, Recount { max_hold_ms: 0 }).await.unwrap();
    assert!(recounted.queues.iter().all(|queue| queue.balance()));
    is_whole(path);
}

fn is_whole(path: &Path) {
    let db = Connection::open(path).unwrap();
    let found: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(found, "ok");
}

/// Beats go on while nothing else happens, and others have the store open too.
#[tokio::test]
async fn the_log_of_a_quiet_fleet_is_short() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (store, session) = (open(&path, "baton", true), SessionId::random());
    ask(&store, join(session)).await.unwrap();
    let other = open(&path, "other", true);
    ask(&other, join(session)).await.unwrap();
    let log = || fs::metadata(folder.path().join("x.db-wal")).map_or(0, |log| log.len());
    fill(&store, session, &["a"], 70).await;
    assert!(log() > 6 << 20, "{}", log());
    let deadline = Instant::now() + Duration::from_secs(60);
    while log() > 4 << 20 {
        assert!(Instant::now() < deadline, "the log keeps its {} bytes", log());
        ask(&other, Beat { session, report: Vec::new().into(), asks: Vec::new() }).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(ask(&other, TakeSurvey).await.unwrap().queues.len(), 0);
    assert_eq!(work_off(&store, session, "a").await, 700);
}

#[tokio::test]
async fn a_process_that_ends_at_once_leaves_a_small_file_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (store, session) = (open(&path, "baton", true), SessionId::random());
    ask(&store, join(session)).await.unwrap();
    fill(&store, session, &["a"], 100).await;
    let full = number(&path, "page_count");
    assert_eq!(work_off(&store, session, "a").await, 1_000);
    store.close().await;
    let left = number(&path, "page_count");
    assert!(left < full / 2, "{left} pages of {full}");
    is_whole(&path);
}

#[tokio::test]
async fn what_still_waits_is_moved_to_the_front_of_the_file_and_unharmed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (store, session) = (open(&path, "baton", true), SessionId::random());
    ask(&store, join(session)).await.unwrap();
    fill(&store, session, &["gone", "gone", "kept"], 300).await;
    let full = number(&path, "page_count");
    assert_eq!(work_off(&store, session, "gone").await, 2_000);
    until("two thirds of the pages leave", || number(&path, "page_count") < full / 2).await;
    until("few are free", || number(&path, "freelist_count") <= 256).await;
    is_whole(&path);
    // A body whose page was mixed up with another's would not be what was pushed.
    let claim = Claim { session, claim_no: 1, n: 2_000, max_bytes: 1 << 30, queue: name("kept") };
    let spans = ask(&store, claim).await.unwrap().spans;
    assert_eq!(spans.len(), 100);
    for (nth, (_, kept)) in (1..).zip(&spans) {
        assert_eq!(*kept, parcel(&[body(3 * nth).as_bytes(); 10]));
    }
}

#[tokio::test]
async fn a_destruction_leaves_a_small_file_and_other_fleets_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (red, blue, session) = (open(&path, "red", true), open(&path, "blue", true), SessionId::random());
    for (store, parcels) in [(&red, 300), (&blue, 10)] {
        ask(store, join(session)).await.unwrap();
        fill(store, session, &["a", "b"], parcels).await;
    }
    ask(&red, Destroy).await.unwrap();
    assert_eq!(number(&path, "freelist_count"), 0);
    let left = number(&path, "page_count");
    assert!(left < 400, "{left} pages for a megabyte");
    assert!(ask(&red, TakeSurvey).await.unwrap().queues.is_empty());
    let recounted = ask(&blue, Recount { max_hold_ms: 0 }).await.unwrap();
    assert!(recounted.queues.iter().all(|queue| queue.balance() && queue.ready.count == 50));
    ask(&blue, Destroy).await.unwrap();
    assert!(number(&path, "page_count") < 100);
    let rows = "SELECT (SELECT count(*) FROM parcels) + (SELECT count(*) FROM queues) + (SELECT count(*) FROM fleets)";
    assert_eq!(Connection::open(&path).unwrap().query_row(rows, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

#[tokio::test]
async fn a_destruction_that_was_cut_off_is_finished_by_whoever_comes_next() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let session = SessionId::random();
    let first = open(&path, "baton", true);
    ask(&first, join(session)).await.unwrap();
    fill(&first, session, &["a"], 400).await;
    drop(first);
    // As a destruction leaves it that dies after its first step.
    let sql = "UPDATE fleets SET name = ' ' || fleet";
    assert_eq!(Connection::open(&path).unwrap().execute(sql, []).unwrap(), 1);
    let next = open(&path, "baton", true);
    assert!(ask(&next, TakeSurvey).await.unwrap().queues.is_empty(), "it is gone from the first moment");
    ask(&next, join(session)).await.unwrap();
    fill(&next, session, &["a"], 1).await;
    until("the rest is removed", || number(&path, "page_count") <= SMALL).await;
    let queues = ask(&next, TakeSurvey).await.unwrap().queues;
    assert_eq!((queues.len(), queues[0].ready), (1, 10));
    is_whole(&path);
}

#[tokio::test]
async fn a_file_of_former_times_works_as_before_and_is_small_after_a_destruction() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let session = SessionId::random();
    let store = open(&path, "baton", true);
    ask(&store, join(session)).await.unwrap();
    store.close().await;
    Connection::open(&path).unwrap().execute_batch("PRAGMA auto_vacuum = NONE; VACUUM").unwrap();
    assert_eq!(number(&path, "auto_vacuum"), 0);
    fill(&store, session, &["a"], 50).await;
    assert_eq!(work_off(&store, session, "a").await, 500);
    assert!(number(&path, "page_count") > 1_000);
    ask(&store, Destroy).await.unwrap();
    assert!(number(&path, "page_count") < 100);
    assert_eq!(number(&path, "auto_vacuum"), 0);
}
