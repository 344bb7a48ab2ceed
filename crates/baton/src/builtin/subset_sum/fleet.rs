//! Mode `fleet`: split into messages that all nodes work on, whose matches are merged into the events of one call.
//!
//! The message that begins the call estimates the cost, refuses what is too large, and lets its parts join the call. Each part
//! is searched by a child, which tells its matches as they are found, `match` with the integers, under the subset's bits as
//! the key: a part that is run again, because its node or its child died, tells only what was not told before. At its end it
//! tells `part`, with how many it found, also under a key. The call ends with its last part.
//!
//! A task that is not to be split is one message for one child: this is the one way in which messages become searches.

use std::{num::NonZero, thread, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    plan::Plan,
    problem::{Problem, SearchOptions, Task},
};
use crate::{Context, Done, Failure, Handler, Message, builtin::Exec};

/// Parts that a search is split into, unless its task says otherwise: more than there are workers as a rule, so that all of
/// them are busy to the end.
const PARTS: u32 = 64;
/// The most parts.
const MOST_PARTS: u32 = 1_000;

/// What is called for, `{"data":[…],"sum":N,"parts":64}` and what is wished: a task, split into so many messages.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Order(Task);

impl Order {
    /// The whole of a problem, to be split.
    #[must_use]
    pub fn new(problem: &Problem, options: &SearchOptions) -> Self {
        Self(Task::new(problem, options).split_into(PARTS))
    }

    /// The whole of a problem, in one message.
    #[must_use]
    pub fn whole(problem: &Problem, options: &SearchOptions) -> Self {
        Self(Task::new(problem, options))
    }

    /// In so many parts, at most a thousand.
    #[must_use]
    pub fn parts(self, parts: u32) -> Self {
        Self(self.0.split_into(parts))
    }
}

/// The handler of searches: splits [`Order`]s, and has children search parts, and what is not to be split. One of them takes all
/// cores while it runs.
#[derive(Debug, Clone)]
pub struct InFleet {
    children: Exec,
    timeout: Option<Duration>,
}

impl InFleet {
    /// With these children: a program that runs [`serve`](super::serve). Let
    /// [`Limits::output_timeout`](crate::pool::Limits::output_timeout) of their pool be [`OUTPUT_TIMEOUT`](super::OUTPUT_TIMEOUT): a child that stands still
    /// is then replaced.
    #[must_use]
    pub fn new(children: Exec) -> Self {
        // They flush each line, and show that they are at work.
        children.pool.never_hint();
        Self { children, timeout: None }
    }

    /// How long a message may take; [`SearchOptions::timeout`] by default. The child of one that takes longer is killed, and the
    /// message fails for good.
    #[must_use]
    pub const fn timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }
}

impl Handler for InFleet {
    fn handle(
        &self, message: Message, context: Context,
    ) -> impl Future<Output = Result<Done, Failure>> + Send + 'static {
        let Self { children, timeout } = self.clone();
        async move {
            let Order(task) = serde_json::from_slice(&message.body)
                .map_err(|error| Failure::fatal(format_args!("the body is no task of this handler: {error}")))?;
            let parts = task.parts;
            let (problem, options) = task.told();
            match parts.filter(|_| problem.part().is_none()) {
                Some(parts) => split(&message, problem, options, parts).await,
                None => {
                    let time = timeout.unwrap_or_else(|| options.timeout());
                    let searched = tokio::time::timeout(time, children.handle(message, context)).await;
                    // Another attempt would take as long.
                    searched.unwrap_or_else(|_| Err(Failure::fatal(out_of_time(time))))
                }
            }
        }
    }
}

/// What is said of a search that took too long.
pub(super) fn out_of_time(time: Duration) -> String {
    format!(
        "the search was not finished after {time:?} (timeout): limit the matches, only count them, or allow more time"
    )
}

/// Lets the parts of a problem join the call.
async fn split(message: &Message, problem: Problem, options: SearchOptions, parts: u32) -> Result<Done, Failure> {
    let parts = parts.clamp(1, MOST_PARTS) as usize;
    let planned = tokio::task::spawn_blocking(move || {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Plan::of(&problem)?.check(&options, cores, &|| false)?;
        problem.split(parts)
    });
    let parts = planned.await?.map_err(Failure::fatal)?;
    let done = Done::with(&serde_json::json!({ "parts": parts.len() }))?;
    let queue = message.queue.as_str();
    parts.iter().try_fold(done, |done, part| done.then_in_call(queue, &Order(Task::new(part, &options))))
}

#[cfg(test)]
mod tests {
    use std::{
        future::ready,
        sync::{Arc, Mutex},
    };

    use super::*;
    use crate::pool::{self, Limits, Program};

    #[tokio::test(start_paused = true)]
    async fn a_search_that_takes_long_gets_no_hint_about_its_output() {
        for (searches, hints) in [(false, 1), (true, 0)] {
            let heard = Arc::new(Mutex::new(Vec::new()));
            let ear = heard.clone();
            let children = Exec::new(Program::new("sleep", ["600"]), Limits { children: 1, ..Limits::default() })
                .on_errors(move |it| ear.lock().unwrap().push(it.text.to_owned()));
            let search = searches.then(|| InFleet::new(children.clone()));
            let task = pool::Task { id: 7, key: "k", queue: "q", attempt: 1, crashes: 0, call: None, body: b"1" };
            let run = children.pool.run(&task, |_| ready(Ok(())));
            tokio::time::timeout(Duration::from_secs(60), run).await.unwrap_err();
            let heard = heard.lock().unwrap();
            assert_eq!(heard.len(), hints, "{search:?}: {heard:?}");
            assert!(heard.iter().all(|line| line.contains("flushes its output")));
        }
    }
}
