//! Sources: whose baton, which epoch, where the cursor stands.

use rusqlite::{Row, params};

use super::{SqliteTables, int, name, optional_session, text, uint};
use crate::{
    message::Name,
    store::engine::{Moved, SourceRecord, Sources},
};

impl Sources for SqliteTables<'_> {
    fn source(&mut self, name: &Name) -> Moved<Option<SourceRecord>> {
        let Some(fleet) = self.fleet()? else { return Ok(None) };
        let sql = "SELECT name, queue, definition, holder, epoch, cursor, batch_no, ended FROM sources \
                   WHERE fleet = ?1 AND name = ?2";
        self.one(sql, params![fleet, name.as_str()], read_record)
    }

    fn put_source(&mut self, name: &Name, it: &SourceRecord) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "INSERT OR REPLACE INTO sources VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        self.run(
            sql,
            params![
                fleet,
                name.as_str(),
                it.queue.as_str(),
                it.definition.map(|definition| definition.to_string()),
                it.holder.map(|holder| holder.to_bytes()),
                int(it.epoch),
                it.cursor,
                int(it.batch_no),
                it.ended,
            ],
        )
        .map(drop)
    }

    fn drop_source(&mut self, name: &Name) -> Moved<()> {
        let Some(fleet) = self.fleet()? else { return Ok(()) };
        self.run("DELETE FROM sources WHERE fleet = ?1 AND name = ?2", params![fleet, name.as_str()]).map(drop)
    }

    fn sources(&mut self) -> Moved<Vec<(Name, SourceRecord)>> {
        let Some(fleet) = self.fleet()? else { return Ok(Vec::new()) };
        let sql = "SELECT name, queue, definition, holder, epoch, cursor, batch_no, ended FROM sources \
                   WHERE fleet = ?1 ORDER BY name";
        self.all(sql, [fleet], |row| Ok((name(row, 0)?, read_record(row)?)))
    }
}

fn read_record(row: &Row<'_>) -> Moved<SourceRecord> {
    let definition: Option<String> = row.get(2)?;
    Ok(SourceRecord {
        queue: name(row, 1)?,
        definition: definition.map(|text| text.parse()).transpose()?,
        holder: optional_session(row, 3)?,
        epoch: uint(row, 4)?,
        cursor: text(row, 5)?.to_owned(),
        batch_no: uint(row, 6)?,
        ended: row.get(7)?,
    })
}
