//! Calls, and what they have told.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::MemoryTables;
use crate::{
    message::{CallId, Key, MessageId, Name, SessionId},
    store::{
        AN_EVENT,
        engine::{CallRecord, Calls, Hold, Moved, calls::weight},
    },
};

impl MemoryTables {
    /// Forgets the oldest that has ended, if this is true of when it expires; what it counted for.
    fn forget_first_call(&mut self, is_over: impl Fn(u64) -> bool) -> Option<u64> {
        let (_, call) = self.call_ends.first().filter(|(end, _)| is_over(*end)).cloned()?;
        self.call_ends.pop_first();
        let weight = self.calls.remove(&call).as_ref().map_or(0, weight);
        self.events.remove(&call);
        self.emit_keys.remove(&call);
        self.holds.remove(&call);
        self.call_bytes -= weight;
        Some(weight)
    }
}

impl Calls for MemoryTables {
    fn call(&mut self, call: &CallId) -> Moved<Option<CallRecord>> {
        Ok(self.calls.get(call).cloned())
    }

    fn put_call(&mut self, call: &CallId, record: &CallRecord) -> Moved<()> {
        self.calls.insert(call.clone(), record.clone());
        Ok(())
    }

    fn call_bytes(&mut self) -> Moved<u64> {
        Ok(self.call_bytes)
    }

    fn expire_calls(&mut self, now: u64, limit: u32) -> Moved<()> {
        (0..limit).map_while(|_| self.forget_first_call(|end| end <= now)).for_each(drop);
        Ok(())
    }

    fn drop_oldest_calls(&mut self, bytes: u64, limit: u32) -> Moved<()> {
        let mut gone = 0;
        for _ in 0..limit {
            if gone >= bytes {
                break;
            }
            gone += self.forget_first_call(|_| true).unwrap_or(bytes);
        }
        Ok(())
    }

    fn put_call_end(&mut self, call: &CallId, expires_ms: u64, weight: u64) -> Moved<()> {
        self.call_ends.insert((expires_ms, call.clone()));
        self.call_bytes += weight;
        Ok(())
    }

    fn joined(&mut self, queue: &Name, id: MessageId) -> Moved<Option<CallId>> {
        Ok(self.joined.get(&(queue.clone(), id)).cloned())
    }

    fn put_joined(&mut self, queue: &Name, id: MessageId, call: &CallId) -> Moved<()> {
        self.joined.insert((queue.clone(), id), call.clone());
        Ok(())
    }

    fn drop_joined(&mut self, queue: &Name, id: MessageId) -> Moved<()> {
        self.joined.remove(&(queue.clone(), id));
        Ok(())
    }

    fn hold(&mut self, call: &CallId, queue: &Name, id: MessageId) -> Moved<Hold> {
        let hold = self.holds.get(call).and_then(|holds| holds.get(&(queue.clone(), id)));
        Ok(hold.copied().unwrap_or_default())
    }

    fn put_hold(&mut self, call: &CallId, queue: &Name, id: MessageId, hold: &Hold) -> Moved<()> {
        let holds = self.holds.entry(call.clone()).or_default();
        if *hold == Hold::default() {
            holds.remove(&(queue.clone(), id));
        } else {
            holds.insert((queue.clone(), id), *hold);
        }
        Ok(())
    }

    fn delayed_of(&mut self, call: &CallId, limit: usize) -> Moved<Vec<(u64, Name, MessageId)>> {
        let holds = self.holds.get(call).into_iter().flatten();
        let delayed = holds.filter_map(|((queue, id), hold)| Some((hold.due_ms?, queue.clone(), *id)));
        let in_order: BTreeSet<_> = delayed.collect();
        Ok(in_order.into_iter().take(limit).collect())
    }

    fn put_event(&mut self, call: &CallId, number: u64, event: &Bytes) -> Moved<()> {
        self.events.entry(call.clone()).or_default().insert(number, event.clone());
        Ok(())
    }

    fn events(&mut self, call: &CallId, from: u64, limit: u32, budget: u64) -> Moved<Vec<Bytes>> {
        let Some(events) = self.events.get(call) else { return Ok(Vec::new()) };
        let mut bytes = 0;
        let fits = |event: &&Bytes| {
            bytes += event.len() as u64;
            bytes == event.len() as u64 || bytes <= budget
        };
        Ok(events.range(from..).map(|(_, event)| event).take(limit as usize).take_while(fits).cloned().collect())
    }

    fn trim_events(&mut self, call: &CallId, below: u64, bytes: u64) -> Moved<(u64, u64)> {
        let events = self.events.entry(call.clone()).or_default();
        let mut freed = 0;
        while freed < bytes
            && let Some((number, event)) = events.first_key_value().filter(|(number, _)| **number < below)
        {
            let number = *number;
            freed += event.len() as u64 + AN_EVENT;
            events.remove(&number);
        }
        Ok((events.first_key_value().map_or(below, |(number, _)| (*number).min(below)), freed))
    }

    fn has_emit_key(&mut self, call: &CallId, key: &Key) -> Moved<bool> {
        Ok(self.emit_keys.get(call).is_some_and(|keys| keys.contains(key)))
    }

    fn put_emit_key(&mut self, call: &CallId, key: &Key) -> Moved<()> {
        self.emit_keys.entry(call.clone()).or_default().insert(key.clone());
        Ok(())
    }

    fn put_look(&mut self, call: &CallId, at_ms: Option<u64>) -> Moved<()> {
        if let Some(before) = self.looks.remove(call) {
            self.look_order.remove(&(before, call.clone()));
        }
        if let Some(at_ms) = at_ms {
            self.looks.insert(call.clone(), at_ms);
            self.look_order.insert((at_ms, call.clone()));
        }
        Ok(())
    }

    fn looks(&mut self, now: u64, limit: usize) -> Moved<Vec<CallId>> {
        let due = self.look_order.iter().take_while(|(at, _)| *at <= now).take(limit);
        Ok(due.map(|(_, call)| call.clone()).collect())
    }

    fn tell_cancelled(&mut self, id: SessionId, call: &CallId, tell: bool) -> Moved<()> {
        let told = self.told.entry(id).or_default();
        if tell {
            told.insert(call.clone());
        } else {
            told.remove(call);
        }
        Ok(())
    }

    fn told_cancelled(&mut self, id: SessionId, limit: usize) -> Moved<Vec<CallId>> {
        Ok(self.told.get(&id).into_iter().flatten().take(limit).cloned().collect())
    }
}
