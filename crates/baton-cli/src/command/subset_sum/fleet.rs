//! Mode `fleet`: a call to the queue of subset sums, followed to its end. Ctrl-C cancels it, and so does the end of this process.

use std::{ops::ControlFlow, time::Duration};

use baton::{
    CallOptions, Cancel, Chunk, FollowError, Followed, Name, Since,
    jobs::subset_sum::{Order, Problem, Summary, Wish},
    operate::OperateError,
};
use tokio::time::timeout;

use super::{heard, refused};
use crate::{
    attendance::{UNHEARD, Unheard},
    connection::{Connection, Missing},
    exit::Failure,
    node::SEARCHES,
    settings::Settings,
};

/// What there is to do where nobody works for its queue.
const ADVICE: &str = "no node works for queue subset-sum; `baton up` starts one that does";
/// How long the search goes on after this process was killed.
const LINGER: Duration = Duration::from_secs(5);
/// How long a store that went away is left alone.
const AGAIN: Duration = Duration::from_millis(250);

/// Has the fleet search, and gives every match to `each` once, until that breaks off, the limit is reached or it is over.
pub(super) async fn search(
    settings: &Settings, problem: &Problem, wish: &Wish, cancel: &Cancel,
    mut each: impl FnMut(Vec<Vec<i64>>) -> ControlFlow<()>,
) -> Result<Summary, Failure> {
    let connection = Connection::open(settings, Missing::Create, None)?;
    connection.given(connection.operator.session().await)?;
    let fleet = connection.operator.fleet();
    let options = CallOptions { linger: Some(LINGER), ..CallOptions::default() };
    let call = fleet.queue::<Order>(SEARCHES).call(&Order::new(problem, wish), &options).await;
    let call = call.map_err(|error| Failure::new(error.to_string(), "run this again"))?;
    let (mut follow, mut found) = (fleet.follow(&call, Since::Start), Found::new(wish));
    let queue = Name::new(SEARCHES).map_err(|error| Failure::usage(error.to_string(), "see `baton --help`"))?;
    let mut unheard = Unheard::new(&connection, &queue, &call, Some(ADVICE));
    loop {
        let Some(followed) = heard(cancel, timeout(UNHEARD, follow.next())).await else {
            connection.given(fleet.cancel_call(&call).await)?;
            return Ok(found.summary);
        };
        match followed {
            Ok(Ok(Followed::Events(chunk))) => {
                unheard.heard();
                let matches = found.take(&chunk)?;
                let goes_on = if matches.is_empty() { ControlFlow::Continue(()) } else { each(matches) };
                if goes_on.is_break() || found.is_enough() {
                    connection.given(fleet.cancel_call(&call).await)?;
                    break;
                }
            }
            Ok(Ok(Followed::Gap { .. }) | Err(FollowError::Gone { .. })) => {
                connection.given(fleet.cancel_call(&call).await)?;
                return Err(Failure::new("matches were not read for so long that some are gone", "run it again"));
            }
            Ok(Ok(Followed::End)) => break,
            Ok(Err(FollowError::Store(error))) if error.is_retryable() => tokio::time::sleep(AGAIN).await,
            Ok(Err(FollowError::Store(error))) => return connection.given(Err(OperateError::Store(error))),
            Ok(Err(error)) => return Err(Failure::new(error.to_string(), "run it again")),
            Err(_) => unheard.wonder().await?,
        }
    }
    connection.operator.leave().await;
    Ok(found.summary)
}

/// What was told so far.
struct Found {
    summary: Summary,
    limit: u64,
    counts_only: bool,
}

impl Found {
    fn new(wish: &Wish) -> Self {
        let summary = Summary { count: 0, complete: wish.limit != Some(0) };
        Self { summary, limit: wish.limit.unwrap_or(u64::MAX), counts_only: wish.count_only }
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
