//! The threads that read: each request sees one snapshot, and no writer waits for it.

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{
    connection::check_format,
    connection_thread::{CurrentFile, Inbox, Next},
    fault::is_busy,
    tables::SqliteTables,
};
use crate::store::{Answer, Request, StoreError, engine, engine::Moved};

/// A question and the one who waits for its answer.
pub(super) struct Question {
    /// A request that changes nothing.
    pub(super) request: Request,
    pub(super) answer: oneshot::Sender<Result<Answer, StoreError>>,
}

/// Reads until all senders are gone.
pub(super) fn run(inbox: &mut Inbox<Question>) {
    while let Next::Job(Question { request, answer }) = inbox.next(None) {
        let current = &mut inbox.current;
        let now = current.site().clock.now_ms();
        // A caller that has gone away needs no answer.
        answer.send(snapshot(current, |tables| engine::apply(tables, now, &request))).ok();
    }
}

/// Runs `read` over one instant of the store.
fn snapshot<T>(current: &mut CurrentFile, read: impl Fn(&mut SqliteTables<'_>) -> Moved<T>) -> Result<T, StoreError> {
    let site = Arc::clone(current.site());
    let db = &current.file()?.db;
    let answer = begin(db).and_then(|()| check_format(db)).and_then(|()| read(&mut SqliteTables::new(db, &site.fleet)));
    let stuck = !db.is_autocommit() && db.prepare_cached("COMMIT").and_then(|mut end| end.execute([])).is_err();
    let answer = answer.map_err(|error| current.explain(error));
    if stuck {
        // Closing ends the snapshot too; one left open would keep the log from being copied back.
        current.close();
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
