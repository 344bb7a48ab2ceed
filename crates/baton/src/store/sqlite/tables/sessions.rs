//! Sessions, and the answers kept for them.

use rusqlite::{Row, params};

use super::{SqliteTables, blob, int, ordered, session_id, text, uint};
use crate::{
    message::{Digest, Name, SessionId},
    store::{
        Kind, Offer, StoreError,
        engine::{Moved, Series, SessionRecord, Sessions, UnreapedClaims},
        operation::RETURNED_AT_ONCE,
    },
};

/// A session as it is held during a transaction.
pub(super) struct SessionRow {
    record: SessionRecord,
    /// Whether it has rows in the file.
    stored: bool,
    changed: bool,
    /// Whether the part that only beats change was changed.
    beaten: bool,
}

/// The query for whole sessions, with what follows it.
macro_rules! select_sessions {
    ($rest:literal) => {
        concat!(
            "SELECT session, m.node, m.host, m.pid, m.queues, m.offers, s.lease_ms, m.join_no, m.joined_ms, m.beat_ms, ",
            "m.report, s.expires, s.suspects, s.settle_no, s.submit_no, s.dispose_no ",
            "FROM sessions s JOIN members m USING (fleet, session) ",
            $rest
        )
    };
}

impl SqliteTables<'_> {
    pub(super) fn flush_sessions(&mut self) -> Moved<()> {
        if !self.sessions.values().flatten().any(|row| row.changed) {
            return Ok(());
        }
        let fleet = self.own_fleet()?;
        for (id, row) in &mut self.sessions {
            let Some(row) = row.as_mut().filter(|row| row.changed) else { continue };
            let id = id.to_bytes();
            let it = &row.record;
            let sql = if row.stored {
                "UPDATE sessions SET lease_ms = ?3, expires = ?4, suspects = ?5, settle_no = ?6, submit_no = ?7, \
                 dispose_no = ?8 WHERE fleet = ?1 AND session = ?2"
            } else {
                "INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
            };
            self.db.prepare_cached(sql)?.execute(params![
                fleet,
                id,
                int(it.lease_ms),
                ordered(it.expires),
                it.suspects,
                int(it.settle_no),
                int(it.submit_no),
                int(it.dispose_no),
            ])?;
            if row.stored && row.beaten {
                let sql = "UPDATE members SET beat_ms = ?3, report = ?4 WHERE fleet = ?1 AND session = ?2";
                let mut statement = self.db.prepare_cached(sql)?;
                statement.execute(params![fleet, id, int(it.beat_ms), it.report.as_ref()])?;
            } else if !row.stored {
                let offers = it.offers.iter().map(|offer| {
                    let Offer { source, queue, definition, adopts: _ } = offer;
                    format!("{source},{queue},{definition}")
                });
                let sql = "INSERT INTO members VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
                self.db.prepare_cached(sql)?.execute(params![
                    fleet,
                    id,
                    it.kind == Kind::Node,
                    it.host,
                    it.pid,
                    joined(it.queues.iter()),
                    joined(offers),
                    int(it.join_no),
                    int(it.joined_ms),
                    int(it.beat_ms),
                    it.report.as_ref(),
                ])?;
            }
            (row.stored, row.changed, row.beaten) = (true, false, false);
        }
        Ok(())
    }
}

impl Sessions for SqliteTables<'_> {
    fn session(&mut self, id: SessionId) -> Moved<Option<SessionRecord>> {
        if let Some(held) = self.sessions.get(&id) {
            return Ok(held.as_ref().map(|row| row.record.clone()));
        }
        let Some(fleet) = self.fleet()? else { return Ok(None) };
        let sql = select_sessions!("WHERE fleet = ?1 AND session = ?2");
        let record = self.one(sql, params![fleet, id.to_bytes()], read_record)?;
        let row = record.clone().map(|record| SessionRow { record, stored: true, changed: false, beaten: false });
        self.sessions.insert(id, row);
        Ok(record)
    }

    fn put_session(&mut self, id: SessionId, record: &SessionRecord) -> Moved<()> {
        self.session(id)?;
        match self.sessions.get_mut(&id).and_then(Option::as_mut) {
            Some(row) => {
                row.beaten |= row.record.beat_ms != record.beat_ms || row.record.report != record.report;
                row.changed = true;
                row.record.clone_from(record);
            }
            None => {
                let row = SessionRow { record: record.clone(), stored: false, changed: true, beaten: true };
                self.sessions.insert(id, Some(row));
                self.lease = None;
            }
        }
        Ok(())
    }

    fn drop_session(&mut self, id: SessionId) -> Moved<()> {
        let fleet = self.own_fleet()?;
        for sql in [
            "DELETE FROM sessions WHERE fleet = ?1 AND session = ?2",
            "DELETE FROM members WHERE fleet = ?1 AND session = ?2",
            "DELETE FROM answers WHERE fleet = ?1 AND session = ?2",
            "DELETE FROM told WHERE fleet = ?1 AND session = ?2",
            "DELETE FROM claim_numbers WHERE fleet = ?1 AND session = ?2",
        ] {
            self.run(sql, params![fleet, id.to_bytes()])?;
        }
        self.sessions.insert(id, None);
        self.numbers.retain(|(session, _), _| *session != id);
        self.lease = None;
        Ok(())
    }

    fn sessions(&mut self) -> Moved<Vec<(SessionId, SessionRecord)>> {
        self.flush_sessions()?;
        let Some(fleet) = self.fleet()? else { return Ok(Vec::new()) };
        let sql = select_sessions!("WHERE fleet = ?1 ORDER BY session");
        self.all(sql, [fleet], |row| Ok((session_id(row, 0)?, read_record(row)?)))
    }

    fn returned_at_once(&self) -> u64 {
        RETURNED_AT_ONCE
    }

    fn unreaped(&mut self, id: SessionId) -> Moved<Option<UnreapedClaims>> {
        let Some(fleet) = self.fleet()? else { return Ok(None) };
        let sql = "SELECT node, lost FROM estates WHERE fleet = ?1 AND session = ?2";
        self.one(sql, params![fleet, id.to_bytes()], |row| {
            Ok(UnreapedClaims { node: text(row, 0)?.to_owned(), lost: row.get(1)? })
        })
    }

    fn put_unreaped(&mut self, id: SessionId, unreaped: Option<&UnreapedClaims>) -> Moved<()> {
        let fleet = self.own_fleet()?;
        match unreaped {
            Some(UnreapedClaims { node, lost }) => {
                let sql = "INSERT OR REPLACE INTO estates VALUES (?1, ?2, ?3, ?4)";
                self.run(sql, params![fleet, id.to_bytes(), node, lost]).map(drop)
            }
            None => {
                let sql = "DELETE FROM estates WHERE fleet = ?1 AND session = ?2";
                self.run(sql, params![fleet, id.to_bytes()]).map(drop)
            }
        }
    }

    fn unreaped_sessions(&mut self) -> Moved<Vec<SessionId>> {
        let Some(fleet) = self.fleet()? else { return Ok(Vec::new()) };
        self.all("SELECT session FROM estates WHERE fleet = ?1 ORDER BY session", [fleet], |row| session_id(row, 0))
    }

    fn expired(&mut self, clock: u64, limit: usize) -> Moved<Vec<SessionId>> {
        self.flush_sessions()?;
        let Some(fleet) = self.fleet()? else { return Ok(Vec::new()) };
        let mut over = self.unreaped_sessions()?;
        over.truncate(limit);
        let sql = "SELECT session FROM sessions WHERE fleet = ?1 AND expires <= ?2 ORDER BY expires, session LIMIT ?3";
        let limit = i64::try_from(limit - over.len()).unwrap_or(i64::MAX);
        over.extend(self.all(sql, params![fleet, ordered(clock), limit], |row| session_id(row, 0))?);
        Ok(over)
    }

    fn smallest_lease(&mut self) -> Moved<Option<u64>> {
        if let Some(lease) = self.lease {
            return Ok(lease);
        }
        self.flush_sessions()?;
        let Some(fleet) = self.fleet()? else { return Ok(None) };
        let sql = "SELECT min(lease_ms) FROM sessions WHERE fleet = ?1";
        let lease = self.one(sql, [fleet], |row| Ok(row.get::<_, Option<i64>>(0)?.map(i64::cast_unsigned)))?;
        Ok(*self.lease.insert(lease.flatten()))
    }

    fn answer(&mut self, id: SessionId, series: Series, no: u64) -> Moved<Option<String>> {
        let Some(fleet) = self.fleet()? else { return Ok(None) };
        let sql = "SELECT answer FROM answers WHERE fleet = ?1 AND session = ?2 AND series = ?3 AND no = ?4";
        self.one(sql, params![fleet, id.to_bytes(), series_number(series), int(no)], |row| Ok(text(row, 0)?.to_owned()))
    }

    fn put_answer(&mut self, id: SessionId, series: Series, no: u64, keep: u64, answer: &str) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let slot = int(no.checked_rem(keep).unwrap_or(0));
        let sql = "INSERT OR REPLACE INTO answers VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.run(sql, params![fleet, id.to_bytes(), series_number(series), slot, int(no), answer]).map(drop)
    }
}

/// How a series is written in the file.
const fn series_number(series: Series) -> i64 {
    match series {
        Series::Submit => 0,
        Series::Settle => 1,
        Series::Dispose => 2,
    }
}

fn read_record(row: &Row<'_>) -> Moved<SessionRecord> {
    let queues: Option<Vec<Name>> = words(text(row, 4)?, |word| word.parse().ok());
    let offers: Option<Vec<Offer>> = words(text(row, 5)?, |word| {
        let (source, rest) = word.split_once(',')?;
        let (queue, definition) = rest.split_once(',')?;
        let definition: Digest = definition.parse().ok()?;
        Some(Offer { source: source.parse().ok()?, queue: queue.parse().ok()?, definition, adopts: false })
    });
    let (Some(queues), Some(offers)) = (queues, offers) else {
        return Err(StoreError::Damaged("a session's record is unreadable".to_owned()));
    };
    Ok(SessionRecord {
        kind: if row.get(1)? { Kind::Node } else { Kind::Client },
        host: text(row, 2)?.to_owned(),
        pid: row.get(3)?,
        queues,
        offers,
        lease_ms: uint(row, 6)?,
        join_no: uint(row, 7)?,
        joined_ms: uint(row, 8)?,
        beat_ms: uint(row, 9)?,
        report: blob(row, 10)?,
        expires: uint(row, 11)?,
        suspects: row.get(12)?,
        settle_no: uint(row, 13)?,
        submit_no: uint(row, 14)?,
        dispose_no: uint(row, 15)?,
    })
}

/// Values as `a;b;c`; none of them has a semicolon.
pub(super) fn joined(values: impl Iterator<Item = impl ToString>) -> String {
    values.map(|value| value.to_string()).collect::<Vec<_>>().join(";")
}

/// Reads [`joined`].
pub(super) fn words<T>(text: &str, read: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    text.split(';').filter(|word| !word.is_empty()).map(read).collect()
}
