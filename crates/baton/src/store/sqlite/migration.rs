//! A file of an older format brought up to this one, with all fleets in it, in one transaction.
//!
//! What belongs to sessions is made anew, as the schema has it now, and the sessions of before are taken out as if they
//! had been reaped. Before that it is noted which messages of partly settled parcels have gone. Bodies are not touched. Killed at any moment, the file is as it was. Afterwards a file of former times
//! is written anew, see `renewal`: only then may tables be dropped without moving that of the mark, which is read past the
//! log.

use rusqlite::{Connection, Row};

use super::{
    Site,
    building::SCHEMA,
    connection::check_known,
    file::{OpenFile, Purpose},
    partly_gone,
    remains::{self, NAMED},
    renewal,
    tables::SqliteTables,
    writer,
};
use crate::{
    message::SessionId,
    store::{
        Conversion, Converted, FORMAT, Kind, SeenSession, Standing, StoreError,
        engine::{
            Sessions as _,
            returns::{Returned, end},
        },
        operation::A_RESULT,
    },
};

/// The tables that belong to sessions, and what is taken over of them: those of each format have at least this.
const OF_SESSIONS: [(&str, &str); 9] = [
    ("sessions", "fleet, session, lease_ms, expires, suspects, settle_no, submit_no, dispose_no"),
    ("members", "fleet, session, node, host, pid, queues, offers, join_no, joined_ms, beat_ms, report"),
    ("claims", "fleet, session, queue, claim_no, pieces"),
    ("answers", ""),
    ("claim_numbers", ""),
    ("waiters", ""),
    ("batons", ""),
    ("workers", ""),
    ("estates", ""),
];

/// The tables of calls, which formats before 6 had not.
const OF_CALLS: [&str; 6] = ["calls", "call_events", "call_keys", "call_holds", "joined", "told"];

/// The tables of what is cached, which formats before 6 had not either.
const OF_RECALLS: [&str; 6] = ["recall_books", "recalled", "forgotten", "flights", "awaiting", "recallers"];

/// What is in the file, and who was seen last, in any of its fleets.
pub(super) fn standing(site: &Site) -> Result<Standing, StoreError> {
    read_standing(&OpenFile::open(site, Purpose::Reads)?.db)
}

fn read_standing(db: &Connection) -> Result<Standing, StoreError> {
    let format = check_known(db)?;
    let mut rows = db.prepare(&format!(
        "SELECT session, node, host, pid, lease_ms, expires, beat_ms FROM sessions JOIN members USING (fleet, session) \
         WHERE fleet IN (SELECT fleet FROM fleets WHERE {NAMED}) ORDER BY fleet, session"
    ))?;
    let seen = rows.query_map([], seen)?.collect::<rusqlite::Result<_>>()?;
    let sql = "SELECT coalesce(group_concat(fleet || ',' || clock || ',' || last || ',' || joins, ';' ORDER BY fleet), '') \
               FROM fleets";
    Ok(Standing { format: Some(format), seen, stamp: db.query_row(sql, [], |row| row.get(0))? })
}

fn seen(row: &Row<'_>) -> rusqlite::Result<SeenSession> {
    Ok(SeenSession {
        session: SessionId::from_u128(u128::from_be_bytes(row.get(0)?)),
        kind: if row.get(1)? { Kind::Node } else { Kind::Client },
        host: row.get(2)?,
        pid: row.get(3)?,
        lease_ms: row.get::<_, i64>(4)?.cast_unsigned(),
        expires: row.get::<_, i64>(5)?.cast_unsigned(),
        beat_ms: row.get::<_, i64>(6)?.cast_unsigned(),
    })
}

/// The whole conversion, unless somebody has called since.
pub(super) fn convert(site: &Site, since: &Standing) -> Result<Conversion, StoreError> {
    let step = {
        let file = OpenFile::open(site, Purpose::Messages)?;
        let _turn = file.turn()?;
        writer::begin(&file.db)?;
        let step = convert_within(&file.db, site.clock.now_ms(), since);
        if step.is_ok() {
            file.db.execute_batch("COMMIT")?;
            file.keep_log_short(site);
        }
        // Otherwise the connection is closed, which undoes all of it.
        step
    };
    if matches!(step, Ok(Conversion::Step { .. })) {
        // A file that stays as it was is none the worse for it.
        renewal::renew(site).ok();
    }
    step
}

fn convert_within(db: &Connection, now: u64, since: &Standing) -> Result<Conversion, StoreError> {
    let standing = read_standing(db)?;
    if !standing.is_older() {
        return Ok(Conversion::Nothing);
    }
    if standing.stamp != since.stamp {
        return Ok(Conversion::Disturbed);
    }
    let model = Connection::open_in_memory()?;
    model.execute_batch(SCHEMA)?;
    for (table, columns) in OF_SESSIONS {
        renew_table(db, &model, table, columns)?;
    }
    if standing.format.is_some_and(|format| format < 5) {
        let partly = partly_gone::find(db)?;
        renew_table(db, &model, "remainders", "")?;
        partly_gone::keep(db, &partly)?;
        db.execute_batch("ALTER TABLE fleets ADD COLUMN results INTEGER NOT NULL DEFAULT 0")?;
        let sql = "UPDATE fleets SET results = \
                   (SELECT coalesce(sum(length(result) + ?1), 0) FROM results WHERE results.fleet = fleets.fleet)";
        db.execute(sql, [A_RESULT.cast_signed()])?;
    }
    if standing.format.is_some_and(|format| format < 3) {
        db.execute_batch("ALTER TABLE dead ADD COLUMN headers BLOB NOT NULL DEFAULT x''")?;
    }
    if standing.format.is_some_and(|format| format < 6) {
        for counter in ["cancelled", "cancelled_sum"] {
            db.execute_batch(&format!("ALTER TABLE queues ADD COLUMN {counter} INTEGER NOT NULL DEFAULT 0"))?;
        }
        for table in OF_CALLS.into_iter().chain(OF_RECALLS) {
            renew_table(db, &model, table, "")?;
        }
        for index in ["call_looks", "call_ends", "recalled_ends", "forgotten_order", "flights_of"] {
            db.execute_batch(&made(&model, index)?)?;
        }
    }
    // Calls that ended before are not counted: they expire within an hour.
    db.execute_batch("ALTER TABLE fleets ADD COLUMN calls INTEGER NOT NULL DEFAULT 0")?;
    // What an idempotency key stands for has had no birth: such a call is named by its id alone.
    db.execute_batch("ALTER TABLE keys ADD COLUMN born INTEGER NOT NULL DEFAULT 0")?;
    db.execute_batch("ALTER TABLE bookmarks ADD COLUMN queue TEXT NOT NULL DEFAULT ''")?;
    if standing.format.is_some_and(|format| format >= 6) {
        renew_table(db, &model, "call_holds", "fleet, call, of, id, session, claim_no, emitted")?;
        let sql = "UPDATE call_holds SET due_ms = (SELECT due FROM delayed JOIN queues USING (queue) \
                   WHERE queues.fleet = call_holds.fleet AND name = of AND delayed.id = call_holds.id)";
        db.execute(sql, [])?;
    }
    db.execute_batch(&made(&model, "call_delays")?)?;
    let mut done = Converted::default();
    for fleet in remains::fleets(db)? {
        let mut tables = SqliteTables::new(db, &fleet);
        for (id, session) in tables.sessions()? {
            let Returned { back, failed } = end(&mut tables, now, id, &session, true, u64::MAX)?;
            let back: u64 = back.values().sum();
            done = Converted { sessions: done.sessions + 1, back: done.back + back, failed: done.failed + failed };
        }
        tables.flush()?;
    }
    for (table, _) in OF_SESSIONS {
        db.execute(&format!("DELETE FROM {table}"), [])?;
    }
    db.pragma_update(None, "user_version", FORMAT)?;
    Ok(Conversion::Step { done, left: 0 })
}

/// Makes a table anew, as the schema has it, with what is taken over.
fn renew_table(db: &Connection, model: &Connection, table: &str, columns: &str) -> Result<(), StoreError> {
    let known = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = ?1")?.exists([table])?;
    if known {
        db.execute_batch(&format!("ALTER TABLE {table} RENAME TO former_{table}"))?;
    }
    db.execute_batch(&made(model, table)?)?;
    if known && !columns.is_empty() {
        db.execute(&format!("INSERT INTO {table} ({columns}) SELECT {columns} FROM former_{table}"), [])?;
    }
    Ok(db.execute_batch(&format!("DROP TABLE IF EXISTS former_{table}"))?)
}

/// How the schema makes this.
fn made(model: &Connection, name: &str) -> rusqlite::Result<String> {
    model.query_row("SELECT sql FROM sqlite_schema WHERE name = ?1", [name], |row| row.get(0))
}
