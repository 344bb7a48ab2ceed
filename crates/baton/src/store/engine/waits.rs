//! Those who wait for a queue, and waking them.
//!
//! Whatever makes a message ready or delayed takes the one that has waited longest out of those who wait and wake_ups for
//! it, once a queue and call. A session that is woken for claims, or passes the wake-up on. One that goes takes its places
//! with it and wakes several others in its stead: a wake-up may have been on its way to it, and others may have died with it.

use std::collections::BTreeSet;

use super::{Line, Moved, QueueRecord, SessionRecord, Tables, queues::OpenQueues};
use crate::{
    message::{Name, SessionId},
    store::{
        Kind,
        agreed::{IN_ITS_STEAD, SOON_MS},
        wake_up::WakeUp,
    },
};

/// Enters a session among those who wait for a queue; one that is there keeps its place.
pub(in crate::store) fn enter<T: Tables>(tables: &mut T, now: u64, session: SessionId, queue: &Name) -> Moved<()> {
    tables.add_waiter(queue, session, now)
}

/// Wakes some of those who wait for a queue, if it has something: those that have waited longest, and of several that
/// with the smallest id first.
pub(in crate::store) fn wake<T: Tables>(tables: &mut T, queue: &QueueRecord, count: usize) -> Moved<()> {
    let name = &queue.books.queue;
    if queue.books.paused || queue.books.ready + queue.books.delayed == 0 {
        return Ok(());
    }
    let mut longest: BTreeSet<(u64, SessionId)> = BTreeSet::new();
    tables.each_waiter(name, &mut |since, id| {
        longest.insert((since, id));
        if longest.len() > count {
            longest.pop_last();
        }
    })?;
    for (_, id) in longest {
        tables.drop_waiter(name, id)?;
        tables.wake(id, &WakeUp::Queue(name.clone()))?;
    }
    Ok(())
}

/// Wakes another one if a claim has left messages behind, or one that will be due before anybody looks again and that
/// the claimer, who may be busy then, was not told of.
pub(in crate::store) fn left_behind<T: Tables>(tables: &mut T, now: u64, queue: &QueueRecord, more: bool) -> Moved<()> {
    let name = &queue.books.queue;
    if !tables.is_waited_for(name)? {
        return Ok(());
    }
    let soon = if more { now + SOON_MS } else { now };
    let left = (queue.books.ready > 0
        && (tables.front(name, Line::Ready)?.is_some() || tables.front(name, Line::Suspects)?.is_some()))
        || (queue.books.delayed > 0 && tables.next_delayed(name)?.is_some_and(|(due, _)| due <= soon));
    if left { wake(tables, queue, 1) } else { Ok(()) }
}

/// A session is over: it works for no queue and waits for none, and others are woken in its stead.
pub(in crate::store) fn gone<T: Tables>(
    tables: &mut T, queues: &mut OpenQueues, id: SessionId, session: &SessionRecord,
) -> Moved<()> {
    if tables.batons(id)? == 0 {
        count_worker(tables, session, false)?;
    }
    tables.put_batons(id, 0)?;
    let waits = tables.waits_of(id)?;
    for name in &waits {
        tables.drop_waiter(name, id)?;
    }
    for name in waits.iter().chain(&session.queues) {
        if let Some(queue) = queues.known(tables, name)? {
            queue.wakes = IN_ITS_STEAD;
        }
    }
    Ok(())
}

/// Counts a node among those without a baton that work for its queues, or no longer.
pub(in crate::store) fn count_worker<T: Tables>(tables: &mut T, session: &SessionRecord, comes: bool) -> Moved<()> {
    if session.kind == Kind::Node {
        for name in &session.queues {
            let workers = tables.workers(name)?;
            tables.put_workers(name, if comes { workers + 1 } else { workers.saturating_sub(1) })?;
        }
    }
    Ok(())
}

/// Wakes one of those who wait for the queue of this name.
pub(in crate::store) fn wake_known<T: Tables>(tables: &mut T, name: &Name) -> Moved<()> {
    match tables.queue(name)? {
        Some(queue) => wake(tables, &queue, 1),
        None => Ok(()),
    }
}
