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

use std::{sync::Arc, time::Duration};

use tokio::sync::mpsc;

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
use super::{Admin, patience::Patience};
use crate::{
    Shutdown,
    message::{Key, MAX_BODY_BYTES, Name, Submission},
    store::{StoreError, session::Session},
};

/// How often it is looked whether the store takes anything.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The longest time between two such looks at a full queue.
const FULL_PAUSE: Duration = Duration::from_millis(500);
/// How long calls that were given up may take to say what became of them.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// The same for each step where the store does not answer: what a session is told by then, it knows without the store.
const BRIEFLY: Duration = Duration::from_millis(100);

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
    /// Bodies of up to [`MAX_BODY_BYTES`](crate::store::message::MAX_BODY_BYTES) into this queue, without a key.
    #[must_use]
    pub const fn to(queue: Name) -> Self {
        Self { queue, key: None, max_body: MAX_BODY_BYTES }
    }
}

type Chunks = mpsc::Receiver<Result<Chunk, Stop>>;

/// Names shared by whoever reports a line.
type SharedLabels = Arc<Labels>;

/// An import that is about to begin: how far its key stands is known.
pub struct Importer {
    admin: Admin,
    import: Import,
    bookmark: Option<Bookmark>,
}

impl Admin {
    /// Pushes all of the input: each body is JSON, blank lines are passed over. While the queue is full or the store has
    /// no room it waits, for the admin's time to wait at most. `progress` hears of whatever is stored.
    ///
    /// Under a key the store remembers how far the input was taken, in the same step as it takes the messages: the same
    /// input again, after any interruption, and every line exists exactly once. Without one the order of lines is kept
    /// except around a full queue.
    ///
    /// # Errors
    /// [`ImportError`], with what is stored by then, what is not, and what is not known. `until` ends the import at the
    /// next good moment when it is cancelled, which is an error too.
    ///
    /// # Cancel safety
    /// What is under way when this is dropped may be stored. Under a key the same input goes on from there; without one,
    /// shutdown `until` instead and hear what is stored.
    pub async fn import(
        &self, inputs: Inputs, import: &Import, until: &Shutdown, progress: impl FnMut(Progress),
    ) -> Result<Receipt, ImportError> {
        let importer = tokio::select! {
            biased;
            () = until.any() => return Err(ImportCause::Interrupted { unanswered: false }.into()),
            importer = self.importer(import.clone()) => importer?,
        };
        importer.push(inputs, until, progress).await
    }

    /// The first half of [`Admin::import`]: finds out how far the key stands, and stores nothing.
    ///
    /// # Errors
    /// [`ImportCause::OtherQueue`] if the key belongs to another queue; the store's failure.
    pub async fn importer(&self, import: Import) -> Result<Importer, ImportError> {
        let admin = self.prompt();
        let bookmark = match &import.key {
            Some(key) => Some(Bookmark::read(&admin, key, &import.queue).await?),
            None => None,
        };
        Ok(Importer { admin, import, bookmark })
    }
}

impl Importer {
    /// Lines that were taken under the key before: those the input has to begin with.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.bookmark.as_ref().map_or(0, |bookmark| bookmark.taken.lines)
    }

    /// Pushes all of the input; see [`Admin::import`].
    ///
    /// # Errors
    /// As [`Admin::import`].
    ///
    /// # Cancel safety
    /// As [`Admin::import`].
    pub async fn push(
        self, inputs: Inputs, until: &Shutdown, progress: impl FnMut(Progress),
    ) -> Result<Receipt, ImportError> {
        let Self { admin, import, bookmark } = self;
        let (labels, tally) = (inputs.labels(), Tally::new(import.queue.clone(), progress));
        let mut chunks = reader::start(inputs, import.max_body, bookmark.clone())?;
        let pushed = match &bookmark {
            None => plain::push(&admin, &import, &labels, &mut chunks, tally, until).await,
            Some(bookmark) => keyed::push(&admin, &import, bookmark, &labels, &mut chunks, tally, until).await,
        };
        let is_away = matches!(&pushed, Err(ImportError { cause: ImportCause::Store(StoreError::Unreachable(_)), .. }));
        admin.leave_within(last_words(is_away)).await;
        pushed
    }
}

fn submission(queue: &Name, chunk: &Chunk) -> Submission {
    Submission { queue: queue.clone(), parcel: chunk.parcel.clone(), key: None, call: None }
}

/// How long a step of an import's end may take.
const fn last_words(is_away: bool) -> Duration {
    if is_away { BRIEFLY } else { LAST_WORDS }
}

/// What a session's calls run into, as far as waiting may help.
fn trouble(session: Option<&Session>) -> Option<StoreError> {
    session.and_then(Session::trouble)
}

fn full(admin: &Admin, import: &Import) -> ImportCause {
    ImportCause::Full { queue: import.queue.clone(), bound: admin.fleet.max_queue_bytes() }
}

fn no_verdict() -> ImportCause {
    ImportCause::Store(StoreError::Damaged("it gave no verdict on a parcel".to_owned()))
}
