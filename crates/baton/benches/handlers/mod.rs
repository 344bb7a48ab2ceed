//! Handlers tried over eight parcels, in time that stands still: a worker that looked at the clock would work in another
//! mode where instructions are counted, which takes long.

use std::future::ready;

use baton::{
    Context, Done, Failure, Handler, Message, Name, QueuePolicy,
    store::message::{Parcel, Run},
    testing::trial,
};
use futures_util::future::Either;
use serde::Deserialize;
use tokio::runtime::Runtime;

use crate::bodies::{bodies, parcel};

/// Parcels in one trial.
pub(crate) const PARCELS: u32 = 8;

/// What the function takes.
#[derive(Deserialize)]
struct Job {
    number: u32,
    text: String,
}

async fn function(job: Job, _: Context) -> Result<Done, Failure> {
    if job.text.is_empty() { Err(Failure::new(job.number)) } else { Ok(Done::default()) }
}

/// An async function over parsed bodies that never waits: what `Node::handler` makes of one, which only a node can ask
/// for.
#[derive(Clone, Copy)]
pub(crate) struct Function;

impl Handler for Function {
    fn handle(
        &self, message: Message, context: Context,
    ) -> impl Future<Output = Result<Done, Failure>> + Send + 'static {
        match serde_json::from_slice(&message.body) {
            Ok(job) => Either::Left(function(job, context)),
            Err(error) => Either::Right(ready(Err(Failure::fatal(error)))),
        }
    }
}

async fn yielding() -> Result<Done, Failure> {
    tokio::task::yield_now().await;
    Ok(Done::default())
}

/// A handler that waits once.
#[derive(Clone, Copy)]
pub(crate) struct Yielding;

impl Handler for Yielding {
    fn handle(&self, _: Message, _: Context) -> impl Future<Output = Result<Done, Failure>> + Send + 'static {
        yielding()
    }
}

/// What trials are made of, the same each time.
pub(crate) struct Trials {
    runtime: Runtime,
    queue: Name,
    parcels: Vec<Parcel>,
}

impl Trials {
    pub(crate) fn new() -> Self {
        Self {
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build()
                .expect("a runtime"),
            queue: Name::new("bench").expect("a good name"),
            parcels: (0..PARCELS).map(|_| parcel(&bodies())).collect(),
        }
    }

    /// What came of all messages.
    pub(crate) fn run(&self, handler: impl Handler) -> Vec<Run> {
        let tried = trial(self.queue.clone(), QueuePolicy::default(), handler, self.parcels.clone());
        self.runtime.block_on(tried)
    }
}
