//! What is done with the file that is found at the store's path.

use std::{fs, path::Path};

use baton::{
    SessionId,
    store::{FORMAT, Refusal, StoreError, TakeSurvey, ask},
};
use rusqlite::Connection;

use crate::{join, open, submit};

async fn survey(path: &Path, create: bool) -> StoreError {
    ask(&open(path, "baton", create), TakeSurvey).await.unwrap_err()
}

#[tokio::test]
async fn a_missing_file_is_a_store_not_up_yet_and_neither_it_nor_its_folder_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep").join("x.db");
    let store = open(&path, "baton", false);
    let error = ask(&store, TakeSurvey).await.unwrap_err();
    assert!(matches!(&error, StoreError::Unreachable(why) if why.contains("no store at")), "{error:?}");
    assert!(error.is_retryable());
    assert!(!folder.path().join("deep").exists());
    let made = ask(&open(&path, "baton", true), join(SessionId::random())).await.unwrap_err();
    let missing = path.parent().unwrap().display();
    let why = format!("there is no folder {missing} for x.db: make it, or name another store");
    assert_eq!(made, StoreError::Unfit(why));
    fs::create_dir(path.parent().unwrap()).unwrap();
    ask(&open(&path, "baton", true), join(SessionId::random())).await.unwrap();
    assert_eq!(ask(&store, TakeSurvey).await.unwrap().sessions.len(), 1);
}

#[tokio::test]
async fn a_read_of_a_new_fleet_gives_nothing_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    ask(&open(&path, "one", true), join(SessionId::random())).await.unwrap();
    let survey = ask(&open(&path, "two", false), TakeSurvey).await.unwrap();
    assert!(survey.sessions.is_empty() && survey.queues.is_empty());
    let fleets: i64 =
        Connection::open(&path).unwrap().query_row("SELECT count(*) FROM fleets", [], |r| r.get(0)).unwrap();
    assert_eq!(fleets, 1);
}

#[tokio::test]
async fn foreign_files_are_refused_and_stay_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    fs::write(&text, "buy milk\n".repeat(500)).unwrap();
    let other = folder.path().join("other.db");
    let db = Connection::open(&other).unwrap();
    db.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE milk (litres)").unwrap();
    drop(db);
    for path in [&text, &other] {
        let before = fs::read(path).unwrap();
        for create in [true, false] {
            let error = survey(path, create).await;
            assert!(matches!(&error, StoreError::Unfit(why) if why.contains("choose another path")), "{error:?}");
            assert_eq!(error.to_string().lines().count(), 1);
        }
        assert_eq!(fs::read(path).unwrap(), before);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside them");
    let error = survey(folder.path(), true).await;
    assert!(matches!(error, StoreError::Unfit(_)), "{error:?}");
}

#[tokio::test]
async fn a_newer_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let running = open(&path, "baton", true);
    ask(&running, join(SessionId::random())).await.unwrap();
    Connection::open(&path).unwrap().pragma_update(None, "user_version", FORMAT + 1).unwrap();
    let newer = StoreError::Refused(Refusal::NewerFormat { found: FORMAT + 1, known: FORMAT });
    assert_eq!(survey(&path, false).await, newer);
    assert_eq!(ask(&running, join(SessionId::random())).await.unwrap_err(), newer);
}

#[tokio::test]
async fn a_damaged_file_is_called_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let session = SessionId::random();
    let store = open(&path, "baton", true);
    ask(&store, join(session)).await.unwrap();
    ask(&store, submit(session, 1, "a")).await.unwrap();
    let db = Connection::open(&path).unwrap();
    let (busy, ..): (i64, i64, i64) =
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?))).unwrap();
    assert_eq!(busy, 0);
    drop(db);
    let copy = folder.path().join("y.db");
    let mut bytes = fs::read(&path).unwrap();
    bytes[4_096..].fill(0xa5);
    fs::write(&copy, &bytes).unwrap();
    let error = survey(&copy, true).await;
    assert!(matches!(error, StoreError::Damaged(_)), "{error:?}");
    fs::write(&copy, &bytes[..6_000]).unwrap();
    let error = survey(&copy, true).await;
    assert!(matches!(error, StoreError::Damaged(_)), "{error:?}");
}

#[tokio::test]
async fn an_empty_file_becomes_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    fs::write(&path, "").unwrap();
    assert!(matches!(survey(&path, false).await, StoreError::Unreachable(_)));
    ask(&open(&path, "baton", true), join(SessionId::random())).await.unwrap();
}
