//! Who may read what the store keeps, and what one needs to read it.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

use baton::{
    SessionId,
    store::{Store as _, StoreEvent, TakeSurvey, ask},
};

use crate::{join, open, submit};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn files_are_their_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (store, session) = (open(&path, "baton", true), SessionId::random());
    ask(&store, join(session)).await.unwrap();
    ask(&store, submit(session, 1, "a")).await.unwrap();
    let files: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().flatten().collect();
    assert!(files.len() >= 7, "{files:?}");
    for file in files.iter().filter(|file| file.file_type().unwrap().is_file()) {
        assert_eq!(mode(&file.path()), 0o600, "{}", file.path().display());
    }
}

/// A writer that waits for another process is told of, with the name of that process, and so is the end of it.
#[tokio::test]
async fn who_holds_the_lock_is_named_and_when_it_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let store = open(&path, "baton", true);
    ask(&store, join(SessionId::random())).await.unwrap();
    let (tell, mut heard) = tokio::sync::mpsc::unbounded_channel();
    store.hear(std::sync::Arc::new(move |event| drop(tell.send(event.clone()))));
    // The store's own lock, then SQLite's, as a person with a shell might hold it.
    for own in [true, false] {
        let turn = fs::OpenOptions::new().write(true).open(format!("{}-lock", path.display())).unwrap();
        let db = rusqlite::Connection::open(&path).unwrap();
        if own {
            turn.lock().unwrap();
        } else {
            db.execute_batch("BEGIN IMMEDIATE").unwrap();
        }
        let waiting = tokio::spawn({
            let store = store.clone();
            async move { ask(&store, join(SessionId::random())).await }
        });
        let event = tokio::time::timeout(Duration::from_secs(20), heard.recv()).await.unwrap().unwrap();
        let named = format!("process {} (", std::process::id());
        assert!(matches!(event, StoreEvent::Stalled { holder: Some(_), .. }), "{event:?}");
        assert!(event.to_string().starts_with(&named), "{event}");
        assert!(store.in_the_way().unwrap().starts_with(&named), "{:?}", store.in_the_way());
        assert!(!waiting.is_finished());
        // Reading needs no turn.
        ask(&store, TakeSurvey).await.unwrap();
        if own {
            turn.unlock().unwrap();
        } else {
            db.execute_batch("ROLLBACK").unwrap();
        }
        waiting.await.unwrap().unwrap();
        let event = tokio::time::timeout(Duration::from_secs(20), heard.recv()).await.unwrap().unwrap();
        assert!(matches!(event, StoreEvent::Unstalled { after, .. } if after.as_secs() >= 1), "{event:?}");
        assert!(event.to_string().contains("free again after"), "{event}");
        assert_eq!(store.in_the_way(), None);
    }
}

/// A command that gives up says who is in its way, and does not wait for the end of that.
#[tokio::test]
async fn an_admin_gives_up_and_names_who_holds_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let url = format!("sqlite:{}", path.display());
    let fleet = baton::Fleet::connect(&url).unwrap();
    fleet.session().await.unwrap();
    let turn = fs::OpenOptions::new().write(true).open(format!("{}-lock", path.display())).unwrap();
    turn.lock().unwrap();
    let admin = baton::admin::Admin::new(&fleet).wait(Duration::ZERO);
    let error = admin.session().await.unwrap_err().to_string();
    let named = format!("no answer within 2 s: process {} (", std::process::id());
    assert!(error.contains(&named), "{error}");
    let begun = std::time::Instant::now();
    drop((admin, fleet));
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}
