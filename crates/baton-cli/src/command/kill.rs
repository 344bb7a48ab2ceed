//! `baton kill`: stops the nodes of the fleet, and waits until they have gone.

use std::{collections::BTreeSet, time::Duration};

use baton::{
    message::SessionId,
    store::{Order, SessionView, Stop, Survey, TakeSurvey},
};
use serde::Serialize;
use tokio::time::Instant;

use crate::{
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    figures::nodes,
    output::{Output, plural, tame},
    quantity,
    settings::Settings,
};

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long, over the longest lease, nodes that must stop at once may take.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Stop all nodes that are running now, and wait until they are gone
///
/// Nodes finish what runs and hand the rest back; after --grace they hand back everything and leave at once. Nodes
/// started after the order are not concerned. Exit code 1 names those that are still there.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton kill
  baton kill --grace 1m
  baton kill --now --json")]
pub(crate) struct Kill {
    /// Do not let them finish what runs
    #[arg(long)]
    now: bool,
    /// How long they may take to finish what runs
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::time)]
    grace: Duration,
    /// Print one JSON object: {"stopped","at_once","survivors"}
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Killed {
    stopped: usize,
    /// Whether some had to leave at once.
    at_once: bool,
    /// As `host/pid`.
    survivors: Vec<String>,
}

impl Kill {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let connection = Connection::open(settings, Missing::Refuse, None)?;
        let killed = self.stop(&connection).await;
        connection.leave().await;
        let killed = killed?;
        let mut output = Output::new();
        if self.json {
            output.json(&killed)?;
        } else if killed.survivors.is_empty() {
            let count = killed.stopped as u64;
            output.line(&match count {
                0 => "no node is running".to_owned(),
                _ => format!("stopped {count} node{}", plural(count)),
            })?;
        }
        output.flush()?;
        if killed.survivors.is_empty() {
            return Ok(Exit::Ok);
        }
        let (count, names) = (killed.survivors.len() as u64, killed.survivors.join(", "));
        Err(Failure::new(format!("{count} node{} did not stop: {names}", plural(count)), "end them by hand"))
    }

    async fn stop(&self, connection: &Connection) -> Result<Killed, Failure> {
        let survey = connection.ask(TakeSurvey).await?;
        let targets: BTreeSet<SessionId> = nodes(&survey).map(|node| node.session).collect();
        // Nodes started from here on live.
        let upto = nodes(&survey).map(|node| node.join_no).max();
        let killed =
            |at_once, survivors: Vec<String>| Killed { stopped: targets.len() - survivors.len(), at_once, survivors };
        if targets.is_empty() {
            return Ok(killed(false, Vec::new()));
        }
        let longest = Duration::from_millis(nodes(&survey).map(|node| node.lease_ms).max().unwrap_or(0));
        if !self.now {
            connection.ask(Order::Stop(Stop::Drain, upto)).await?;
            if wait(connection, &targets, self.grace).await?.is_empty() {
                return Ok(killed(false, Vec::new()));
            }
        }
        connection.ask(Order::Stop(Stop::Now, upto)).await?;
        let left = wait(connection, &targets, longest + LAST_WORDS).await?;
        Ok(killed(true, names(&left)))
    }
}

/// Waits until the sessions are gone; those that are not, in time.
async fn wait(
    connection: &Connection, targets: &BTreeSet<SessionId>, limit: Duration,
) -> Result<Vec<SessionView>, Failure> {
    let deadline = Instant::now() + limit;
    loop {
        // The beats of a session move the fleet's clock on and reap those whose lease is over.
        connection.session().await?;
        let survey: Survey = connection.ask(TakeSurvey).await?;
        let left: Vec<SessionView> = nodes(&survey).filter(|node| targets.contains(&node.session)).cloned().collect();
        if left.is_empty() || Instant::now() >= deadline {
            return Ok(left);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn names(left: &[SessionView]) -> Vec<String> {
    left.iter().map(|node| format!("{}/{}", tame(&node.host), node.pid)).collect()
}
