//! Waiting for messages: blocking reads, each on a connection of its own.
//!
//! A connection goes back to the others only after its read has ended. One whose wait was dropped is closed instead:
//! its read would swallow the token meant for a waiter that still exists.

use std::{
    sync::{Mutex, PoisonError},
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

    /// Whether a blocking read came to its end.
    async fn read(&self, connector: &Connector, root: &Root, queues: &[Name], limit: Duration) -> bool {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match kept {
            Some(connection) => connection,
            None => match connector.connect_for_waiting().await {
                Ok(connection) => connection,
                Err(_) => return false,
            },
        };
        let mut command = redis::cmd("BLPOP");
        for queue in queues {
            command.arg(root.wake(queue));
        }
        command.arg(format!("{:.3}", limit.as_secs_f64()));
        let read: Result<Value, _> = command.query_async(&mut connection).await;
        if read.is_ok() {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() < KEPT {
                kept.push(connection);
            }
        }
        read.is_ok()
    }
}
