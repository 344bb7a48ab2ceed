//! Copies of a store, and stores brought back from them.

use std::{fs, path::Path, sync::Arc};

use baton::{
    SessionId,
    store::{Claim, Ear, Recount, Refusal, RestoreError, SqliteStore, Store as _, StoreError, TakeSurvey, ask},
};

use crate::{join, name, open, submit};

fn deaf() -> Ear {
    Arc::new(|_| {})
}

async fn pushed(path: &Path) -> u64 {
    let store = open(path, "baton", false);
    let recounted = ask(&store, Recount { max_hold_ms: 0 }).await.unwrap();
    assert!(recounted.queues.iter().all(|queue| queue.balance()), "{recounted:?}");
    ask(&store, TakeSurvey).await.unwrap().queues.iter().map(|queue| queue.pushed).sum()
}

#[tokio::test]
async fn a_store_in_use_is_backed_up_and_restored_only_when_nobody_has_it_open() {
    let folder = tempfile::tempdir().unwrap();
    let (path, backup) = (folder.path().join("x.db"), folder.path().join("backup.db"));
    let (store, session) = (open(&path, "baton", true), SessionId::random());
    ask(&store, join(session)).await.unwrap();
    ask(&store, submit(session, 1, "a")).await.unwrap();
    let claim = Claim { session, claim_no: 1, n: 1, max_bytes: 100, queue: name("a") };
    assert_eq!(ask(&store, claim).await.unwrap().spans.len(), 1);
    let made = SqliteStore::back_up(&path, &backup, deaf()).unwrap();
    assert_eq!((made.fleets, made.bytes), (1, fs::metadata(&backup).unwrap().len()));
    ask(&store, submit(session, 2, "a")).await.unwrap();
    assert_eq!(pushed(&backup).await, 2);
    assert_eq!(fs::read_dir(folder.path()).unwrap().flatten().filter(|it| it.path().extension().is_none()).count(), 0);

    let refused = SqliteStore::restore(&path, &backup, deaf()).unwrap_err();
    let own = format!("process {}", std::process::id());
    assert!(matches!(&refused, RestoreError::InUse { who, .. } if who.contains(&own)), "{refused:?}");
    assert_eq!(ask(&store, TakeSurvey).await.unwrap().queues[0].pushed, 4);

    store.close().await;
    let restored = SqliteStore::restore(&path, &backup, deaf()).unwrap();
    assert_eq!(pushed(&path).await, 2);
    assert_eq!(pushed(&restored.kept.unwrap()).await, 4);
    // The session of that time is nobody's: its number has gone on since, and must not go on here.
    let stale = ask(&store, submit(session, 3, "a")).await.unwrap_err();
    assert_eq!(stale, StoreError::Refused(Refusal::Stale));
    let survey = ask(&store, TakeSurvey).await.unwrap();
    assert_eq!((survey.sessions.len(), survey.queues[0].in_flight), (1, 1));
    assert_ne!(survey.sessions[0].session, session);
}

#[tokio::test]
async fn what_is_no_backup_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (store, session) = (open(&path, "baton", true), SessionId::random());
    ask(&store, join(session)).await.unwrap();
    ask(&store, submit(session, 1, "a")).await.unwrap();
    drop(store);
    let (text, torn) = (folder.path().join("notes"), folder.path().join("torn.db"));
    fs::write(&text, "buy milk\n".repeat(900)).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[12_288..20_480].fill(0xa5);
    fs::write(&torn, bytes).unwrap();
    let before = fs::read(&path).unwrap();
    for bad in [&text, &torn, &folder.path().join("missing"), &path] {
        SqliteStore::restore(&path, bad, deaf()).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), before);
    }
    assert!(SqliteStore::back_up(&path, &path, deaf()).is_err());
    assert!(SqliteStore::back_up(&folder.path().join("none.db"), &folder.path().join("b"), deaf()).is_err());
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().map(|it| it.file_name()).collect();
    assert!(left.iter().all(|it| !it.to_string_lossy().contains("replaced")), "{left:?}");
    assert!(!folder.path().join("b").exists());
}
