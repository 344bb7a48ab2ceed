//! Pushing long input: one thread reads and checks, the session's task sends, and the tally knows what is stored.

mod bookmark;
mod input;
mod keyed;
mod plain;
mod progress;
mod reader;
mod tally;

use std::{sync::Arc, time::Duration};

use baton::{
    message::{Key, Lot, Name},
    store::{StoreError, StoreUrl, session::Session},
};
use tokio::{sync::mpsc, time::Instant};

use self::{
    bookmark::Bookmark,
    input::Labels,
    progress::Progress,
    reader::{Chunk, Stop},
    tally::Tally,
};
pub(crate) use self::{input::Inputs, tally::Receipt};
use crate::{
    connection::{Connection, Missing},
    exit::Failure,
    interrupt::Interrupt,
    output::remark,
    settings::Settings,
};

/// How often it is looked whether the store takes anything.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long calls that were given up may take to say what became of them.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What is to be pushed where.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) queue: Name,
    pub(crate) key: Option<Key>,
    pub(crate) max_body: usize,
    pub(crate) max_backlog: Option<u64>,
}

type Chunks = mpsc::Receiver<Result<Chunk, Stop>>;

/// Pushes all of the input.
pub(crate) async fn push(settings: &Settings, inputs: Inputs, job: Job) -> Result<Receipt, Failure> {
    let connection = Connection::open(settings, Missing::Create, job.max_backlog)?;
    if settings.store.value == StoreUrl::Memory {
        remark("a store in memory ends with this command; name another with --store to keep the messages");
    }
    let labels = inputs.labels();
    let progress = Progress::new(inputs.total_bytes());
    let tally = Tally::new(job.queue.clone(), progress);
    let pushed = match &job.key {
        None => {
            let interrupt = Interrupt::listen()?;
            let mut chunks = reader::start(inputs, job.max_body, None)?;
            plain::push(&connection, &job, &labels, &mut chunks, tally, &interrupt).await
        }
        Some(key) => {
            let bookmark = Bookmark::read(&connection, key, &job.queue).await?;
            let interrupt = Interrupt::listen()?;
            let mut chunks = reader::start(inputs, job.max_body, Some(bookmark.clone()))?;
            keyed::push(&connection, &job, &bookmark, &labels, &mut chunks, tally, &interrupt).await
        }
    };
    connection.leave().await;
    if let Some(novelty) = connection.novelty().filter(|_| pushed.as_ref().is_ok_and(|receipt| receipt.pushed > 0)) {
        remark(&novelty);
    }
    pushed
}

fn lot(queue: &Name, chunk: &Chunk) -> Lot {
    Lot { queue: queue.clone(), parcel: chunk.parcel.clone(), key: None }
}

/// Measures how long nothing could be stored.
struct Patience {
    wait: Duration,
    stuck: Option<(Instant, String)>,
}

impl Patience {
    const fn new(wait: Duration) -> Self {
        Self { wait, stuck: None }
    }

    /// Something was stored, or nothing stands in the way.
    fn calm(&mut self) {
        self.stuck = None;
    }

    /// Something stands in the way; says so once, and whether it has been there for too long.
    fn worn_out(&mut self, connection: &Connection, cause: &dyn std::fmt::Display) -> bool {
        connection.say_waiting(cause);
        let (since, said) = self.stuck.get_or_insert_with(|| (Instant::now(), String::new()));
        *said = cause.to_string();
        since.elapsed() >= self.wait
    }
}

/// What a session's calls run into, as far as waiting may help.
fn trouble(session: Option<&Session>) -> Option<StoreError> {
    session.and_then(Session::trouble)
}

/// What is told when a person ends the push.
fn interrupted(next: &str) -> Failure {
    Failure::new("interrupted", next)
}

fn full(queue: &Name) -> String {
    format!("queue {queue} is full")
}

/// Names shared by whoever reports a line.
type SharedLabels = Arc<Labels>;
