//! Mode `fleet`: a call to the queue of subset sums, followed to its end. Ctrl-C cancels it, and so does the end of this process.

use std::{ops::ControlFlow, time::Duration};

use baton::{
    CallId, CallOptions, Chunk, FollowError, Followed, Name, Shutdown,
    builtin::subset_sum::{Order, Problem, SearchOptions, Summary},
};
use tokio::time::timeout;

use super::refused;
use crate::{
    connection::{Connection, Missing},
    exit::Failure,
    following::Following,
    interrupt::unless,
    node::SEARCHES,
    settings::Settings,
};

/// What there is to do where nobody works for its queue.
const ADVICE: &str = "no node works for queue subset-sum; `baton up --demo`, or --recipes, starts one that does";
/// How long the search goes on after this process was killed.
const LINGER: Duration = Duration::from_secs(5);
/// How long the store may take to hear that it is cancelled.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Has the fleet search, and gives every match to `each` once, until that breaks off, the limit is reached or it is over.
pub(super) async fn search(
    settings: &Settings, problem: &Problem, options: &SearchOptions, shutdown: &Shutdown,
    each: impl FnMut(Vec<Vec<i64>>) -> ControlFlow<()>,
) -> Result<Summary, Failure> {
    let connection = Connection::open(settings, Missing::Create, None)?;
    let (mut call, mut found) = (None, Found::new(options));
    let order = Order::new(problem, options);
    let followed = unless(shutdown, follow(settings, &connection, &order, &mut call, &mut found, each)).await;
    // Only one that has told its end needs no word that it is to end.
    if !matches!(followed, Some(Ok(true)))
        && let Some(call) = &call
    {
        // Without a follower it ends by itself, a little later.
        timeout(LAST_WORDS, connection.admin.fleet().cancel_call(call)).await.ok();
    }
    connection.admin.leave().await;
    followed.transpose().map(|_| found.summary)
}

/// Begins the call, which `begun` then holds, and takes what is found; whether it has come to its own end.
async fn follow(
    settings: &Settings, connection: &Connection, order: &Order, begun: &mut Option<CallId>, found: &mut Found,
    mut each: impl FnMut(Vec<Vec<i64>>) -> ControlFlow<()>,
) -> Result<bool, Failure> {
    let queue = Name::new(SEARCHES).map_err(|error| Failure::usage(error.to_string(), "see `baton --help`"))?;
    let options = CallOptions { linger: Some(LINGER), ..CallOptions::default() };
    let call = connection.stored(connection.admin.call(&queue, order, &options).await)?;
    let call = &*begun.insert(call);
    let mut following = Following::new(connection, &queue, call, settings.wait.value, Some(ADVICE));
    loop {
        match following.next().await? {
            Ok(Followed::Events(chunk)) => {
                let matches = found.take(&chunk)?;
                let goes_on = if matches.is_empty() { ControlFlow::Continue(()) } else { each(matches) };
                if goes_on.is_break() || found.is_enough() {
                    return Ok(false);
                }
            }
            Ok(Followed::Gap { .. }) | Err(FollowError::Gone { .. }) => {
                return Err(Failure::new("matches were not read for so long that some are gone", "run it again"));
            }
            Ok(Followed::End) => return Ok(true),
            Err(error) => return Err(Failure::new(error.to_string(), "run it again")),
        }
    }
}

/// What was told so far.
struct Found {
    summary: Summary,
    limit: u64,
    counts_only: bool,
}

impl Found {
    fn new(options: &SearchOptions) -> Self {
        let summary = Summary { count: 0, complete: options.limit != Some(0) };
        Self { summary, limit: options.limit.unwrap_or(u64::MAX), counts_only: options.count_only }
    }

    fn is_enough(&self) -> bool {
        !self.counts_only && self.summary.count >= self.limit
    }

    /// The matches among these events, as many as are wanted.
    fn take(&mut self, chunk: &Chunk) -> Result<Vec<Vec<i64>>, Failure> {
        let mut matches = Vec::new();
        for event in chunk.events() {
            let bad = |error: serde_json::Error| Failure::new(format!("not as told: {error}"), "see `baton audit`");
            match event.event.as_str() {
                "match" if self.is_enough() => {}
                "match" => {
                    matches.push(serde_json::from_slice(&event.data).map_err(bad)?);
                    self.summary.count += 1;
                    self.summary.complete &= !self.is_enough();
                }
                "part" if self.counts_only => {
                    let part: Summary = serde_json::from_slice(&event.data).map_err(bad)?;
                    self.summary.count += part.count;
                    self.summary.complete &= part.complete;
                }
                "error" => {
                    let said: serde_json::Value = serde_json::from_slice(&event.data).map_err(bad)?;
                    return Err(refused(said.get("message").and_then(|it| it.as_str()).unwrap_or("it failed")));
                }
                "cancelled" => return Err(Failure::new("the search was cancelled by another", "run it again")),
                _ => {}
            }
        }
        Ok(matches)
    }
}
