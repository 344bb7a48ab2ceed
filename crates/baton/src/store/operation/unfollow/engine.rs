//! One follower fewer: the time without any begins with the last.

use super::UnfollowCall;
use crate::store::engine::{Effect, Moved, Tables, calls, clock::visit};

impl Effect for UnfollowCall {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<()> {
        visit(tables, self.session)?;
        let Some((call, mut record)) = calls::named(tables, &self.call)? else { return Ok(()) };
        if record.followers.get(&self.session).is_none_or(|follower| follower.number != self.number) {
            return Ok(());
        }
        record.followers.remove(&self.session);
        record.followed_ms = now;
        if let Some(linger_ms) = record.linger_ms.filter(|_| record.open > 0 && !record.is_marked) {
            tables.put_look(&call, Some(now + linger_ms))?;
        }
        tables.put_call(&call, &record)
    }
}
