//! A foreign reader that holds a state of the store: the log is bounded, the reader is named, and all goes on without it.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use baton::{
    SessionId,
    store::{
        Beat, Claim, Settle, SqliteStore, Store as _, StoreError, StoreEvent, Submit, Submitted, TakeSurvey, ask,
        message::{Outcome, Run, Submission},
    },
};
use rusqlite::Connection;

use crate::{join, name, open, parcel};

const PATH: &str = "BATON_TEST_READ";

/// Not a test of its own: the process of a foreign reader, until its input ends.
#[test]
#[ignore = "is the other process of the test below"]
fn reader() {
    let Ok(path) = std::env::var(PATH) else { return };
    let db = Connection::open(path).unwrap();
    db.execute_batch("BEGIN; SELECT count(*) FROM fleets").unwrap();
    println!("reading");
    std::io::stdin().lines().for_each(drop);
}

struct Reader(Child);

impl Reader {
    /// Starts one, and waits until it reads.
    fn of(path: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "held_log::reader", "--ignored", "--nocapture"])
            .env(PATH, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(said.any(|line| line.unwrap().contains("reading")), "the reader did not come to read");
        Self(child)
    }

    /// Has it end, and waits for that.
    fn end(mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

async fn push(store: &SqliteStore, session: SessionId, submit_no: u64) -> Result<Submitted, StoreError> {
    let body = format!("\"{}\"", "x".repeat(500_000));
    let submissions =
        vec![Submission { queue: name("a"), parcel: parcel(&[body.as_bytes(); 8]), key: None, call: None }];
    ask(store, Submit { session, submit_no, submissions, bookmark: None, max_queue_bytes: 1 << 40, max_keys: 100 })
        .await
}

#[tokio::test]
async fn a_log_that_a_reader_holds_is_bounded_and_names_it_and_all_goes_on_when_it_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (store, session) = (open(&path, "baton", true), SessionId::random());
    let told: Arc<Mutex<Vec<StoreEvent>>> = Arc::default();
    let ear = Arc::clone(&told);
    store.hear(Arc::new(move |event| ear.lock().unwrap().push(event.clone())));
    ask(&store, join(session)).await.unwrap();
    let reader = Reader::of(&path);
    let named = format!("process {} (", reader.0.id());
    let mut no = 1;
    let refused = loop {
        match push(&store, session, no).await {
            Ok(_) => no += 1,
            Err(error) => break error,
        }
        assert!(no < 200, "the log grows without a bound");
    };
    let log = || fs::metadata(folder.path().join("x.db-wal")).map_or(0, |log| log.len()) >> 20;
    assert!((256..256 + 16).contains(&log()), "{} MiB", log());
    assert!(matches!(&refused, StoreError::NoRoom(why) if why.lines().count() == 1), "{refused:?}");
    assert!(push(&store, session, no).await.is_err());
    // Everything else goes on, and nothing is told twice.
    let claim = Claim { session, claim_no: 1, n: 8, max_bytes: 8 << 20, queue: name("a") };
    let spans = ask(&store, claim).await.unwrap().spans;
    let run = Run { claim_no: 1, queue: name("a"), range: spans[0].0.range, outcome: Outcome::DONE };
    assert!(
        ask(&store, Settle { session, settle_no: 1, runs: vec![run], max_results: baton::store::MAX_RESULTS })
            .await
            .unwrap()
            .refused
            .is_empty()
    );
    ask(&store, Beat { session, report: Vec::new().into(), asks: Vec::new() }).await.unwrap();
    let heard = std::mem::take(&mut *told.lock().unwrap());
    assert!(matches!(&heard[..], [StoreEvent::LogHeld { .. }, StoreEvent::LogFull { .. }]), "{heard:?}");
    if cfg!(target_os = "linux") {
        assert!(heard.iter().all(|event| event.to_string().contains(&named)), "{heard:?}");
        assert!(refused.to_string().contains(&named), "{refused}");
        // One that only looks says it too.
        let (visitor, ear) = (open(&path, "baton", false), Arc::clone(&told));
        visitor.hear(Arc::new(move |event| ear.lock().unwrap().push(event.clone())));
        ask(&visitor, TakeSurvey).await.unwrap();
        drop(visitor);
        let heard = std::mem::take(&mut *told.lock().unwrap());
        assert!(matches!(&heard[..], [StoreEvent::LogHeld { .. }]), "{heard:?}");
    }
    reader.end();
    let deadline = Instant::now() + Duration::from_secs(30);
    while push(&store, session, no).await.is_err() {
        assert!(Instant::now() < deadline, "still refused after the reader has gone");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(log() < 64, "{} MiB", log());
    let heard = std::mem::take(&mut *told.lock().unwrap());
    assert!(matches!(&heard[..], [StoreEvent::LogEmptied { .. }]), "{heard:?}");
}

#[tokio::test]
async fn a_reader_that_was_there_before_any_writer_is_named_in_time_and_all_goes_on_when_it_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let first = open(&path, "baton", true);
    ask(&first, join(SessionId::random())).await.unwrap();
    first.close().await;
    let reader = Reader::of(&path);
    let (store, session, begun) = (open(&path, "baton", false), SessionId::random(), Instant::now());
    let refused = ask(&store, join(session)).await.unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(20) && refused.is_retryable(), "{:?}: {refused}", begun.elapsed());
    if cfg!(target_os = "linux") {
        assert!(refused.to_string().contains(&format!("process {} (", reader.0.id())), "{refused}");
    }
    reader.end();
    ask(&store, join(session)).await.unwrap();
    push(&store, session, 1).await.unwrap();
    store.close().await;
    let mut beside = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    assert!(beside.all(|name| !name.contains("aside")), "nothing was put aside");
}
