//! Bringing a file of an older format up to this one, in the transaction of the first join.
//!
//! Refused while sessions of an older release beat: they would find their tables gone. What silent ones hold stays
//! theirs until they are reaped, as ever.

use rusqlite::Connection;

use crate::store::{FORMAT, StoreError};

/// Lifts the file that `db` has a write transaction on, if it is of an older format.
///
/// # Errors
/// [`StoreError::Unreachable`] while an older release uses it: it can be waited for.
pub(super) fn lift(db: &Connection, now: u64) -> Result<(), StoreError> {
    let found: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found >= FORMAT {
        return Ok(());
    }
    let sql = "SELECT count(*) FROM sessions JOIN members USING (fleet, session) WHERE beat_ms + lease_ms > ?1";
    let live: u32 = db.query_row(sql, [i64::try_from(now).unwrap_or(i64::MAX)], |row| row.get(0))?;
    if live > 0 {
        return Err(older_release(live.into()));
    }
    db.execute_batch(include_str!("lift.sql"))?;
    db.pragma_update(None, "user_version", FORMAT)?;
    Ok(())
}

fn older_release(sessions: u64) -> StoreError {
    StoreError::Unreachable(crate::store::used_by_an_older_release(sessions))
}
