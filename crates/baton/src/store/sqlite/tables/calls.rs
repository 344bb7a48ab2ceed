//! Calls, and what they have told. A call's record is a text, since all of it is read and written together; its result, its
//! events and its messages have rows of their own.

use std::collections::BTreeMap;

use bytes::Bytes;
use rusqlite::{Row, params};

use super::{SqliteTables, blob, int, name, optional_session, ordered, text, uint};
use crate::{
    message::{CallId, Key, MessageId, Name, SessionId},
    store::{
        AN_EVENT, CallState, StoreError,
        engine::{CallRecord, Calls, Follower, Hold, Moved, calls::weight},
        wire::list,
    },
};

/// How many events are looked at when some make room.
const EVENTS_AT_ONCE: u32 = 256;

impl SqliteTables<'_> {
    /// The fleet and the row of a call, if there is one.
    fn call_row(&mut self, call: &CallId) -> Moved<Option<(i64, i64)>> {
        let Some(fleet) = self.fleet()? else { return Ok(None) };
        let sql = "SELECT call FROM calls WHERE fleet = ?1 AND queue = ?2 AND id = ?3";
        self.one(sql, params![fleet, call.queue.as_str(), int(call.id.0)], |row| Ok((fleet, row.get(0)?)))
    }

    /// The row of a call that the engine has made.
    fn own_call(&mut self, call: &CallId) -> Moved<(i64, i64)> {
        let row = self.call_row(call)?;
        row.ok_or_else(|| StoreError::Damaged(format!("call {call} is written to but unknown")))
    }
}

impl SqliteTables<'_> {
    /// Keeps up with what those that have ended count for.
    fn count_calls(&mut self, count: impl FnOnce(u64) -> u64) -> Moved<()> {
        let row = self.own_row()?;
        row.calls = count(row.calls);
        row.changed = true;
        Ok(())
    }

    /// Forgets those that have ended and expire by `upto`, the oldest first, until they counted for `bytes`, or `limit` have
    /// gone.
    fn forget_calls(&mut self, upto: i64, bytes: u64, limit: u32) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "SELECT call, record, outcome FROM calls WHERE fleet = ?1 AND expires_ms <= ?2 \
                   ORDER BY expires_ms, queue, id LIMIT ?3";
        let oldest = self.all(sql, params![fleet, upto, limit], |row| Ok((row.get::<_, i64>(0)?, record(row, 1)?)))?;
        let mut gone = 0;
        for (call, record) in &oldest {
            if gone >= bytes {
                break;
            }
            gone += weight(record);
            for table in ["calls", "call_events", "call_keys", "call_holds"] {
                self.run(&format!("DELETE FROM {table} WHERE fleet = ?1 AND call = ?2"), [fleet, *call])?;
            }
        }
        if gone > 0 { self.count_calls(|calls| calls.saturating_sub(gone)) } else { Ok(()) }
    }
}

/// A record and, in the column behind it, its outcome.
fn record(row: &Row<'_>, at: usize) -> Moved<CallRecord> {
    let outcome = row.get_ref(at + 1)?.as_blob_or_null().map_err(|_| damaged("its outcome"))?;
    let written = text(row, at)?;
    parse(written, outcome.map(Bytes::copy_from_slice)).ok_or_else(|| damaged(written))
}

impl Calls for SqliteTables<'_> {
    fn call(&mut self, call: &CallId) -> Moved<Option<CallRecord>> {
        let Some(fleet) = self.fleet()? else { return Ok(None) };
        let sql = "SELECT record, outcome FROM calls WHERE fleet = ?1 AND queue = ?2 AND id = ?3";
        self.one(sql, params![fleet, call.queue.as_str(), int(call.id.0)], |row| record(row, 0))
    }

    fn put_call(&mut self, call: &CallId, record: &CallRecord) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let (written, outcome) = (write(record), record.outcome.as_deref());
        let known = self.run(
            "UPDATE calls SET record = ?4, outcome = ?5 WHERE fleet = ?1 AND queue = ?2 AND id = ?3",
            params![fleet, call.queue.as_str(), int(call.id.0), written, outcome],
        )?;
        if known == 0 {
            self.run(
                "INSERT INTO calls (fleet, queue, id, record, outcome) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![fleet, call.queue.as_str(), int(call.id.0), written, outcome],
            )?;
        }
        Ok(())
    }

    fn call_bytes(&mut self) -> Moved<u64> {
        Ok(self.fleet_row()?.map_or(0, |row| row.calls))
    }

    fn expire_calls(&mut self, now: u64, limit: u32) -> Moved<()> {
        self.forget_calls(ordered(now), u64::MAX, limit)
    }

    fn drop_oldest_calls(&mut self, bytes: u64, limit: u32) -> Moved<()> {
        self.forget_calls(i64::MAX, bytes, limit)
    }

    fn put_call_end(&mut self, call: &CallId, expires_ms: u64, weight: u64) -> Moved<()> {
        let (_, row) = self.own_call(call)?;
        self.run("UPDATE calls SET expires_ms = ?2 WHERE call = ?1", params![row, ordered(expires_ms)])?;
        self.count_calls(|calls| calls + weight)
    }

    fn joined(&mut self, queue: &Name, id: MessageId) -> Moved<Option<CallId>> {
        let Some(fleet) = self.fleet()? else { return Ok(None) };
        let sql = "SELECT call_queue, call_id FROM joined WHERE fleet = ?1 AND queue = ?2 AND id = ?3";
        self.one(sql, params![fleet, queue.as_str(), int(id.0)], |row| {
            Ok(CallId { queue: name(row, 0)?, id: MessageId(uint(row, 1)?), born: None })
        })
    }

    fn put_joined(&mut self, queue: &Name, id: MessageId, call: &CallId) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "INSERT OR REPLACE INTO joined VALUES (?1, ?2, ?3, ?4, ?5)";
        self.run(sql, params![fleet, queue.as_str(), int(id.0), call.queue.as_str(), int(call.id.0)]).map(drop)
    }

    fn drop_joined(&mut self, queue: &Name, id: MessageId) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "DELETE FROM joined WHERE fleet = ?1 AND queue = ?2 AND id = ?3";
        self.run(sql, params![fleet, queue.as_str(), int(id.0)]).map(drop)
    }

    fn hold(&mut self, call: &CallId, queue: &Name, id: MessageId) -> Moved<Hold> {
        let Some((fleet, row)) = self.call_row(call)? else { return Ok(Hold::default()) };
        let sql = "SELECT session, claim_no, emitted, due_ms FROM call_holds WHERE fleet = ?1 AND call = ?2 AND of = ?3 AND id = ?4";
        let hold = self.one(sql, params![fleet, row, queue.as_str(), int(id.0)], |row| {
            let claim_no = uint(row, 1)?;
            let by = optional_session(row, 0)?.map(|session| (session, claim_no));
            Ok(Hold { by, emitted: uint(row, 2)?, due_ms: row.get::<_, Option<i64>>(3)?.map(i64::cast_unsigned) })
        })?;
        Ok(hold.unwrap_or_default())
    }

    fn put_hold(&mut self, call: &CallId, queue: &Name, id: MessageId, hold: &Hold) -> Moved<()> {
        let (fleet, row) = self.own_call(call)?;
        if *hold == Hold::default() {
            let sql = "DELETE FROM call_holds WHERE fleet = ?1 AND call = ?2 AND of = ?3 AND id = ?4";
            return self.run(sql, params![fleet, row, queue.as_str(), int(id.0)]).map(drop);
        }
        let (session, claim_no) = (hold.by.map(|(session, _)| session.to_bytes()), hold.by.map_or(0, |(_, no)| no));
        let sql = "INSERT OR REPLACE INTO call_holds VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let (emitted, due_ms) = (int(hold.emitted), hold.due_ms.map(ordered));
        self.run(sql, params![fleet, row, queue.as_str(), int(id.0), session, int(claim_no), emitted, due_ms]).map(drop)
    }

    fn delayed_of(&mut self, call: &CallId, limit: usize) -> Moved<Vec<(u64, Name, MessageId)>> {
        let Some((fleet, row)) = self.call_row(call)? else { return Ok(Vec::new()) };
        let sql = "SELECT due_ms, of, id FROM call_holds WHERE fleet = ?1 AND call = ?2 AND due_ms IS NOT NULL \
                   ORDER BY due_ms, of, id LIMIT ?3";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.all(sql, params![fleet, row, limit], |row| Ok((uint(row, 0)?, name(row, 1)?, MessageId(uint(row, 2)?))))
    }

    fn put_event(&mut self, call: &CallId, number: u64, event: &Bytes) -> Moved<()> {
        let (fleet, row) = self.own_call(call)?;
        let sql = "INSERT INTO call_events VALUES (?1, ?2, ?3, ?4)";
        self.run(sql, params![fleet, row, int(number), event.as_ref()]).map(drop)
    }

    fn events(&mut self, call: &CallId, from: u64, limit: u32, budget: u64) -> Moved<Vec<Bytes>> {
        let Some((fleet, row)) = self.call_row(call)? else { return Ok(Vec::new()) };
        let mut statement = self.db.prepare_cached(
            "SELECT event FROM call_events WHERE fleet = ?1 AND call = ?2 AND number >= ?3 ORDER BY number LIMIT ?4",
        )?;
        let mut rows = statement.query(params![fleet, row, int(from), limit])?;
        let (mut events, mut bytes) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            let event = blob(row, 0)?;
            bytes += event.len() as u64;
            if !events.is_empty() && bytes > budget {
                break;
            }
            events.push(event);
        }
        Ok(events)
    }

    fn trim_events(&mut self, call: &CallId, below: u64, bytes: u64) -> Moved<(u64, u64)> {
        let (fleet, row) = self.own_call(call)?;
        let mut freed = 0;
        loop {
            let sql =
                "SELECT number, length(event) FROM call_events WHERE fleet = ?1 AND call = ?2 ORDER BY number LIMIT ?3";
            let oldest = self
                .all(sql, params![fleet, row, EVENTS_AT_ONCE], |row| Ok((uint(row, 0)?, uint(row, 1)? + AN_EVENT)))?;
            let mut upto = None;
            for (number, weight) in &oldest {
                if *number >= below || freed >= bytes {
                    break;
                }
                freed += weight;
                upto = Some(*number);
            }
            if let Some(upto) = upto {
                let sql = "DELETE FROM call_events WHERE fleet = ?1 AND call = ?2 AND number <= ?3";
                self.run(sql, params![fleet, row, int(upto)])?;
            }
            let (first, last) = (oldest.first().map(|it| it.0), oldest.last().map(|it| it.0));
            if upto.is_none() {
                return Ok((first.map_or(below, |first| first.min(below)), freed));
            }
            if upto != last {
                return Ok((upto.map_or(below, |upto| (upto + 1).min(below)), freed));
            }
        }
    }

    fn has_emit_key(&mut self, call: &CallId, key: &Key) -> Moved<bool> {
        let Some((fleet, row)) = self.call_row(call)? else { return Ok(false) };
        let sql = "SELECT 1 FROM call_keys WHERE fleet = ?1 AND call = ?2 AND key = ?3";
        Ok(self.one(sql, params![fleet, row, key.as_str()], |_| Ok(()))?.is_some())
    }

    fn put_emit_key(&mut self, call: &CallId, key: &Key) -> Moved<()> {
        let (fleet, row) = self.own_call(call)?;
        self.run("INSERT OR IGNORE INTO call_keys VALUES (?1, ?2, ?3)", params![fleet, row, key.as_str()]).map(drop)
    }

    fn put_look(&mut self, call: &CallId, at_ms: Option<u64>) -> Moved<()> {
        let (_, row) = self.own_call(call)?;
        self.run("UPDATE calls SET look_ms = ?2 WHERE call = ?1", params![row, at_ms.map(ordered)]).map(drop)
    }

    fn looks(&mut self, now: u64, limit: usize) -> Moved<Vec<CallId>> {
        let Some(fleet) = self.fleet()? else { return Ok(Vec::new()) };
        let sql = "SELECT queue, id FROM calls WHERE fleet = ?1 AND look_ms <= ?2 ORDER BY look_ms, queue, id LIMIT ?3";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.all(sql, params![fleet, ordered(now), limit], |row| {
            Ok(CallId { queue: name(row, 0)?, id: MessageId(uint(row, 1)?), born: None })
        })
    }

    fn tell_cancelled(&mut self, id: SessionId, call: &CallId, tell: bool) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = if tell {
            "INSERT OR IGNORE INTO told VALUES (?1, ?2, ?3, ?4)"
        } else {
            "DELETE FROM told WHERE fleet = ?1 AND session = ?2 AND queue = ?3 AND id = ?4"
        };
        self.run(sql, params![fleet, id.to_bytes(), call.queue.as_str(), int(call.id.0)]).map(drop)
    }

    fn told_cancelled(&mut self, id: SessionId, limit: usize) -> Moved<Vec<CallId>> {
        let Some(fleet) = self.fleet()? else { return Ok(Vec::new()) };
        let sql = "SELECT queue, id FROM told WHERE fleet = ?1 AND session = ?2 ORDER BY queue, id LIMIT ?3";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.all(sql, params![fleet, id.to_bytes(), limit], |row| {
            Ok(CallId { queue: name(row, 0)?, id: MessageId(uint(row, 1)?), born: None })
        })
    }
}

/// A record as `numbers|holders|followers`, without its outcome.
fn write(it: &CallRecord) -> String {
    let end = match it.end {
        Some(CallState::Done) => 1,
        Some(CallState::Failed) => 2,
        Some(CallState::Cancelled) => 3,
        _ => 0,
    };
    let linger = it.linger_ms.map_or(0, |ms| ms + 1);
    let numbers = [
        it.open,
        it.running,
        it.delayed,
        it.cancelled,
        u64::from(it.is_marked),
        end,
        it.next,
        it.first,
        it.bytes,
        it.key_bytes,
        linger,
        it.followed_ms,
        it.born,
    ];
    let numbers = numbers.map(|number| number.to_string()).join(",");
    let holders = it.holders.iter().map(|(session, held)| format!("{session},{held}"));
    let followers = it
        .followers
        .iter()
        .map(|(session, it)| format!("{session},{},{},{}", it.position, it.number, u8::from(it.waits)));
    format!("{numbers}|{}|{}", holders.collect::<Vec<_>>().join(";"), followers.collect::<Vec<_>>().join(";"))
}

/// Reads [`write`].
fn parse(written: &str, outcome: Option<Bytes>) -> Option<CallRecord> {
    let mut parts = written.split('|');
    let (numbers, holders, followers) = (parts.next()?, parts.next()?, parts.next()?);
    let numbers: Option<Vec<u64>> = numbers.split(',').map(|number| number.parse().ok()).collect();
    let numbers: [u64; 13] = numbers?.try_into().ok()?;
    let [open, running, delayed, cancelled, marked, end, next, first, bytes, key_bytes, linger, followed_ms, born] =
        numbers;
    let holder = |word: &str| {
        let (session, held) = word.split_once(',')?;
        Some((session.parse().ok()?, held.parse().ok()?))
    };
    let follower = |word: &str| {
        let mut fields = word.split(',');
        let session = fields.next()?.parse().ok()?;
        let (position, number) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some((session, Follower { position, number, waits: fields.next()? == "1" }))
    };
    let holders: Vec<(SessionId, u64)> = list(holders, holder).ok()?;
    let followers: Vec<(SessionId, Follower)> = list(followers, follower).ok()?;
    Some(CallRecord {
        born,
        open,
        running,
        delayed,
        cancelled,
        is_marked: marked == 1,
        end: match end {
            1 => Some(CallState::Done),
            2 => Some(CallState::Failed),
            3 => Some(CallState::Cancelled),
            _ => None,
        },
        next,
        first,
        bytes,
        key_bytes,
        linger_ms: linger.checked_sub(1),
        followed_ms,
        outcome,
        holders: BTreeMap::from_iter(holders),
        followers: BTreeMap::from_iter(followers),
    })
}

fn damaged(record: &str) -> StoreError {
    StoreError::Damaged(format!(
        "the record of a call is unreadable: {:?}",
        record.chars().take(80).collect::<String>()
    ))
}
