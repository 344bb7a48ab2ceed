//! Which queues sessions wait for and work for.

use super::MemoryTables;
use crate::{
    message::{Name, SessionId},
    store::{
        engine::{Moved, Waiters},
        wake_up::WakeUp,
    },
};

impl Waiters for MemoryTables {
    fn add_waiter(&mut self, queue: &Name, id: SessionId, now: u64) -> Moved<()> {
        self.waiters.entry(queue.clone()).or_default().entry(id).or_insert(now);
        Ok(())
    }

    fn is_waiter(&mut self, queue: &Name, id: SessionId) -> Moved<bool> {
        Ok(self.waiters.get(queue).is_some_and(|waiters| waiters.contains_key(&id)))
    }

    fn drop_waiter(&mut self, queue: &Name, id: SessionId) -> Moved<()> {
        if let Some(waiters) = self.waiters.get_mut(queue) {
            waiters.remove(&id);
        }
        Ok(())
    }

    fn is_waited_for(&mut self, queue: &Name) -> Moved<bool> {
        Ok(self.waiters.get(queue).is_some_and(|waiters| !waiters.is_empty()))
    }

    fn waits_of(&mut self, id: SessionId) -> Moved<Vec<Name>> {
        let waits = self.waiters.iter().filter(|(_, waiters)| waiters.contains_key(&id));
        Ok(waits.map(|(queue, _)| queue.clone()).collect())
    }

    fn each_waiter(&mut self, queue: &Name, show: &mut dyn FnMut(u64, SessionId)) -> Moved<()> {
        self.waiters.get(queue).into_iter().flatten().for_each(|(id, since)| show(*since, *id));
        Ok(())
    }

    fn wake(&mut self, id: SessionId, wake_up: &WakeUp) -> Moved<()> {
        self.wakes.entry(id).or_default().insert(wake_up.clone());
        self.woken.push(id);
        Ok(())
    }

    fn batons(&mut self, id: SessionId) -> Moved<u64> {
        Ok(self.batons.get(&id).copied().unwrap_or(0))
    }

    fn put_batons(&mut self, id: SessionId, count: u64) -> Moved<()> {
        self.batons.insert(id, count);
        Ok(())
    }

    fn workers(&mut self, queue: &Name) -> Moved<u64> {
        Ok(self.workers.get(queue).copied().unwrap_or(0))
    }

    fn put_workers(&mut self, queue: &Name, count: u64) -> Moved<()> {
        self.workers.insert(queue.clone(), count);
        Ok(())
    }
}
