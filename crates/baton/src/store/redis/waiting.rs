//! Waiting for messages without polling.
//!
//! A claim that waits is sent together with the blocking read of a wake-up token, on a connection of its own: the
//! server carries it out as soon as it has the token, so that a message is on its way to the worker one round trip
//! after its push. The read ends by itself within [`MAX_WAIT`](crate::store::MAX_WAIT), or is ended from another
//! connection when its time is up: the server looks at the time only now and then.

use std::sync::{Mutex, PoisonError};

use redis::Cmd;

use super::conn::{Connector, Link};
use crate::store::StoreError;

/// How long a blocking read lasts: the server may end it a tenth of a second late.
const READ_SECONDS: f64 = 0.9;

/// A connection for blocking reads.
pub(super) struct Waiter {
    pub(super) link: Link,
    /// What the server calls this connection. Unknown to a user without the right to ask, whose waits end late.
    pub(super) client_id: Option<u64>,
}

/// The connections for blocking reads that nobody uses at the moment. There are never more than waited at once.
#[derive(Default)]
pub(super) struct Waiters(Mutex<Vec<Waiter>>);

impl Waiters {
    /// One of them, or a new one.
    pub(super) async fn take(&self, connector: &Connector) -> Result<Waiter, StoreError> {
        let rested = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match rested {
            Some(waiter) => Ok(waiter),
            None => {
                let (link, client_id) = connector.connect_for_waiting().await?;
                Ok(Waiter { link, client_id })
            }
        }
    }

    pub(super) fn give_back(&self, waiter: Waiter) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(waiter);
    }
}

/// The blocking read of a token at one of the keys.
pub(super) fn read(keys: &[String]) -> Cmd {
    let mut read = redis::cmd("BLPOP");
    read.arg(keys).arg(READ_SECONDS);
    read
}

/// Ends the blocking read of another connection.
pub(super) fn end(client_id: u64) -> Cmd {
    let mut end = redis::cmd("CLIENT");
    end.arg("UNBLOCK").arg(client_id);
    end
}
