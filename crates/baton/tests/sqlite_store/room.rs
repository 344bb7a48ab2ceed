//! A disk that is full. Needs a small file system of its own, which only root can make.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
};

use baton::{
    SessionId,
    store::{
        Beat, Claim, Destroy, Leave, Order, Recount, Settle, SqliteStore, Stop, Store as _, StoreError, StoreEvent,
        Submit, Submitted, TakeSurvey, ask,
        message::{Outcome, Run, Submission},
    },
};

use crate::{join, name, open, parcel};

/// A file system in memory of this many MiB, until dropped.
struct Disk(tempfile::TempDir);

impl Disk {
    fn of(mib: u32) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={mib}m");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output();
        mount.is_ok_and(|it| it.status.success()).then_some(Self(folder))
    }

    fn grow(&self, mib: u32) {
        let size = format!("remount,size={mib}m");
        assert!(Command::new("mount").args(["-o", &size]).arg(self.0.path()).status().unwrap().success());
    }

    fn fill(&self) -> PathBuf {
        let other = self.0.path().join("other");
        fs::write(&other, vec![1; 64 << 20]).unwrap_err();
        other
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(self.0.path()).status().ok();
    }
}

async fn push(store: &SqliteStore, session: SessionId, submit_no: u64) -> Result<Submitted, StoreError> {
    let body = format!("\"{}\"", "x".repeat(50_000));
    let bodies = [body.as_bytes(); 8];
    let submissions = vec![Submission { queue: name("a"), parcel: parcel(&bodies), key: None, call: None }];
    ask(store, Submit { session, submit_no, submissions, bookmark: None, max_queue_bytes: 1 << 30, max_keys: 100 })
        .await
}

async fn work(store: &SqliteStore, session: SessionId, no: u64) -> Option<u32> {
    let claimed =
        ask(store, Claim { session, claim_no: no, n: 8, max_bytes: 1 << 20, queue: name("a") }).await.unwrap();
    let spans = claimed.spans;
    if spans.is_empty() {
        return None;
    }
    let run = |range| Run { claim_no: no, queue: name("a"), range, outcome: Outcome::DONE };
    let runs: Vec<Run> = spans.iter().map(|(span, _)| run(span.range)).collect();
    let count = runs.iter().map(|run| run.range.len).sum();
    assert!(
        ask(store, Settle { session, settle_no: no, runs, max_results: baton::store::MAX_RESULTS })
            .await
            .unwrap()
            .refused
            .is_empty()
    );
    Some(count)
}

fn reserve(path: &Path) -> bool {
    fs::metadata(format!("{}-reserve", path.display())).is_ok()
}

#[tokio::test]
async fn on_a_full_disk_stopping_settling_and_destroying_work_and_pushing_goes_on_when_there_is_room() {
    let Some(disk) = Disk::of(40) else {
        println!("skipped: no file system can be mounted here");
        return;
    };
    let path = disk.0.path().join("x.db");
    let (store, session) = (open(&path, "baton", true), SessionId::random());
    ask(&store, join(session)).await.unwrap();
    let mut no = 1;
    let refused = loop {
        match push(&store, session, no).await {
            Ok(_) => no += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, StoreError::NoRoom(_)), "{refused:?}");
    let stored = (no - 1) * 8;
    assert!(stored > 100 && reserve(&path), "{stored} messages stored; pushes stop before the reserve is touched");
    // Others take what is left.
    let other = disk.fill();
    assert!(matches!(push(&store, session, no).await, Err(StoreError::NoRoom(_))));
    ask(&store, Beat { session, report: vec![7; 4_000].into(), asks: Vec::new() }).await.unwrap();
    ask(&store, Order::Stop(Stop::Graceful, None)).await.unwrap();
    let mut done = 0;
    for claim_no in 1..=stored / 16 {
        done += u64::from(work(&store, session, claim_no).await.unwrap());
    }
    assert_eq!(done, stored / 16 * 8);
    assert!(matches!(push(&store, session, no).await, Err(StoreError::NoRoom(_))), "not into the reserve");
    let recounted = ask(&store, Recount { max_hold_ms: 0 }).await.unwrap();
    assert!(recounted.queues.iter().all(|queue| queue.balance()));
    // With a larger disk everything goes on, and there is a reserve again.
    disk.grow(80);
    push(&store, session, no).await.unwrap();
    assert!(reserve(&path));
    // Full again: all of it can be removed, and the room comes back.
    let more = disk.0.path().join("more");
    fs::write(&more, vec![1; 128 << 20]).unwrap_err();
    ask(&store, Destroy).await.unwrap();
    assert!(ask(&store, TakeSurvey).await.unwrap().queues.is_empty());
    assert!(fs::metadata(&path).unwrap().len() < 1 << 20);
    fs::remove_file(&other).unwrap();
    let session = SessionId::random();
    ask(&store, join(session)).await.unwrap();
    push(&store, session, 1).await.unwrap();
    assert!(reserve(&path));
    drop(store);
}

/// Its log and the index of that are gone then: making them needs room too.
#[tokio::test]
async fn a_store_that_was_closed_can_be_worked_off_and_destroyed_on_a_full_disk() {
    let Some(disk) = Disk::of(24) else {
        println!("skipped: no file system can be mounted here");
        return;
    };
    let path = disk.0.path().join("x.db");
    let (store, session) = (open(&path, "baton", true), SessionId::random());
    ask(&store, join(session)).await.unwrap();
    push(&store, session, 1).await.unwrap();
    ask(&store, Leave { session }).await.unwrap();
    drop(store);
    let log = PathBuf::from(format!("{}-wal", path.display()));
    while log.exists() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    disk.fill();
    let store = open(&path, "baton", false);
    assert_eq!(ask(&store, TakeSurvey).await.unwrap().queues.len(), 1);
    let session = SessionId::random();
    ask(&store, join(session)).await.unwrap();
    assert_eq!(work(&store, session, 1).await, Some(8));
    ask(&store, Leave { session }).await.unwrap();
    ask(&store, Destroy).await.unwrap();
}

/// The end of a period of use and the beginning of the next need room for the mark. Without room no loss is reported.
#[tokio::test]
async fn a_store_that_is_closed_and_opened_on_a_full_disk_does_not_miss_its_log() {
    let Some(disk) = Disk::of(24) else {
        println!("skipped: no file system can be mounted here");
        return;
    };
    let path = disk.0.path().join("x.db");
    let (store, session) = (open(&path, "baton", true), SessionId::random());
    ask(&store, join(session)).await.unwrap();
    push(&store, session, 1).await.unwrap();
    let told: Arc<Mutex<Vec<StoreEvent>>> = Arc::default();
    // The log as it is right after it was copied back: not even the mark finds room in it.
    let db = rusqlite::Connection::open(&path).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(db);
    fs::remove_file(format!("{}-reserve", path.display())).unwrap();
    disk.fill();
    drop(store);
    for _ in 0..3 {
        let (store, ear) = (open(&path, "baton", false), Arc::clone(&told));
        store.hear(Arc::new(move |event| ear.lock().unwrap().push(event.clone())));
        // Whether there is room for this is another question.
        ask(&store, join(SessionId::random())).await.ok();
        if let Ok(found) = ask(&store, TakeSurvey).await {
            assert_eq!(found.queues[0].ready, 8);
        }
        drop(store);
        disk.fill();
    }
    disk.grow(48);
    let (store, ear) = (open(&path, "baton", false), Arc::clone(&told));
    store.hear(Arc::new(move |event| ear.lock().unwrap().push(event.clone())));
    ask(&store, join(SessionId::random())).await.unwrap();
    assert_eq!(ask(&store, TakeSurvey).await.unwrap().queues[0].ready, 8);
    assert_eq!(*told.lock().unwrap(), []);
}

/// What is free only for want of copying the log back is room all the same.
#[tokio::test]
async fn a_long_log_does_not_make_a_small_disk_full() {
    let Some(disk) = Disk::of(20) else {
        println!("skipped: no file system can be mounted here");
        return;
    };
    let path = disk.0.path().join("x.db");
    let (store, session) = (open(&path, "baton", true), SessionId::random());
    ask(&store, join(session)).await.unwrap();
    small_push(&store, session, 1).await.unwrap();
    fs::write(disk.0.path().join("other"), vec![1; 6 << 20]).unwrap();
    for no in 1..400 {
        assert_eq!(work(&store, session, no).await, Some(1));
        small_push(&store, session, no + 1).await.unwrap();
    }
    assert!(reserve(&path));
}

/// What is more than the disk has room for at once is stored a part at a time, and the room of a log is given back for it.
#[tokio::test]
async fn what_does_not_fit_together_is_stored_in_parts() {
    let Some(disk) = Disk::of(20) else {
        println!("skipped: no file system can be mounted here");
        return;
    };
    let path = disk.0.path().join("x.db");
    let (store, session) = (open(&path, "baton", true), SessionId::random());
    ask(&store, join(session)).await.unwrap();
    let body = format!("\"{}\"", "x".repeat(62_000));
    let submission = || Submission { queue: name("a"), parcel: parcel(&[body.as_bytes(); 4]), key: None, call: None };
    let (mut left, mut no, mut parts) = (100, 1, 0);
    for submit_no in 1..=100 {
        let submissions = (0..left.min(40)).map(|_| submission()).collect();
        let submit =
            Submit { session, submit_no, submissions, bookmark: None, max_queue_bytes: 1 << 30, max_keys: 100 };
        let stored = ask(&store, submit.clone()).await.unwrap().submissions;
        // The same again is answered as before.
        assert_eq!(ask(&store, submit).await.unwrap().submissions, stored);
        parts += u32::from(stored.len() < left.min(40));
        left -= stored.len();
        while work(&store, session, no).await.is_some() {
            no += 1;
        }
        if left == 0 {
            break;
        }
    }
    assert!(left == 0 && parts > 0 && reserve(&path), "{left} {parts}");
}

async fn small_push(store: &SqliteStore, session: SessionId, submit_no: u64) -> Result<Submitted, StoreError> {
    let submissions = vec![Submission { queue: name("a"), parcel: parcel(&[b"1"]), key: None, call: None }];
    ask(store, Submit { session, submit_no, submissions, bookmark: None, max_queue_bytes: 1 << 30, max_keys: 100 })
        .await
}
