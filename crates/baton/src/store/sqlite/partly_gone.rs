//! Parcels that are partly gone, of a file in which their number left was kept: which are left is found by looking at
//! what waits and what is claimed.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use crate::{
    message::{BodyPlace, Gone, Parcel},
    store::{StoreError, engine::Moved, wire},
};

/// Parcels by the number of their queue and their first id.
pub(super) type Partly = BTreeMap<(i64, i64), Gone>;

/// Which messages have gone of each parcel of which some have. The tables of sessions are of this format already.
pub(super) fn find(db: &Connection) -> Moved<Partly> {
    let sql = "SELECT queue, first, count FROM remainders JOIN parcels USING (queue, first) WHERE own = 0";
    let mut partly = Partly::new();
    let mut rows = db.prepare(sql)?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let size = row.get(2)?;
        let mut gone = Gone::none(size);
        gone.set(0, size, true);
        partly.insert((row.get(0)?, row.get(1)?), gone);
    }
    for sql in [
        "SELECT queue, piece FROM lines WHERE queue IN (SELECT queue FROM remainders)",
        "SELECT queues.queue, pieces FROM claims JOIN queues ON queues.fleet = claims.fleet AND name = claims.queue",
    ] {
        let mut rows = db.prepare(sql)?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let (queue, spans) = (row.get(0)?, row.get::<_, String>(1)?);
            for span in wire::parse_spans(&spans)? {
                let BodyPlace::Parcel { first, .. } = span.place else { continue };
                if let Some(gone) = partly.get_mut(&(queue, first.cast_signed())) {
                    gone.set(span.offset(), span.range.len, false);
                }
            }
        }
    }
    Ok(partly)
}

/// Keeps that, and takes what has gone off the bytes of the queues.
pub(super) fn keep(db: &Connection, partly: &Partly) -> Result<(), StoreError> {
    for ((queue, first), gone) in partly {
        let sql = "SELECT data FROM parcels WHERE queue = ?1 AND first = ?2 AND own = 0";
        let data: Vec<u8> = db.query_row(sql, params![queue, first], |row| row.get(0))?;
        let parcel = Parcel::parse(data.into())?;
        let bytes: u64 = (0..parcel.len()).filter(|at| gone.has(*at)).map(|at| parcel.share(at, 1)).sum();
        let sql = "UPDATE queues SET bytes = max(bytes - ?2, 0) WHERE queue = ?1";
        db.execute(sql, params![queue, bytes.cast_signed()])?;
        db.execute("INSERT INTO remainders VALUES (?1, ?2, ?3)", params![queue, first, gone.bits()])?;
    }
    Ok(())
}
