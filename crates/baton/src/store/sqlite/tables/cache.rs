//! What is cached. Its counters are read once a transaction and written with each change, which are few.

use rusqlite::{Row, params};

use super::{SqliteTables, blob, int, ordered, session_id, text, uint};
use crate::{
    message::{CacheKey, Scope, SessionId},
    store::{
        StoreError,
        engine::{CacheBooks, CacheKind, CacheTable, CachedEntry, ComputeRight, Moved},
    },
};

fn cached(row: &Row<'_>) -> Moved<CachedEntry> {
    let kind = match row.get::<_, i64>(0)? {
        0 => CacheKind::Value,
        1 => CacheKind::Error,
        2 => CacheKind::Pass,
        other => return Err(StoreError::Damaged(format!("a value of kind {other} is kept"))),
    };
    let by = (session_id(row, 2)?, uint(row, 3)?);
    let (made, expires, value) = (uint(row, 4)?, uint(row, 5)?, blob(row, 6)?);
    Ok(CachedEntry { kind, generation: uint(row, 1)?, by, made, expires, value })
}

impl CacheTable for SqliteTables<'_> {
    fn cache_books(&mut self) -> Moved<CacheBooks> {
        if let Some(books) = self.cache_books {
            return Ok(books);
        }
        let Some(fleet) = self.fleet()? else { return Ok(CacheBooks::default()) };
        let sql = "SELECT generation, floor, scopes, bytes FROM recall_books WHERE fleet = ?1";
        let books = self.one(sql, [fleet], |row| {
            let (generation, floor) = (uint(row, 0)?, uint(row, 1)?);
            Ok(CacheBooks { generation, floor, scopes: uint(row, 2)?, bytes: uint(row, 3)? })
        })?;
        Ok(*self.cache_books.insert(books.unwrap_or_default()))
    }

    fn put_cache_books(&mut self, books: &CacheBooks) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql =
            "INSERT OR REPLACE INTO recall_books (fleet, generation, floor, scopes, bytes) VALUES (?1, ?2, ?3, ?4, ?5)";
        let CacheBooks { generation, floor, scopes, bytes } = *books;
        self.run(sql, params![fleet, int(generation), int(floor), int(scopes), int(bytes)])?;
        self.cache_books = Some(*books);
        Ok(())
    }

    fn cached(&mut self, key: &CacheKey) -> Moved<Option<CachedEntry>> {
        let Some(fleet) = self.fleet()? else { return Ok(None) };
        let sql = "SELECT kind, generation, session, number, made, expires, value FROM recalled \
                   WHERE fleet = ?1 AND key = ?2";
        self.one(sql, params![fleet, key.as_str()], cached)
    }

    fn put_cached(&mut self, key: &CacheKey, kept: &CachedEntry) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "INSERT INTO recalled (fleet, key, kind, generation, session, number, made, expires, value) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let kind = match kept.kind {
            CacheKind::Value => 0,
            CacheKind::Error => 1,
            CacheKind::Pass => 2,
        };
        let (session, number) = kept.by;
        let (generation, made, expires) = (int(kept.generation), int(kept.made), ordered(kept.expires));
        let values = params![
            fleet,
            key.as_str(),
            kind,
            generation,
            session.to_bytes(),
            int(number),
            made,
            expires,
            kept.value.as_ref()
        ];
        self.run(sql, values).map(drop)
    }

    fn drop_cached(&mut self, key: &CacheKey) -> Moved<Option<u64>> {
        let Some(fleet) = self.fleet()? else { return Ok(None) };
        let sql = "DELETE FROM recalled WHERE fleet = ?1 AND key = ?2 RETURNING length(value)";
        Ok(self.all(sql, params![fleet, key.as_str()], |row| uint(row, 0))?.first().copied())
    }

    fn oldest_cached(&mut self, limit: u32) -> Moved<Vec<(u64, CacheKey)>> {
        let Some(fleet) = self.fleet()? else { return Ok(Vec::new()) };
        let sql = "SELECT expires, key FROM recalled WHERE fleet = ?1 ORDER BY expires, key LIMIT ?2";
        self.all(sql, params![fleet, limit], |row| Ok((uint(row, 0)?, CacheKey::from_text(text(row, 1)?))))
    }

    fn invalidated_at(&mut self, scope: &Scope) -> Moved<Option<u64>> {
        let Some(fleet) = self.fleet()? else { return Ok(None) };
        let sql = "SELECT generation FROM forgotten WHERE fleet = ?1 AND scope = ?2";
        self.one(sql, params![fleet, scope.as_str()], |row| uint(row, 0))
    }

    fn put_invalidation(&mut self, scope: &Scope, generation: u64, clock: u64) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "INSERT INTO forgotten (fleet, scope, generation, clock) VALUES (?1, ?2, ?3, ?4)";
        self.run(sql, params![fleet, scope.as_str(), ordered(generation), int(clock)]).map(drop)
    }

    fn drop_invalidation(&mut self, scope: &Scope) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "DELETE FROM forgotten WHERE fleet = ?1 AND scope = ?2";
        self.run(sql, params![fleet, scope.as_str()]).map(drop)
    }

    fn invalidated_since(&mut self, generation: u64, limit: u64) -> Moved<Vec<(Scope, u64, u64)>> {
        let Some(fleet) = self.fleet()? else { return Ok(Vec::new()) };
        let sql = "SELECT scope, generation, clock FROM forgotten WHERE fleet = ?1 AND generation > ?2 \
                   ORDER BY generation LIMIT ?3";
        self.all(sql, params![fleet, ordered(generation), ordered(limit)], |row| {
            Ok((Scope::from_text(text(row, 0)?), uint(row, 1)?, uint(row, 2)?))
        })
    }

    fn compute_right(&mut self, key: &CacheKey) -> Moved<Option<ComputeRight>> {
        let Some(fleet) = self.fleet()? else { return Ok(None) };
        let sql = "SELECT session, number, generation, ends FROM flights WHERE fleet = ?1 AND key = ?2";
        self.one(sql, params![fleet, key.as_str()], |row| {
            let (number, generation) = (uint(row, 1)?, uint(row, 2)?);
            Ok(ComputeRight { session: session_id(row, 0)?, number, generation, ends: uint(row, 3)? })
        })
    }

    fn put_compute_right(&mut self, key: &CacheKey, compute_right: &ComputeRight) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "INSERT OR REPLACE INTO flights (fleet, key, session, number, generation, ends) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let ComputeRight { session, number, generation, ends } = *compute_right;
        self.run(sql, params![fleet, key.as_str(), session.to_bytes(), int(number), int(generation), int(ends)])
            .map(drop)
    }

    fn drop_compute_right(&mut self, key: &CacheKey) -> Moved<()> {
        let fleet = self.own_fleet()?;
        self.run("DELETE FROM flights WHERE fleet = ?1 AND key = ?2", params![fleet, key.as_str()]).map(drop)
    }

    fn compute_rights_of(&mut self, session: SessionId) -> Moved<Vec<CacheKey>> {
        let Some(fleet) = self.fleet()? else { return Ok(Vec::new()) };
        let sql = "SELECT key FROM flights WHERE fleet = ?1 AND session = ?2";
        self.all(sql, params![fleet, session.to_bytes()], |row| Ok(CacheKey::from_text(text(row, 0)?)))
    }

    fn add_awaiting(&mut self, key: &CacheKey, session: SessionId, number: u64) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "INSERT OR REPLACE INTO awaiting (fleet, key, session, number) VALUES (?1, ?2, ?3, ?4)";
        self.run(sql, params![fleet, key.as_str(), session.to_bytes(), int(number)]).map(drop)
    }

    fn awaiting(&mut self, key: &CacheKey) -> Moved<Vec<(SessionId, u64)>> {
        let Some(fleet) = self.fleet()? else { return Ok(Vec::new()) };
        let sql = "SELECT session, number FROM awaiting WHERE fleet = ?1 AND key = ?2";
        self.all(sql, params![fleet, key.as_str()], |row| Ok((session_id(row, 0)?, uint(row, 1)?)))
    }

    fn drop_awaiting(&mut self, key: &CacheKey) -> Moved<()> {
        let fleet = self.own_fleet()?;
        self.run("DELETE FROM awaiting WHERE fleet = ?1 AND key = ?2", params![fleet, key.as_str()]).map(drop)
    }

    fn add_cache_user(&mut self, session: SessionId) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "INSERT OR IGNORE INTO recallers (fleet, session) VALUES (?1, ?2)";
        self.run(sql, params![fleet, session.to_bytes()]).map(drop)
    }

    fn cache_users(&mut self, limit: u64) -> Moved<Vec<SessionId>> {
        let Some(fleet) = self.fleet()? else { return Ok(Vec::new()) };
        let sql = "SELECT session FROM recallers WHERE fleet = ?1 LIMIT ?2";
        self.all(sql, params![fleet, ordered(limit)], |row| session_id(row, 0))
    }

    fn drop_cache_user(&mut self, session: SessionId) -> Moved<bool> {
        let Some(fleet) = self.fleet()? else { return Ok(false) };
        let sql = "DELETE FROM recallers WHERE fleet = ?1 AND session = ?2";
        Ok(self.run(sql, params![fleet, session.to_bytes()])? > 0)
    }
}
