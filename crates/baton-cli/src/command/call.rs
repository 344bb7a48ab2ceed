//! `baton call`: a message whose events are followed to its end.

use std::{io::Read as _, time::Duration};

use baton::{
    CallId, CallOptions, CallState, FollowError, Followed, Key, Name, Since, admin::BadBody, settings::quantity,
    store::message::MAX_BODY_BYTES,
};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::{
    arguments::queue_before_bodies,
    attendance,
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    following::Following,
    interrupt,
    output::{Output, remark, tame_json},
    settings::Settings,
};

/// Push one message and print its events, one a line, until it ends
///
/// Each line is {"number","event","data"}. First come the events that the handler emits. The last one is `end` with the
/// result, `error`, or `cancelled`. Ctrl-C cancels the message; with --stay it goes on.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton call resize '{\"picture\":\"cat.png\"}'
  baton call subset-sum '{\"data\":[1,2,-3],\"sum\":0}' --result
  baton call report --once june - < june.json

Exit codes: 0 done; 1 cancelled or interrupted; 3 failed for good")]
pub(crate) struct Call {
    /// The queue
    #[arg(value_name = "QUEUE", value_parser = queue_before_bodies)]
    queue: Name,
    /// The body, as JSON; - reads it from standard input
    #[arg(value_name = "BODY", allow_hyphen_values = true)]
    body: String,
    /// The idempotency key: the same key and body again are the same call, which is followed from its first event
    #[arg(long, value_name = "KEY", conflicts_with = "share")]
    once: Option<Key>,
    /// Join a call with an equal body that has not ended, if there is one
    #[arg(long)]
    share: bool,
    /// Cancel the call if no process follows it for this long, for example because this one was killed
    #[arg(long, value_name = "TIME", value_parser = quantity::time)]
    linger: Option<Duration>,
    /// Let the call go on after Ctrl-C
    #[arg(long)]
    stay: bool,
    /// Call the queue even if a baton.toml describes others and nothing knows this one
    #[arg(long)]
    create: bool,
    /// Print only the result, or nothing if there is none
    #[arg(long)]
    result: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    number: u64,
    event: &'a Name,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    data: &'a RawValue,
}

impl Call {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let body = self.body()?;
        let connection = Connection::open(settings, Missing::Create, None)?;
        if !self.create {
            attendance::check(&self.queue, &connection, settings).await?;
        }
        let (interrupted, mut call) = (interrupt::listen(interrupt::LAST_WORDS)?, None);
        let followed = interrupt::unless(&interrupted, self.follow(&connection, settings, &body, &mut call)).await;
        let exit = match followed {
            Some(exit) => exit?,
            None => {
                remark(&self.broken_off(&connection, call.as_ref()).await?);
                Exit::Failed
            }
        };
        connection.admin.leave().await;
        Ok(exit)
    }

    /// Begins the call, which `begun` then holds, and prints its events to its end.
    async fn follow(
        &self, connection: &Connection, settings: &Settings, body: &RawValue, begun: &mut Option<CallId>,
    ) -> Result<Exit, Failure> {
        let options = CallOptions { key: self.once.clone(), share: self.share, linger: self.linger };
        let call = connection.stored(connection.admin.call(&self.queue, body, &options).await)?;
        let call = &*begun.insert(call);
        let mut following = Following::new(connection, &self.queue, call, settings.wait.value, None);
        let mut output = Output::new();
        loop {
            match following.next().await? {
                Ok(Followed::Events(chunk)) if !self.result => {
                    for (number, event) in chunk.numbered() {
                        let message = event.message.as_ref().map(ToString::to_string);
                        let data = serde_json::from_slice(&event.data);
                        let data =
                            data.map_err(|error| Failure::new(format!("{call}: {error}"), "see `baton audit`"))?;
                        output.json(&Line { number, event: &event.event, message, data })?;
                    }
                    output.flush()?;
                }
                Ok(Followed::Events(_)) => {}
                Ok(Followed::Gap { next }) => {
                    remark(&format!("events before number {next} are not kept any more; go on"))
                }
                Ok(Followed::End) => break,
                Err(FollowError::Gone { first, .. }) => following.rejoin(first),
                Err(error) => return Err(Failure::new(error.to_string(), "run it again")),
            }
        }
        let status = connection.given(connection.admin.fleet().call_status(call).await)?;
        let Some(status) = status else { return Ok(Exit::Ok) };
        if let Some(result) = status.result.as_deref().filter(|_| self.result) {
            output.line(&tame_json(&String::from_utf8_lossy(result)))?;
            output.flush()?;
        }
        match status.state {
            CallState::Failed => {
                // Why was told by its last event, where events are printed.
                let why = status.error.filter(|_| self.result).map(|why| format!(": {why}")).unwrap_or_default();
                remark(&format!("{} failed{why}; see `baton errors {}`", shown(call), call.queue));
                Ok(Exit::MessagesFailed)
            }
            CallState::Cancelled | CallState::Cancelling => Ok(Exit::Failed),
            _ => Ok(Exit::Ok),
        }
    }

    /// Says how the call stands after Ctrl-C.
    async fn broken_off(&self, connection: &Connection, call: Option<&CallId>) -> Result<String, Failure> {
        let Some(call) = call else {
            return Ok(
                "interrupted before the store confirmed the call; run it again, with the same --once if it must not \
                       run twice"
                    .to_owned(),
            );
        };
        if self.stay {
            return Ok(format!("{call} goes on; `curl localhost:8000/messages/{call}/events` follows it"));
        }
        let cancelled = timeout(ANSWERED, cancelled(connection, call)).await;
        cancelled.unwrap_or_else(|_| {
            let call = shown(call);
            Err(Failure::new(format!("whether {call} is cancelled is not known: no answer"), "see `baton status`"))
        })
    }

    fn body(&self) -> Result<Box<RawValue>, Failure> {
        let mut text = self.body.clone();
        if text == "-" {
            text.clear();
            let read = std::io::stdin().lock().read_to_string(&mut text);
            read.map_err(|error| Failure::new(format!("cannot read standard input: {error}"), "give the body"))?;
        }
        let text = text.trim();
        BadBody::check(text.as_bytes(), MAX_BODY_BYTES)
            .map_err(|bad| Failure::new(format!("the body {bad}"), "give one JSON text, strings in quotes"))?;
        RawValue::from_string(text.to_owned())
            .map_err(|error| Failure::new(format!("the body is not JSON: {error}"), "give one JSON text"))
    }
}

/// Cancels the call; what became of it, as far as that is known soon.
async fn cancelled(connection: &Connection, call: &CallId) -> Result<String, Failure> {
    let name = shown(call);
    let unknown = |failure: Failure| failure.of(&format!("whether {name} is cancelled is not known"));
    let fleet = connection.admin.fleet();
    connection.given(fleet.cancel_call(call).await).map_err(unknown)?;
    // Its handler is broken off with the next beat of its node, and may be done before that.
    let mut follow = fleet.follow(call, Since::Now);
    let ended = async { while !matches!(follow.next().await, Ok(Followed::End) | Err(_)) {} };
    timeout(LAST_WORDS, ended).await.ok();
    let status = connection.given(fleet.call_status(call).await).map_err(unknown)?;
    Ok(match status.map(|it| it.state) {
        None => format!("{name} has ended, and is not known any more"),
        Some(CallState::Cancelled) => format!("{name} was cancelled"),
        Some(CallState::Done) => format!("{name} was done before it could be cancelled"),
        Some(CallState::Failed) => format!("{name} failed before it could be cancelled; see `baton errors`"),
        Some(_) => {
            format!(
                "{name} is being cancelled: what runs ends when its node hears so, what waits when a node comes to it"
            )
        }
    })
}

/// Its name for people. URLs need the birth too.
fn shown(call: &CallId) -> String {
    format!("{}/{}", call.queue, call.id)
}

/// How long the end of a cancelled call is waited for.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long the store may take to answer that the call is cancelled and has ended.
const ANSWERED: Duration = Duration::from_secs(5);
