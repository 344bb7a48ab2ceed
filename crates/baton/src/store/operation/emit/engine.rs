//! Events are added behind those of their call, each key once.

use std::collections::BTreeSet;

use super::{AN_EVENT, Emit, Emitted, MAX_EMIT_KEYS};
use crate::{
    message::Key,
    store::{
        Refusal,
        engine::{Effect, Moved, Tables, calls, clock::visit},
    },
};

impl Effect for Emit {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<Emitted> {
        visit(tables, self.session)?;
        let call = calls::call_of_message(tables, &self.queue, self.id)?;
        let mut record = tables.call(&call)?.ok_or(Refusal::NotHeld)?;
        let mut hold = tables.hold(&call, &self.queue, self.id)?;
        if hold.by != Some((self.session, self.claim_no)) || record.end.is_some() {
            return Err(Refusal::NotHeld.into());
        }
        let count = self.events.len() as u64;
        if self.number != hold.emitted + 1 {
            let kept_before = self.number + count <= hold.emitted + 1;
            return if kept_before { Ok(Emitted::Kept) } else { Err(Refusal::OutOfTurn { last: hold.emitted }.into()) };
        }
        let (mut new, mut keys, mut key_bytes) = (Vec::new(), BTreeSet::<&Key>::new(), 0);
        for event in &self.events {
            if let Some(key) = &event.key {
                if keys.contains(key) || tables.has_emit_key(&call, key)? {
                    continue;
                }
                keys.insert(key);
                key_bytes += key.as_str().len() as u64;
            }
            new.push(&event.bytes);
        }
        if record.key_bytes + key_bytes > MAX_EMIT_KEYS {
            return Err(Refusal::EmitKeysFull.into());
        }
        let bytes: u64 = new.iter().map(|event| event.len() as u64 + AN_EVENT).sum();
        let over = (record.bytes + bytes).saturating_sub(self.max_log);
        if over > 0 {
            calls::drop_gone_followers(tables, &mut record)?;
            let read = record.followers.values().map(|follower| follower.position).max();
            let below = read.filter(|_| !self.force).unwrap_or(record.next);
            let (first, freed) = tables.trim_events(&call, below, over)?;
            (record.first, record.bytes) = (record.first.max(first), record.bytes - freed);
            // What is by itself more than the bound is kept alone.
            if freed < over && below < record.next {
                tables.put_call(&call, &record)?;
                return Ok(Emitted::Full);
            }
        }
        for key in keys {
            tables.put_emit_key(&call, key)?;
        }
        record.key_bytes += key_bytes;
        for event in new {
            calls::append(tables, &call, &mut record, event)?;
        }
        hold.emitted += count;
        tables.put_hold(&call, &self.queue, self.id, &hold)?;
        tables.put_call(&call, &record)?;
        Ok(Emitted::Kept)
    }
}
