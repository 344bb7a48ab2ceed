//! Which queues sessions wait for and work for.

use rusqlite::params;

use super::{SqliteTables, int, name, ordered, session_id, uint};
use crate::{
    message::{Name, SessionId},
    store::{
        engine::{Moved, Waiters},
        wake_up::WakeUp,
    },
};

impl Waiters for SqliteTables<'_> {
    fn add_waiter(&mut self, queue: &Name, id: SessionId, now: u64) -> Moved<()> {
        let fleet = self.own_fleet()?;
        self.unwaited.remove(queue);
        self.only_waiter = None;
        let sql = "INSERT OR IGNORE INTO waiters VALUES (?1, ?2, ?3, ?4)";
        self.run(sql, params![fleet, queue.as_str(), id.to_bytes(), ordered(now)]).map(drop)
    }

    fn is_waiter(&mut self, queue: &Name, id: SessionId) -> Moved<bool> {
        let Some(fleet) = self.fleet()? else { return Ok(false) };
        let sql = "SELECT 1 FROM waiters WHERE fleet = ?1 AND queue = ?2 AND session = ?3";
        Ok(self.one(sql, params![fleet, queue.as_str(), id.to_bytes()], |_| Ok(()))?.is_some())
    }

    fn drop_waiter(&mut self, queue: &Name, id: SessionId) -> Moved<()> {
        if self.unwaited.contains(queue) {
            return Ok(());
        }
        let fleet = self.own_fleet()?;
        let sql = "DELETE FROM waiters WHERE fleet = ?1 AND queue = ?2 AND session = ?3";
        self.run(sql, params![fleet, queue.as_str(), id.to_bytes()])?;
        if let Some((queue, _)) = self.only_waiter.take_if(|(of, waiter)| of == queue && *waiter == id) {
            self.unwaited.insert(queue);
        }
        Ok(())
    }

    fn is_waited_for(&mut self, queue: &Name) -> Moved<bool> {
        if self.unwaited.contains(queue) {
            return Ok(false);
        }
        let Some(fleet) = self.fleet()? else { return Ok(false) };
        let sql = "SELECT 1 FROM waiters WHERE fleet = ?1 AND queue = ?2 LIMIT 1";
        let found = self.one(sql, params![fleet, queue.as_str()], |_| Ok(()))?.is_some();
        if !found {
            self.unwaited.insert(queue.clone());
        }
        Ok(found)
    }

    fn waits_of(&mut self, id: SessionId) -> Moved<Vec<Name>> {
        let Some(fleet) = self.fleet()? else { return Ok(Vec::new()) };
        let sql = "SELECT queue FROM waiters WHERE fleet = ?1 AND session = ?2 ORDER BY queue";
        self.all(sql, params![fleet, id.to_bytes()], |row| name(row, 0))
    }

    /// All of them, in no order: an index or a sorter would cost more than the few there are.
    fn each_waiter(&mut self, queue: &Name, show: &mut dyn FnMut(u64, SessionId)) -> Moved<()> {
        if self.unwaited.contains(queue) {
            return Ok(());
        }
        let Some(fleet) = self.fleet()? else { return Ok(()) };
        let sql = "SELECT since, session FROM waiters WHERE fleet = ?1 AND queue = ?2";
        let (mut count, mut last) = (0, None);
        self.each(sql, params![fleet, queue.as_str()], |row| {
            let id = session_id(row, 1)?;
            (count, last) = (count + 1, Some(id));
            show(uint(row, 0)?, id);
            Ok(())
        })?;
        match last {
            None => {
                self.unwaited.insert(queue.clone());
            }
            Some(id) => self.only_waiter = (count == 1).then(|| (queue.clone(), id)),
        }
        Ok(())
    }

    fn wake(&mut self, id: SessionId, wake_up: &WakeUp) -> Moved<()> {
        self.woken.insert((id, wake_up.clone()));
        Ok(())
    }

    fn batons(&mut self, id: SessionId) -> Moved<u64> {
        let Some(fleet) = self.fleet()? else { return Ok(0) };
        let sql = "SELECT held FROM batons WHERE fleet = ?1 AND session = ?2";
        Ok(self.one(sql, params![fleet, id.to_bytes()], |row| uint(row, 0))?.unwrap_or(0))
    }

    fn put_batons(&mut self, id: SessionId, held: u64) -> Moved<()> {
        let fleet = self.own_fleet()?;
        if held == 0 {
            return self
                .run("DELETE FROM batons WHERE fleet = ?1 AND session = ?2", params![fleet, id.to_bytes()])
                .map(drop);
        }
        let sql = "INSERT OR REPLACE INTO batons VALUES (?1, ?2, ?3)";
        self.run(sql, params![fleet, id.to_bytes(), int(held)]).map(drop)
    }

    fn workers(&mut self, queue: &Name) -> Moved<u64> {
        let Some(fleet) = self.fleet()? else { return Ok(0) };
        let sql = "SELECT nodes FROM workers WHERE fleet = ?1 AND queue = ?2";
        Ok(self.one(sql, params![fleet, queue.as_str()], |row| uint(row, 0))?.unwrap_or(0))
    }

    fn put_workers(&mut self, queue: &Name, nodes: u64) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "INSERT OR REPLACE INTO workers VALUES (?1, ?2, ?3)";
        self.run(sql, params![fleet, queue.as_str(), int(nodes)]).map(drop)
    }
}
