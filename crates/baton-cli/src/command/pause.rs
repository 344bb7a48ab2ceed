//! `baton pause` and `baton resume`: claims of a queue stop, or go on.

use baton::{Name, admin::AdminError};

use crate::{
    attendance,
    connection::{Connection, Missing},
    exit::{Exit, Failure, near},
    output::Output,
    settings::Settings,
};

/// Stop handing out the messages of a queue; running messages finish, and pushes go on
///
/// The queue stays paused through restarts, until `baton resume`. A queue is refused that the fleet does not have and
/// baton.toml does not describe: its name may have a slip in it. --create pauses it ahead of its first message.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton pause resize
  baton pause nightly --create")]
pub(crate) struct Pause {
    #[command(flatten)]
    target: Target,
    /// Pause a queue that does not exist yet: it begins paused
    #[arg(long)]
    create: bool,
}

/// Hand out the messages of a paused queue again
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton resume resize")]
pub(crate) struct Resume {
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
struct Target {
    /// The queue
    #[arg(value_name = "QUEUE")]
    queue: Name,
    /// Print one JSON object: {"queue","paused"}
    #[arg(long)]
    json: bool,
}

impl Pause {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let Target { queue, json } = self.target;
        let ahead = self.create || attendance::described(settings).contains(&queue);
        let connection = match ahead {
            true => Connection::open(settings, Missing::Refuse, None)?,
            false => Connection::to_fleet(settings, json).await?,
        };
        let paused = match ahead {
            true => connection.admin.pause_unseen(&queue).await,
            false => connection.admin.pause(&queue).await,
        };
        if let Err(AdminError::Unknown(unknown)) = &paused {
            let next = format!("add --create to pause it ahead of its first message; {}", near(unknown));
            return Err(Failure::new(unknown.to_string(), next));
        }
        Output::print(json, &connection.given(paused)?, |output| output.line(&format!("queue {queue} is paused")))
    }
}

impl Resume {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let Target { queue, json } = self.target;
        let connection = Connection::to_fleet(settings, json).await?;
        let resumed = connection.given(connection.admin.resume(&queue).await)?;
        Output::print(json, &resumed, |output| output.line(&format!("queue {queue} goes on")))
    }
}
