//! `baton pause` and `baton resume`: claims of a queue stop, or go on.

use baton::{Name, admin::OperateError};

use crate::{
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    output::Output,
    settings::Settings,
};

/// Stop handing out messages of a queue; what runs is finished, and pushes go on
///
/// It stays paused through restarts, until `baton resume`. A queue the fleet does not know is refused: it would be a
/// queue of that name that nobody means.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton pause
  baton pause resize
  baton pause nightly --create")]
pub(crate) struct Pause {
    #[command(flatten)]
    target: Target,
    /// Also if no such queue is known yet: it begins paused
    #[arg(long)]
    create: bool,
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

impl Pause {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let Target { queue, json } = self.target;
        let connection = Connection::open(settings, Missing::Refuse, None)?;
        let paused = match self.create {
            true => connection.admin.pause_unseen(&queue).await,
            false => connection.admin.pause(&queue).await,
        };
        if let Err(OperateError::Unknown(unknown)) = &paused {
            return Err(Failure::new(unknown.to_string(), "name one that is there, or add --create"));
        }
        Output::print(json, &connection.given(paused)?, |output| output.line(&format!("queue {queue} is paused")))
    }
}

impl Resume {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let Target { queue, json } = self.target;
        let connection = Connection::open(settings, Missing::Refuse, None)?;
        let resumed = connection.given(connection.admin.resume(&queue).await)?;
        Output::print(json, &resumed, |output| output.line(&format!("queue {queue} goes on")))
    }
}
