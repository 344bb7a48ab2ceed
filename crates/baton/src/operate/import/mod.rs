//! Long input pushed: one thread reads and checks, the session's task sends, and the tally knows what is stored.

mod account;
mod body;
mod bookmark;
mod input;
mod keyed;
mod plain;
mod reader;
mod refused;
mod tally;

use std::{fmt, sync::Arc, time::Duration};

use tokio::{sync::mpsc, time::Instant};

pub use self::{
    account::Account,
    body::BadBody,
    input::Inputs,
    refused::{ImportCause, ImportError},
    tally::{Progress, Receipt},
};
use self::{
    bookmark::Bookmark,
    input::Labels,
    reader::{Chunk, Stop},
    tally::Tally,
};
use super::Operator;
use crate::{
    Cancel,
    message::{Key, Lot, Name},
    store::{StoreError, session::Session},
};

/// How often it is looked whether the store takes anything.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long calls that were given up may take to say what became of them.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Where input goes, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The queue it goes to.
    pub queue: Name,
    /// With a key each line is stored exactly once, however often the same input is imported under it.
    pub key: Option<Key>,
    /// The largest body that is taken, in bytes.
    pub max_body: usize,
}

impl Import {
    /// Bodies of up to 1 MiB into this queue, without a key.
    #[must_use]
    pub const fn into(queue: Name) -> Self {
        Self { queue, key: None, max_body: 1 << 20 }
    }
}

type Chunks = mpsc::Receiver<Result<Chunk, Stop>>;

/// Names shared by whoever reports a line.
type SharedLabels = Arc<Labels>;

impl Operator {
    /// Pushes all of the input: each body is JSON, blank lines are passed over. While the queue is full or the store has
    /// no room it waits, for the operator's time to wait at most. `progress` hears of whatever is stored.
    ///
    /// Under a key the store remembers how far the input was taken, in the same step as it takes the messages: the same
    /// input again, after any interruption, and every line exists exactly once. Without one the order of lines is kept
    /// except around a full queue.
    ///
    /// # Errors
    /// [`ImportError`], with what is stored by then, what is not, and what is not known. `until` ends the import at the
    /// next good moment when it is cancelled, which is an error too.
    pub async fn import(
        &self, inputs: Inputs, import: &Import, until: &Cancel, progress: impl FnMut(Progress),
    ) -> Result<Receipt, ImportError> {
        let labels = inputs.labels();
        let tally = Tally::new(import.queue.clone(), progress);
        let pushed = match &import.key {
            None => {
                let mut chunks = reader::start(inputs, import.max_body, None)?;
                plain::push(self, import, &labels, &mut chunks, tally, until).await
            }
            Some(key) => {
                let bookmark = Bookmark::read(self, key, &import.queue).await?;
                let mut chunks = reader::start(inputs, import.max_body, Some(bookmark.clone()))?;
                keyed::push(self, import, &bookmark, &labels, &mut chunks, tally, until).await
            }
        };
        self.leave().await;
        pushed
    }
}

fn lot(queue: &Name, chunk: &Chunk) -> Lot {
    Lot { queue: queue.clone(), parcel: chunk.parcel.clone(), key: None }
}

/// Measures how long nothing could be stored.
struct Patience {
    wait: Duration,
    stuck: Option<Instant>,
}

impl Patience {
    const fn new(wait: Duration) -> Self {
        Self { wait, stuck: None }
    }

    /// Something was stored, or nothing stands in the way.
    const fn calm(&mut self) {
        self.stuck = None;
    }

    /// Something stands in the way; says so once, and whether it has been there for too long.
    fn worn_out(&mut self, operator: &Operator, cause: &dyn fmt::Display) -> bool {
        operator.say_waiting(cause);
        self.stuck.get_or_insert_with(Instant::now).elapsed() >= self.wait
    }
}

/// What a session's calls run into, as far as waiting may help.
fn trouble(session: Option<&Session>) -> Option<StoreError> {
    session.and_then(Session::trouble)
}

fn full(import: &Import) -> ImportCause {
    ImportCause::Full { queue: import.queue.clone() }
}

fn no_verdict() -> ImportCause {
    ImportCause::Store(StoreError::Damaged("it gave no verdict on a parcel".to_owned()))
}
