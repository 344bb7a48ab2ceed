//! Waiting for messages without polling.
//!
//! Waits for the same queues stand in one line, and one task reads tokens for all of them, on a connection of its
//! own, where no other call waits behind the read. A token goes to the wait at the front; whoever it wakes leaves
//! another behind if messages are left. A wait that was dropped or whose time is up just loses its place; a token
//! that comes when nobody stands in the line any more is put back for the waiters of other processes. So a dropped
//! wait costs no connection and swallows no token, and a wait ends on time though the server looks at the time only
//! now and then. An empty line keeps its reader and connection for a while: a worker comes back as soon as it has
//! looked.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use redis::{RedisError, aio::MultiplexedConnection};
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};

use super::{conn::Connector, keys::Root};
use crate::{message::Name, store::MAX_WAIT};

/// How long a token that was put back lasts; as in the scripts.
const TOKEN_MS: u64 = 10_000;

/// How long a line without waits keeps its reader.
const KEEP: Duration = Duration::from_secs(10);

/// Waits by the keys they wait for. Where there is a line there is a task that reads for it.
type Lines = HashMap<Vec<String>, Line>;

/// Waits for the same keys.
#[derive(Default)]
struct Line {
    places: VecDeque<oneshot::Sender<()>>,
    /// Tells a reader at rest that somebody came.
    arrived: Arc<Notify>,
}

/// All waits of a store.
pub(super) struct Waiters {
    connector: Arc<Connector>,
    lines: Mutex<Lines>,
}

impl Waiters {
    pub(super) fn new(connector: Arc<Connector>) -> Arc<Self> {
        Arc::new(Self { connector, lines: Mutex::default() })
    }

    /// Returns when a token for one of the queues was there, and after `limit` in any case.
    pub(super) async fn wait(self: &Arc<Self>, root: &Root, queues: &[Name], limit: Duration) {
        let until = Instant::now() + limit.min(MAX_WAIT);
        if queues.is_empty() {
            return tokio::time::sleep_until(until).await;
        }
        let (place, woken) = oneshot::channel();
        self.stand_in_line(queues.iter().map(|queue| root.wake(queue)).collect(), place);
        if let Ok(Err(_)) = tokio::time::timeout_at(until, woken).await {
            // Without a server a wait is just that: callers repeat, and must not spin.
            tokio::time::sleep_until(until).await;
        }
    }

    fn stand_in_line(self: &Arc<Self>, keys: Vec<String>, place: oneshot::Sender<()>) {
        let mut lines = self.lines();
        if let Some(line) = lines.get_mut(&keys) {
            line.places.push_back(place);
            line.arrived.notify_one();
            return;
        }
        let line = Line { places: VecDeque::from([place]), ..Line::default() };
        let arrived = line.arrived.clone();
        lines.insert(keys.clone(), line);
        tokio::spawn(Reader { waiters: Arc::clone(self), keys, arrived, closed: false }.read());
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// Whether nobody waits; those who gave up lose their places.
    fn is_empty(&mut self) -> bool {
        self.places.retain(|place| !place.is_closed());
        self.places.is_empty()
    }
}

/// Reads tokens for one line until nobody has stood in it for a while.
struct Reader {
    waiters: Arc<Waiters>,
    keys: Vec<String>,
    arrived: Arc<Notify>,
    /// Whether the line has been closed: another reader may have opened one for the same keys since.
    closed: bool,
}

impl Reader {
    async fn read(mut self) {
        let Ok(mut connection) = self.waiters.connector.connect_for_waiting().await else { return };
        let mut read = redis::cmd("BLPOP");
        read.arg(&self.keys).arg(MAX_WAIT.as_secs_f64());
        let mut rested = false;
        loop {
            while self.is_empty() {
                rested = true;
                let came = tokio::time::timeout(KEEP, self.arrived.notified()).await.is_ok();
                if !came && self.close_if_empty() {
                    return;
                }
            }
            match read.query_async::<Option<(String, String)>>(&mut connection).await {
                Ok(None) => rested = false,
                Ok(Some((key, _))) => {
                    rested = false;
                    if !self.wake_first() && put_back(&mut connection, &key).await.is_err() {
                        return;
                    }
                }
                // A connection may be lost while nobody reads from it: that is no reason to send the waits away.
                Err(_) if rested => match self.waiters.connector.connect_for_waiting().await {
                    Ok(anew) => (connection, rested) = (anew, false),
                    Err(_) => return,
                },
                Err(_) => return,
            }
        }
    }

    /// Wakes the first who still waits; false if nobody does.
    fn wake_first(&self) -> bool {
        let mut lines = self.waiters.lines();
        let Some(line) = lines.get_mut(&self.keys) else { return false };
        while let Some(place) = line.places.pop_front() {
            if place.send(()).is_ok() {
                return true;
            }
        }
        false
    }

    /// Whether nobody waits.
    fn is_empty(&self) -> bool {
        let mut lines = self.waiters.lines();
        lines.get_mut(&self.keys).is_none_or(Line::is_empty)
    }

    fn close_if_empty(&mut self) -> bool {
        let mut lines = self.waiters.lines();
        if lines.get_mut(&self.keys).is_some_and(|line| !line.is_empty()) {
            return false;
        }
        lines.remove(&self.keys);
        drop(lines);
        self.closed = true;
        true
    }
}

impl Drop for Reader {
    /// A reader that fails, or goes down with its runtime, lets those in its line know.
    fn drop(&mut self) {
        if !self.closed {
            self.waiters.lines().remove(&self.keys);
        }
    }
}

async fn put_back(connection: &mut MultiplexedConnection, key: &str) -> Result<(), RedisError> {
    let mut back = redis::pipe();
    back.cmd("RPUSH").arg(key).arg("1").ignore().cmd("PEXPIRE").arg(key).arg(TOKEN_MS).ignore();
    back.query_async(connection).await
}
