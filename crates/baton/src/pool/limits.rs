//! The number of children, and the limits of each.

use std::{future::pending, time::Duration};

use tokio::time::sleep;

use super::{PoolError, memory};

/// The interval between two looks at the memory of a child.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The bounds of a pool.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Children at once; as many as cores by default.
    pub children: usize,
    /// Callers that may wait for one; 1,000 by default.
    pub waiting: usize,
    /// How long a child may wait for a task before it is ended; without a limit by default. Looked at once a second.
    pub idle_timeout: Option<Duration>,
    /// Children that are started before the first task, by [`Pool::warm_up`](super::Pool::warm_up), and kept despite the idle
    /// timeout; 0 by default. A pool never has more than `children`.
    pub warm: usize,
    /// How long a task may take; without a limit by default.
    pub timeout: Option<Duration>,
    /// How long a child with a task may print nothing; without a limit by default.
    pub output_timeout: Option<Duration>,
    /// Tasks after which a child is replaced; never by default.
    pub max_messages_per_child: Option<u64>,
    /// Resident bytes of a child and all it has started; without a limit by default.
    pub max_memory_per_child: Option<u64>,
    /// Bytes of one line that a child prints; 8 MiB by default.
    pub line: usize,
    /// How long one that is asked to end may take; 2 s by default.
    pub grace: Duration,
    /// How much less of a busy processor its children get than this process: `nice`, from 0 to 19; 5 by default.
    pub nice: i32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            children: std::thread::available_parallelism().map_or(1, usize::from),
            waiting: 1_000,
            idle_timeout: None,
            warm: 0,
            timeout: None,
            output_timeout: None,
            max_messages_per_child: None,
            max_memory_per_child: None,
            line: 8 << 20,
            grace: Duration::from_secs(2),
            nice: 5,
        }
    }
}

impl Limits {
    /// Returns when the child, whose task begins now, exceeds its time or memory.
    pub(crate) async fn exceeded(&self, child: u32) -> PoolError {
        tokio::select! {
            error = over_time(self.timeout) => error,
            error = over_memory(child, self.max_memory_per_child) => error,
        }
    }
}

async fn over_time(timeout: Option<Duration>) -> PoolError {
    let Some(timeout) = timeout else { return pending().await };
    sleep(timeout).await;
    PoolError::Timeout(timeout)
}

async fn over_memory(child: u32, limit: Option<u64>) -> PoolError {
    let Some(limit) = limit else { return pending().await };
    loop {
        sleep(LOOK_EVERY).await;
        let used = memory::resident(child);
        if used > limit {
            return PoolError::Memory { used, limit };
        }
    }
}
