//! A member of the fleet as the command line describes it: what feeds it, what it does, what it tells, how it ends.

mod ending;
mod feed;
mod journal;
mod log;
mod rewinding;
mod signals;
mod work;

use std::{path::PathBuf, sync::Arc, time::Duration};

use baton::{Cancel, Node, NodeError, Observer, Role, store::TakeSurvey};
use bytes::Bytes;

use self::{feed::Feed, journal::Journal};
pub(crate) use self::{log::Log, work::Work};
use crate::{
    connection::Connection,
    exit::{Exit, Failure},
    output::remark,
};

pub(crate) use signals::{obey_leash, obey_signals};

/// How long, over its lease, a node that must stop at once may take to hand back what it holds.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Everything that makes a member.
#[derive(Debug, clap::Args)]
pub(crate) struct Member {
    #[command(flatten)]
    feed: Feed,
    #[command(flatten)]
    pub(crate) work: Work,
    /// Exit when the sources of the queue have ended and nothing is left in it: 0 if nothing is dead, else 3
    #[arg(long)]
    until_done: bool,
    /// Append what was pushed and run to this file
    #[arg(long, value_name = "PATH", hide = true)]
    journal: Option<PathBuf>,
}

impl Member {
    /// Refuses what cannot work, before anything is touched.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.work.check()
    }

    /// Runs until it is asked to stop, or is done if it is to end then.
    pub(crate) async fn run(
        &self, connection: &Connection, role: Role, log: &Arc<Log>, cancel: &Cancel,
    ) -> Result<Exit, Failure> {
        let journal = self.journal.as_deref().map(Journal::open).transpose()?;
        let witness = Arc::new(Witness { log: log.clone(), journal });
        let node = connection.fleet().node().role(role).observed_by(witness.clone());
        let source = if role == Role::Worker { None } else { Some(self.feed.name()?) };
        let node = if source.is_some() { self.feed.offer(node, &self.work.queue)? } else { node };
        let node = self.work.give(node);
        if let Some(source) = source.as_ref() {
            if self.feed.rewind {
                rewinding::rewind(connection, &node).await?;
            }
            let survey = connection.ask(TakeSurvey).await?;
            if survey.sources.iter().any(|it| it.name == *source && it.ended) {
                remark(&format!("source {source} has ended; --rewind starts it again"));
            }
        }
        let ended = self.see_through(node, connection, source.as_ref(), log, cancel).await;
        if let Some(journal) = &witness.journal {
            journal.flush();
        }
        ended
    }

    async fn see_through(
        &self, node: Node, connection: &Connection, source: Option<&baton::message::Name>, log: &Log, cancel: &Cancel,
    ) -> Result<Exit, Failure> {
        let running = node.run(cancel.clone());
        let done = ending::done(connection, &self.work.queue, source);
        let stuck = async {
            cancel.at_once().await;
            tokio::time::sleep(self.work.lease + LAST_WORDS).await;
        };
        tokio::pin!(running, done, stuck);
        let mut dead = None;
        loop {
            tokio::select! {
                ran = &mut running => {
                    ran.map_err(|error| refusal(&error, connection))?;
                    break;
                }
                count = &mut done, if self.until_done && dead.is_none() => {
                    log.line("done: nothing is left");
                    dead = Some(count);
                    cancel.drain();
                }
                () = &mut stuck => {
                    log.line("left without a word: its lease does the rest");
                    break;
                }
            }
        }
        Ok(if dead.is_some_and(|dead| dead > 0) { Exit::Dead } else { Exit::Ok })
    }
}

fn refusal(error: &NodeError, connection: &Connection) -> Failure {
    match error {
        NodeError::Store(error) => connection.failure(error),
        other => Failure::usage(other.to_string(), "see `baton node --help`"),
    }
}

/// Passes on what a node does.
struct Witness {
    log: Arc<Log>,
    journal: Option<Journal>,
}

impl Observer for Witness {
    fn ran(&self, _: &baton::message::Name, range: baton::message::Range, first_body: &Bytes) {
        if let Some(journal) = &self.journal {
            journal.ran(range, first_body);
        }
    }

    fn settling(&self) {
        if let Some(journal) = &self.journal {
            journal.flush();
        }
    }

    fn pushed(&self, push: &baton::store::Push, pushed: &baton::store::Pushed) {
        if let Some(journal) = &self.journal {
            journal.pushed(push, pushed);
        }
    }

    fn told(&self, line: &str) {
        self.log.told(line);
    }
}
