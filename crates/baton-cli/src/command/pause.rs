//! `baton pause` and `baton resume`: claims of a queue stop, or go on.

use baton::{message::Name, store::Order};
use serde::Serialize;

use crate::{
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    output::Output,
    settings::Settings,
};

/// Stop handing out messages of a queue; what runs is finished, and pushes go on
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton pause
  baton pause resize")]
pub(crate) struct Pause {
    #[command(flatten)]
    target: Target,
}

/// Hand out messages of a paused queue again
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton resume
  baton resume resize")]
pub(crate) struct Resume {
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
struct Target {
    /// The queue
    #[arg(value_name = "QUEUE", default_value = "messages")]
    queue: Name,
    /// Print one JSON object: {"queue","paused"}
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct State {
    queue: String,
    paused: bool,
}

impl Pause {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        self.target.set(settings, true).await
    }
}

impl Resume {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        self.target.set(settings, false).await
    }
}

impl Target {
    async fn set(self, settings: &Settings, paused: bool) -> Result<Exit, Failure> {
        let order = if paused { Order::Pause(self.queue.clone()) } else { Order::Resume(self.queue.clone()) };
        Connection::open(settings, Missing::Wait, None)?.ask(order).await?;
        let mut output = Output::new();
        if self.json {
            output.json(&State { queue: self.queue.to_string(), paused })?;
        } else {
            let state = if paused { "is paused" } else { "goes on" };
            output.line(&format!("queue {} {state}", self.queue))?;
        }
        output.flush()?;
        Ok(Exit::Ok)
    }
}
