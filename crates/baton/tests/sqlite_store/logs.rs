//! Whose log it is: files that are copied, moved, replaced and removed, with and without a store that has them open.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use baton::{
    SessionId,
    store::{
        Claim, Recount, Refusal, SqliteStore, Store as _, StoreError, StoreEvent, Submit, TakeSurvey, ask,
        message::Submission,
    },
};

use crate::{join, name, open, parcel, submit};

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

fn has_log(path: &Path) -> bool {
    fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// What a store has to tell.
fn listen(store: &SqliteStore) -> Arc<Mutex<Vec<StoreEvent>>> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = heard.clone();
    store.hear(Arc::new(move |event| ear.lock().unwrap().push(event.clone())));
    heard
}

/// A store with so many submits of two messages each.
async fn filled(path: &Path, submits: u64) -> (SqliteStore, SessionId) {
    let (store, session) = (open(path, "baton", true), SessionId::random());
    ask(&store, join(session)).await.unwrap();
    for no in 1..=submits {
        ask(&store, submit(session, no, "a")).await.unwrap();
    }
    (store, session)
}

/// How many messages a store has; its books must balance to the last id.
async fn count(store: &SqliteStore) -> u64 {
    let recounted = ask(store, Recount { max_hold_ms: 0 }).await.unwrap();
    assert!(recounted.queues.iter().all(|queue| queue.balance()), "{recounted:?}");
    ask(store, TakeSurvey).await.unwrap().queues.iter().map(|queue| queue.pushed).sum()
}

/// The files of a store as a process killed with -9 leaves them: those of a running one, copied.
fn killed(path: &Path, folder: &Path) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    let copy = folder.join("x.db");
    for suffix in ["", "-wal", "-shm", "-log"] {
        fs::copy(beside(path, suffix), beside(&copy, suffix)).unwrap();
    }
    copy
}

/// The answer, once the store gives one.
async fn answered<T, F: Future<Output = Result<T, StoreError>>>(call: impl Fn() -> F) -> Result<T, StoreError> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match call().await {
            Err(StoreError::Unreachable(why)) => assert!(Instant::now() < deadline, "never: {why}"),
            answer => return answer,
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_second_name_is_refused_in_the_same_process_too_and_a_log_that_may_be_live_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (path, second) = (folder.path().join("x.db"), folder.path().join("second.db"));
    let (store, session) = filled(&path, 2).await;
    fs::hard_link(&path, &second).unwrap();
    let refused = ask(&open(&second, "baton", true), TakeSurvey).await.unwrap_err().to_string();
    assert!(refused.contains("is open by another name in this process: use ") && refused.contains("x.db"), "{refused}");
    assert!(!beside(&second, "-door").exists());

    // Somebody who knows nothing of this has written by that name all the same.
    let other = folder.path().join("other.db");
    drop(filled(&other, 1).await);
    fs::copy(&other, &second).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let why = loop {
        match ask(&store, submit(session, 3, "a")).await {
            Err(StoreError::Unreachable(why)) => break why,
            answer => assert!(Instant::now() < deadline, "{answer:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(why.contains("has 2 names"), "{why}");
    assert!(has_log(&path) && !beside(&path, "-wal.aside-1").exists());
}

#[tokio::test]
async fn the_last_process_that_closes_a_store_leaves_no_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (store, _) = filled(&path, 500).await;
    let other = open(&path, "baton", false);
    assert_eq!(count(&other).await, 1_000);
    store.close().await;
    other.close().await;
    for suffix in ["-wal", "-shm", "-log"] {
        assert!(!beside(&path, suffix).exists(), "{suffix}");
    }
    // The file alone is all there is.
    let copy = folder.path().join("copy.db");
    fs::copy(&path, &copy).unwrap();
    assert_eq!(count(&open(&copy, "baton", false)).await, 1_000);
    // Closing is no end.
    assert_eq!(count(&store).await, 1_000);
    drop((store, other));
    assert!(!has_log(&path));
}

#[tokio::test]
async fn a_dropped_store_is_closed_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (store, _) = filled(&path, 100).await;
    assert!(has_log(&path));
    drop(store);
    assert!(!beside(&path, "-wal").exists());
}

#[tokio::test]
async fn a_killed_store_and_its_log_belong_together_wherever_they_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (store, _) = filled(&path, 50).await;
    let copy = killed(&path, &folder.path().join("elsewhere"));
    let moved = open(&copy, "baton", false);
    let heard = listen(&moved);
    assert_eq!(count(&moved).await, 100);
    assert_eq!(*heard.lock().unwrap(), []);
    drop(moved);
    // Brought back with its log over a store that has gone on.
    let copy = killed(&path, &folder.path().join("again"));
    drop(store);
    let (store, _) = filled(&path, 20).await;
    let later = killed(&path, &folder.path().join("later"));
    drop(store);
    for suffix in ["", "-wal"] {
        fs::copy(beside(&copy, suffix), beside(&later, suffix)).unwrap();
    }
    fs::remove_file(beside(&later, "-log")).unwrap();
    assert_eq!(count(&open(&later, "baton", false)).await, 100);
}

#[tokio::test]
async fn a_log_that_was_emptied_before_the_kill_is_not_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (store, _) = filled(&path, 50).await;
    let db = rusqlite::Connection::open(&path).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    // With all that lies beside the file, and as the two files that have to be moved together.
    let (whole, pair) = (killed(&path, &folder.path().join("whole")), killed(&path, &folder.path().join("pair")));
    for suffix in ["-shm", "-log"] {
        fs::remove_file(beside(&pair, suffix)).unwrap();
    }
    drop((store, db));
    for copy in [whole, pair] {
        assert!(!has_log(&copy));
        let found = open(&copy, "baton", false);
        let heard = listen(&found);
        assert_eq!(count(&found).await, 100);
        ask(&found, join(SessionId::random())).await.unwrap();
        assert_eq!(*heard.lock().unwrap(), []);
    }
}

#[tokio::test]
async fn a_log_of_another_file_is_put_aside_and_neither_used_nor_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    drop(filled(&path, 10).await);
    let backup = folder.path().join("backup.db");
    fs::copy(&path, &backup).unwrap();
    for by_rename in [false, true] {
        let (store, _) = filled(&path, 300).await;
        let killed = killed(&path, &folder.path().join(format!("killed-{by_rename}")));
        drop(store);
        let log = fs::read(beside(&killed, "-wal")).unwrap();
        let former = folder.path().join(format!("former-{by_rename}.db"));
        fs::copy(&killed, &former).unwrap();
        // What people do to restore a backup, with the log of the former file beside it.
        if by_rename {
            fs::copy(&backup, folder.path().join("tmp")).unwrap();
            fs::rename(folder.path().join("tmp"), &killed).unwrap();
        } else {
            fs::copy(&backup, &killed).unwrap();
        }
        let restored = open(&killed, "baton", false);
        let heard = listen(&restored);
        assert_eq!(count(&restored).await, 20);
        let aside = beside(&killed, "-wal.aside-1");
        assert_eq!(fs::read(&aside).unwrap(), log);
        let events = heard.lock().unwrap().clone();
        assert!(matches!(&*events, [StoreEvent::LogSetAside { .. }]), "{events:?}");
        drop(restored);
        // With the file it belongs to, the log still says everything.
        fs::rename(&aside, beside(&former, "-wal")).unwrap();
        assert!(count(&open(&former, "baton", false)).await >= 620);
    }
}

#[tokio::test]
async fn a_file_that_is_gone_is_waited_for_and_none_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (store, session) = filled(&path, 10).await;
    let away = folder.path().join("away.db");
    fs::rename(&path, &away).unwrap();
    let log = fs::read(beside(&path, "-wal")).unwrap();
    for _ in 0..3 {
        let error = ask(&store, submit(session, 11, "a")).await.unwrap_err();
        assert!(matches!(&error, StoreError::Unreachable(why) if why.contains("is gone")), "{error:?}");
        assert!(!path.exists());
    }
    assert_eq!(fs::read(beside(&path, "-wal")).unwrap(), log);
    // Another process that may make a file does not make one over what is in use.
    fs::rename(&away, &path).unwrap();
    answered(|| ask(&store, submit(session, 11, "a"))).await.unwrap();
    assert_eq!(count(&store).await, 22);
    // Removed for good: its log stays as it is.
    fs::remove_file(&path).unwrap();
    let error = ask(&store, submit(session, 12, "a")).await.unwrap_err();
    assert!(matches!(&error, StoreError::Unreachable(why) if why.contains("is gone")), "{error:?}");
    assert!(has_log(&path) && !path.exists());
    drop(store);
    assert!(has_log(&path));
    // Neither does a new process make one in its place, nor is it told that there never was one.
    let log = fs::read(beside(&path, "-wal")).unwrap();
    for create in [true, false] {
        let error = ask(&open(&path, "baton", create), TakeSurvey).await.unwrap_err();
        assert!(matches!(&error, StoreError::Unfit(why) if why.contains("x.db-wal is still here")), "{error:?}");
        let error = ask(&open(&path, "baton", create), join(SessionId::random())).await.unwrap_err();
        assert!(matches!(&error, StoreError::Unfit(why) if why.contains("x.db-wal is still here")), "{error:?}");
    }
    assert!(fs::read(beside(&path, "-wal")).unwrap() == log && !path.exists());
    // Whoever wants to begin anew does what was said.
    fs::remove_file(beside(&path, "-wal")).unwrap();
    let fresh = open(&path, "baton", true);
    ask(&fresh, join(SessionId::random())).await.unwrap();
    assert_eq!(count(&fresh).await, 0);
}

#[tokio::test]
async fn no_store_is_made_where_a_log_is_still_empty_or_somebody_waits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (store, session) = (open(&path, "baton", true), SessionId::random());
    ask(&store, join(session)).await.unwrap();
    // The log as it is right after it was copied back.
    let db = rusqlite::Connection::open(&path).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(db);
    assert!(beside(&path, "-wal").exists() && !has_log(&path));
    fs::rename(&path, folder.path().join("away.db")).unwrap();
    let refused = |part: &'static str| {
        let other = open(&path, "baton", true);
        async move {
            let error = answered(|| ask(&other, join(SessionId::random()))).await.unwrap_err();
            assert!(matches!(&error, StoreError::Unfit(why) if why.contains(part)), "{error:?}");
        }
    };
    ask(&store, TakeSurvey).await.unwrap_err();
    refused("is still here").await;
    // Without any log it is still missed by whoever waits for messages.
    store.wait(session, Arc::<Vec<Claim>>::default()).await.unwrap();
    fs::remove_file(beside(&path, "-wal")).unwrap();
    refused("running processes wait for it").await;
    assert!(!path.exists());
    drop(store);
    // With it everything is gone that shows that it waits.
    assert!(!beside(&path, "-wake").exists());
    ask(&open(&path, "baton", true), join(SessionId::random())).await.unwrap();
}

#[tokio::test]
async fn a_log_put_aside_is_named_where_one_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (store, _) = filled(&path, 10).await;
    let copy = killed(&path, &folder.path().join("copy"));
    drop(store);
    fs::rename(beside(&copy, "-wal"), beside(&copy, "-wal.aside-1")).unwrap();
    let looked = open(&copy, "baton", false);
    let heard = listen(&looked);
    ask(&looked, TakeSurvey).await.unwrap();
    let events = heard.lock().unwrap().clone();
    let [event @ StoreEvent::LogMissing { aside: Some(_), .. }] = &*events else { panic!("{events:?}") };
    assert!(event.to_string().contains("x.db-wal.aside-1 may be that log"), "{event}");
    drop(looked);
    // What it says helps.
    fs::rename(beside(&copy, "-wal.aside-1"), beside(&copy, "-wal")).unwrap();
    assert_eq!(count(&open(&copy, "baton", false)).await, 20);
}

#[tokio::test]
async fn a_file_replaced_under_a_running_store_is_gone_on_with_undamaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    drop(filled(&path, 10).await);
    let backup = folder.path().join("backup.db");
    fs::copy(&path, &backup).unwrap();
    for by_rename in [true, false] {
        let (store, mut session) = filled(&path, 400).await;
        let heard = listen(&store);
        // Every thread has the file open.
        ask(&store, TakeSurvey).await.unwrap();
        if by_rename {
            fs::copy(&backup, folder.path().join("tmp")).unwrap();
            fs::rename(folder.path().join("tmp"), &path).unwrap();
        } else {
            fs::copy(&backup, &path).unwrap();
        }
        // One that opens the new file at that moment does not mix it with the log in use.
        let other = open(&path, "baton", false);
        answered(|| ask(&other, TakeSurvey)).await.unwrap();
        let mut no = 401;
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            assert!(Instant::now() < deadline, "the new file is never gone on with");
            match ask(&store, submit(session, no, "a")).await {
                Ok(_) => no += 1,
                Err(StoreError::Unreachable(_)) => {}
                Err(StoreError::Refused(Refusal::Stale)) => break,
                Err(error) => panic!("{error:?}"),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(count(&other).await, 20, "by rename: {by_rename}");
        session = SessionId::random();
        ask(&store, join(session)).await.unwrap();
        ask(&store, submit(session, 1, "a")).await.unwrap();
        assert_eq!(count(&store).await, 22);
        assert!(!by_rename || heard.lock().unwrap().iter().any(|event| matches!(event, StoreEvent::Replaced { .. })));
        drop((store, other));
        let check: String = rusqlite::Connection::open(&path)
            .unwrap()
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(check, "ok");
        fs::copy(&backup, &path).unwrap();
    }
}

#[tokio::test]
async fn what_only_a_removed_log_holds_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (store, session) = filled(&path, 100).await;
    fs::remove_file(beside(&path, "-wal")).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while !beside(&path, "-wal").exists() {
        assert!(Instant::now() < deadline);
        ask(&store, TakeSurvey).await.ok();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    answered(|| ask(&store, submit(session, 101, "a"))).await.unwrap();
    assert_eq!(count(&store).await, 202);
    drop(store);
    assert_eq!(count(&open(&path, "baton", false)).await, 202);
}

#[tokio::test]
async fn a_file_that_is_just_being_overwritten_is_not_called_damaged_by_those_who_have_it_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (store, session) = filled(&path, 10).await;
    ask(&store, TakeSurvey).await.unwrap();
    // Nothing is left in the log, and what the store has read is no longer valid: the next transaction reads the file.
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch("UPDATE fleets SET fleet = fleet").unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let whole = fs::read(&path).unwrap();
    fs::write(&path, vec![0xa5; whole.len()]).unwrap();
    let error = ask(&store, submit(session, 11, "a")).await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable(_)), "{error:?}");
    let error = ask(&store, TakeSurvey).await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable(_)), "{error:?}");
    fs::write(&path, whole).unwrap();
    drop(db);
    answered(|| ask(&store, submit(session, 11, "a"))).await.unwrap();
    assert_eq!(count(&store).await, 22);
}

/// Killed while it copied the log back: the head of the file is there, the pages it speaks of are not all.
#[tokio::test]
async fn a_file_into_which_its_log_was_half_copied_back_is_opened() {
    use std::os::unix::fs::FileExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (running, session) = filled(&path, 40).await;
    // It grows, so the log has a head that speaks of more pages too.
    let large = Submission { queue: name("a"), parcel: parcel(&[&vec![b'1'; 900_000]]), key: None, call: None };
    ask(&running, Submit { submissions: vec![large], ..submit(session, 41, "a") }).await.unwrap();
    assert!(has_log(&path));
    // The copy is what a process that was killed leaves behind.
    let killed = folder.path().join("killed.db");
    for suffix in ["", "-wal"] {
        fs::copy(beside(&path, suffix), beside(&killed, suffix)).unwrap();
    }
    let pages = fs::metadata(&killed).unwrap().len() as u32 / 4_096;
    let file = fs::OpenOptions::new().write(true).open(&killed).unwrap();
    file.write_all_at(&(pages + 100).to_be_bytes(), 28).unwrap();
    drop(file);
    for create in [false, true] {
        let store = open(&killed, "baton", create);
        let recounted = ask(&store, Recount { max_hold_ms: 0 }).await.unwrap();
        assert!(recounted.queues.iter().all(|queue| queue.balance() && queue.ready.count == 81), "{recounted:?}");
        ask(&store, join(SessionId::random())).await.unwrap();
    }
}
