//! The threads that read: each request sees one snapshot, and no writer waits for it.

use std::sync::{Arc, mpsc};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{Site, fault::is_busy, file::Purpose, lane::Desk, tables::SqliteTables};
use crate::{
    message::Name,
    store::{Answer, Request, StoreError, engine, engine::Moved},
};

/// A question and the one who waits for its answer.
pub(super) enum Question {
    /// A request that changes nothing.
    Call(Request, oneshot::Sender<Result<Answer, StoreError>>),
    /// Whether one of these queues has messages ready.
    Look(Vec<Name>, oneshot::Sender<Result<bool, StoreError>>),
}

/// Whether a request changes nothing.
pub(super) const fn is_read(request: &Request) -> bool {
    matches!(
        request,
        Request::Survey(_) | Request::Peek(_) | Request::Result(_) | Request::Bookmark(_) | Request::Recount(_)
    )
}

/// Reads until all senders are gone.
pub(super) fn run(site: &Arc<Site>, questions: &mpsc::Receiver<Question>) {
    let mut desk = Desk::new(Arc::clone(site), Purpose::Reads);
    while let Ok(question) = questions.recv() {
        // A caller that has gone away needs no answer.
        match question {
            Question::Call(request, caller) => {
                let now = site.clock.now_ms();
                caller.send(snapshot(&mut desk, |tables| engine::apply(tables, now, &request))).ok();
            }
            Question::Look(queues, caller) => {
                let ready = snapshot(&mut desk, |tables| {
                    for queue in &queues {
                        if engine::has_ready(tables, queue)? {
                            return Ok(true);
                        }
                    }
                    Ok(false)
                });
                caller.send(ready).ok();
            }
        }
    }
}

/// Runs `read` over one instant of the store.
fn snapshot<T>(desk: &mut Desk, read: impl Fn(&mut SqliteTables<'_>) -> Moved<T>) -> Result<T, StoreError> {
    let site = Arc::clone(desk.site());
    let db = &desk.file()?.db;
    begin(db)?;
    let answer = read(&mut SqliteTables::new(db, &site.fleet));
    if !db.is_autocommit() && db.prepare_cached("COMMIT").and_then(|mut end| end.execute([])).is_err() {
        // Closing ends the snapshot too; one left open would keep the log from being copied back.
        desk.close();
    }
    answer
}

/// Begins a snapshot; it is taken here and not at the first query, so that waiting for it is done here too.
fn begin(db: &Connection) -> Result<(), StoreError> {
    db.prepare_cached("BEGIN")?.execute([])?;
    loop {
        match db.prepare_cached("SELECT count(*) FROM fleets WHERE fleet = 0").and_then(|mut query| query.exists([])) {
            Err(error) if is_busy(&error) => {}
            Err(error) => {
                db.execute_batch("ROLLBACK")?;
                return Err(error.into());
            }
            Ok(_) => return Ok(()),
        }
    }
}
