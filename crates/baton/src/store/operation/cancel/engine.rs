//! A call is marked, and those who hold its messages are told.

use super::{CancelCall, Cancelling};
use crate::{
    message::CallId,
    store::engine::{Effect, Moved, Tables, calls},
};

impl Effect for CancelCall {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<Cancelling> {
        let Some((call, mut record)) = calls::named(tables, &self.call)? else { return Ok(Cancelling::Unknown) };
        if record.is_marked {
            let before = if record.end.is_some() { Cancelling::Ended } else { Cancelling::Marked };
            return Ok(if record.delayed > 0 { end_delayed(tables, now, &call)? } else { before });
        }
        if record.end.is_some() {
            return Ok(Cancelling::Ended);
        }
        if self.if_forsaken {
            let Some(linger_ms) = record.linger_ms else { return Ok(Cancelling::Followed) };
            calls::drop_gone_followers(tables, &mut record)?;
            if !record.followers.is_empty() {
                record.followed_ms = now;
            }
            let until = record.followed_ms + linger_ms;
            if until > now {
                tables.put_look(&call, Some(until))?;
                tables.put_call(&call, &record)?;
                return Ok(Cancelling::Followed);
            }
        }
        calls::mark(tables, now, &call, &mut record)?;
        tables.put_call(&call, &record)?;
        if record.delayed > 0 { end_delayed(tables, now, &call) } else { Ok(Cancelling::Marked) }
    }
}

fn end_delayed<T: Tables>(tables: &mut T, now: u64, call: &CallId) -> Moved<Cancelling> {
    Ok(if calls::end_delayed(tables, now, call)? { Cancelling::More } else { Cancelling::Marked })
}
