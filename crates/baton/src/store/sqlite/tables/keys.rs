//! Idempotency keys and bookmarks.

use rusqlite::params;

use super::{SqliteTables, int, name, ordered, text, uint};
use crate::{
    message::{Key, MessageId, Name},
    store::{
        Place,
        engine::{KeyRecord, Keys, Moved},
    },
};

impl SqliteTables<'_> {
    /// Keeps the count of keys up with what was added and removed.
    fn recount_keys(&mut self, count: impl FnOnce(u64) -> u64) -> Moved<()> {
        let row = self.own_row()?;
        row.keys = count(row.keys);
        row.changed = true;
        Ok(())
    }
}

impl Keys for SqliteTables<'_> {
    fn key(&mut self, key: &Key) -> Moved<Option<KeyRecord>> {
        let Some(fleet) = self.fleet()? else { return Ok(None) };
        let sql = "SELECT queue, id, digest, expires_ms, born FROM keys WHERE fleet = ?1 AND key = ?2";
        self.one(sql, params![fleet, key.as_str()], |row| {
            let digest = text(row, 2)?.parse()?;
            let (id, expires_ms, born) = (MessageId(uint(row, 1)?), uint(row, 3)?, uint(row, 4)?);
            Ok(KeyRecord { queue: name(row, 0)?, id, born, digest, expires_ms })
        })
    }

    fn put_key(&mut self, key: &Key, record: &KeyRecord) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let KeyRecord { queue, id, born, digest, expires_ms } = record;
        let (digest, expires_ms) = (digest.to_string(), ordered(*expires_ms));
        let known = self.run(
            "UPDATE keys SET queue = ?3, id = ?4, digest = ?5, expires_ms = ?6, born = ?7 WHERE fleet = ?1 AND key = ?2",
            params![fleet, key.as_str(), queue.as_str(), int(id.0), digest, expires_ms, int(*born)],
        )?;
        if known == 0 {
            self.run(
                "INSERT INTO keys VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![fleet, key.as_str(), queue.as_str(), int(id.0), digest, expires_ms, int(*born)],
            )?;
            self.recount_keys(|keys| keys + 1)?;
        }
        Ok(())
    }

    fn drop_keys_of(&mut self, queue: &Name) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "DELETE FROM keys WHERE fleet = ?1 AND queue = ?2";
        let gone = self.run(sql, params![fleet, queue.as_str()])? as u64;
        self.recount_keys(|keys| keys.saturating_sub(gone))
    }

    fn key_count(&mut self) -> Moved<u64> {
        Ok(self.fleet_row()?.map_or(0, |row| row.keys))
    }

    fn expire_keys(&mut self, now: u64, limit: u32) -> Moved<u32> {
        let fleet = self.own_fleet()?;
        let sql = "DELETE FROM keys WHERE fleet = ?1 AND key IN (SELECT key FROM keys \
                   WHERE fleet = ?1 AND expires_ms <= ?2 ORDER BY expires_ms, key LIMIT ?3)";
        let gone = self.run(sql, params![fleet, ordered(now), limit])? as u32;
        if gone > 0 {
            self.recount_keys(|keys| keys.saturating_sub(u64::from(gone)))?;
        }
        Ok(gone)
    }

    fn bookmark(&mut self, key: &Key) -> Moved<Option<Place>> {
        let Some(fleet) = self.fleet()? else { return Ok(None) };
        let sql = "SELECT lines, digest FROM bookmarks WHERE fleet = ?1 AND key = ?2";
        self.one(sql, params![fleet, key.as_str()], |row| {
            Ok(Place { lines: uint(row, 0)?, digest: text(row, 1)?.parse()? })
        })
    }

    fn put_bookmark(&mut self, key: &Key, queue: Option<&Name>, place: &Place) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "INSERT OR REPLACE INTO bookmarks (fleet, key, lines, digest, queue) VALUES (?1, ?2, ?3, ?4, ?5)";
        let digest = place.digest.to_string();
        self.run(sql, params![fleet, key.as_str(), int(place.lines), digest, queue.map_or("", Name::as_str)]).map(drop)
    }

    fn drop_bookmarks_of(&mut self, queue: &Name) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "DELETE FROM bookmarks WHERE fleet = ?1 AND queue = ?2";
        self.run(sql, params![fleet, queue.as_str()]).map(drop)
    }
}
