//! What a destroyed fleet leaves in the file: its rows, which go a few at a time.
//!
//! A destruction takes the fleet's name away, in one short transaction: from then on nobody finds it, and a fleet of that name
//! is a new one, with numbers of its own. The rows under the former numbers are removed in steps, by whoever writes to
//! the file, and the row that holds the number goes last: killed midway, the next one goes on.

use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension as _};

use crate::{message::Name, store::StoreError};

/// SQL for fleets that are there: no name begins with a space.
pub(super) const NAMED: &str = "name NOT LIKE ' %'";
/// SQL that takes the name of a fleet away.
pub(super) const UNNAME: &str = "UPDATE fleets SET name = ' ' || fleet WHERE fleet = ?1";

/// The fleets that are there, in the order they came.
pub(super) fn fleets(db: &Connection) -> Result<Vec<Name>, StoreError> {
    let mut rows = db.prepare(&format!("SELECT name FROM fleets WHERE {NAMED} ORDER BY fleet"))?;
    let names: Vec<String> = rows.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    names.iter().map(|name| Ok(Name::new(name)?)).collect()
}

/// The tables with rows of queues, by the columns that tell a row.
const OF_QUEUES: [(&str, &str); 5] = [
    ("lines", "queue, line, place"),
    ("delayed", "queue, due, id"),
    ("parcels", "parcel"),
    ("remainders", "queue, first"),
    ("dead", "entry"),
];

/// The tables with rows of fleets.
const OF_FLEETS: [(&str, &str); 25] = [
    ("results", "entry"),
    ("calls", "call"),
    ("call_events", "fleet, call, number"),
    ("call_keys", "fleet, call, key"),
    ("call_holds", "fleet, call, of, id"),
    ("joined", "fleet, queue, id"),
    ("told", "fleet, session, queue, id"),
    ("recall_books", "fleet"),
    ("recalled", "entry"),
    ("forgotten", "fleet, scope"),
    ("flights", "fleet, key"),
    ("awaiting", "fleet, key, session"),
    ("recallers", "fleet, session"),
    ("keys", "fleet, key"),
    ("answers", "fleet, session, series, slot"),
    ("claims", "fleet, session, queue, claim_no"),
    ("claim_numbers", "fleet, session, queue"),
    ("waiters", "fleet, queue, session"),
    ("batons", "fleet, session"),
    ("workers", "fleet, queue"),
    ("sources", "fleet, name"),
    ("bookmarks", "fleet, key"),
    ("members", "fleet, session"),
    ("sessions", "fleet, session"),
    ("estates", "fleet, session"),
];

/// The most rows that go with one statement, and how long one should take: rows may be long.
const MOST: u32 = 512;
const STATEMENT: Duration = Duration::from_millis(1);

/// Whether a fleet has left rows behind.
pub(super) fn are_there(db: &Connection) -> rusqlite::Result<bool> {
    Ok(destroyed(db)?.is_some())
}

/// Removes rows, inside a transaction, until this moment.
pub(super) fn remove(db: &Connection, until: Instant) -> rusqlite::Result<()> {
    let mut rows = MOST / 8;
    while let Some(fleet) = destroyed(db)? {
        while let Some(queue) = queue_of(db, fleet)? {
            for (table, key) in OF_QUEUES {
                if !clear(db, table, key, "queue", queue, &mut rows, until)? {
                    return Ok(());
                }
            }
            db.prepare_cached("DELETE FROM queues WHERE queue = ?1")?.execute([queue])?;
        }
        for (table, key) in OF_FLEETS {
            if !clear(db, table, key, "fleet", fleet, &mut rows, until)? {
                return Ok(());
            }
        }
        db.prepare_cached("DELETE FROM fleets WHERE fleet = ?1")?.execute([fleet])?;
    }
    Ok(())
}

fn destroyed(db: &Connection) -> rusqlite::Result<Option<i64>> {
    db.prepare_cached(&format!("SELECT fleet FROM fleets WHERE NOT ({NAMED}) LIMIT 1"))?
        .query_row([], |row| row.get(0))
        .optional()
}

fn queue_of(db: &Connection, fleet: i64) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT queue FROM queues WHERE fleet = ?1 LIMIT 1";
    db.prepare_cached(sql)?.query_row([fleet], |row| row.get(0)).optional()
}

/// Removes the rows of one owner from a table; whether all of them are gone.
fn clear(
    db: &Connection, table: &str, key: &str, of: &str, owner: i64, rows: &mut u32, until: Instant,
) -> rusqlite::Result<bool> {
    let sql = format!("DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {of} = ?1 LIMIT ?2)");
    let mut statement = db.prepare_cached(&sql)?;
    loop {
        let begun = Instant::now();
        let gone = statement.execute([owner, i64::from(*rows)])?;
        if gone < *rows as usize {
            return Ok(true);
        }
        *rows = if begun.elapsed() < STATEMENT { (*rows * 2).min(MOST) } else { (*rows / 2).max(1) };
        if Instant::now() >= until {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::building::SCHEMA;

    fn model() -> Connection {
        let db = Connection::open_in_memory().expect("a database in memory");
        db.execute_batch(SCHEMA).expect("the schema");
        db
    }

    /// A table that is forgotten here would keep rows under a number that another fleet gets.
    #[test]
    fn every_table_with_rows_of_a_fleet_is_known() {
        let db = model();
        let sql = "SELECT t.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' \
                   AND c.name IN ('fleet', 'queue') GROUP BY t.name ORDER BY t.name";
        let mut query = db.prepare(sql).expect("a query");
        let found: Vec<String> =
            query.query_map([], |row| row.get(0)).expect("rows").map(Result::unwrap_or_default).collect();
        let mut known: Vec<&str> = OF_QUEUES.into_iter().chain(OF_FLEETS).map(|(table, _)| table).collect();
        known.extend(["fleets", "queues"]);
        known.sort_unstable();
        assert_eq!(found, known);
    }

    /// A scan would make each step as long as what is left.
    #[test]
    fn no_step_looks_at_more_rows_than_it_removes() {
        let db = model();
        let of = |tables: &[(&'static str, &'static str)], of| {
            tables.iter().map(move |it| (it.0, it.1, of)).collect::<Vec<_>>()
        };
        for (table, key, of) in [of(&OF_QUEUES, "queue"), of(&OF_FLEETS, "fleet")].concat() {
            let sql = format!(
                "EXPLAIN QUERY PLAN DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {of} = 1 LIMIT 9)"
            );
            let mut query = db.prepare(&sql).expect("a plan");
            let plan: Vec<String> =
                query.query_map([], |row| row.get(3)).expect("rows").map(Result::unwrap_or_default).collect();
            assert!(!plan.iter().any(|line| line.starts_with("SCAN")), "{table}: {plan:?}");
        }
    }
}
