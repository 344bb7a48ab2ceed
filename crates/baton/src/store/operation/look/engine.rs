//! The queues of a session are looked at, and nothing is moved.

use crate::store::{
    Look, Looked, Refusal,
    engine::{Effect, Line, Moved, Tables},
};

impl Effect for Look {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<Looked> {
        let Some(session) = tables.session(self.session)? else { return Err(Refusal::Stale.into()) };
        let mut queues = Vec::new();
        for name in &session.queues {
            let Some(queue) = tables.queue(name)?.filter(|queue| !queue.books.paused) else { continue };
            let ready = queue.books.ready > 0
                && (tables.front(name, Line::Ready)?.is_some()
                    || (session.suspects == 0 && tables.front(name, Line::Suspects)?.is_some()));
            if ready || !tables.is_waiter(name, self.session)? {
                queues.push((name.clone(), 0));
            } else if let Some((due, _)) = tables.next_delayed(name)? {
                queues.push((name.clone(), due.saturating_sub(now)));
            }
        }
        queues.sort_unstable();
        Ok(Looked { queues })
    }
}
