//! Waiting for messages: blocking reads, each on a connection of its own.
//!
//! A connection goes back to the others only after its read has ended. One whose wait was dropped is closed instead:
//! its read would swallow the token meant for a waiter that still exists.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use redis::{Value, aio::MultiplexedConnection};

use super::{conn::Connector, keys::Root};
use crate::{message::Name, store::MAX_WAIT};

/// How much later than asked the server may end a read before the connection is given up.
const GRACE: Duration = Duration::from_millis(100);
/// The most connections kept for later waits.
const KEPT: usize = 16;

/// Connections that are waiting for a wait.
#[derive(Default)]
pub(super) struct Waiters(Mutex<Vec<MultiplexedConnection>>);

impl Waiters {
    /// Returns when a token for one of the queues was there, and after `limit` in any case.
    pub(super) async fn wait(&self, connector: &Connector, root: &Root, queues: &[Name], limit: Duration) {
        let limit = limit.min(MAX_WAIT);
        let until = tokio::time::Instant::now() + limit;
        if limit < Duration::from_millis(1) {
            return;
        }
        if queues.is_empty() {
            return tokio::time::sleep(limit).await;
        }
        let woken = tokio::time::timeout(limit + GRACE, self.read(connector, root, queues, limit)).await;
        if !woken.unwrap_or(false) {
            // Without a server a wait is just that: callers repeat, and must not spin.
            tokio::time::sleep_until(until).await;
        }
    }

    /// Whether a blocking read came to its end. A connection kept from before may have been lost meanwhile: then
    /// all that were kept are, and a new one is made.
    async fn read(&self, connector: &Connector, root: &Root, queues: &[Name], limit: Duration) -> bool {
        let mut command = redis::cmd("BLPOP");
        for queue in queues {
            command.arg(root.wake(queue));
        }
        command.arg(format!("{:.3}", limit.as_secs_f64()));
        let kept = self.kept().pop();
        if let Some(mut connection) = kept {
            if command.query_async::<Value>(&mut connection).await.is_ok() {
                self.keep(connection);
                return true;
            }
            self.kept().clear();
        }
        let Ok(mut connection) = connector.connect_for_waiting().await else { return false };
        let ended = command.query_async::<Value>(&mut connection).await.is_ok();
        if ended {
            self.keep(connection);
        }
        ended
    }

    fn keep(&self, connection: MultiplexedConnection) {
        let mut kept = self.kept();
        if kept.len() < KEPT {
            kept.push(connection);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Vec<MultiplexedConnection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
