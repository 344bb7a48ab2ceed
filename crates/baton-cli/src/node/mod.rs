//! A node as the command line describes it: what feeds it, what it does, what it tells, how it ends.

mod feed;
mod log;
mod signals;
mod work;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use baton::{
    Cancel, Event, Name, Node, NodeError, Observer, Role,
    operate::{HeldUp, Journal, NodeState, Overview},
    store::{Refusal, StoreError},
};
use bytes::Bytes;
use tokio::sync::watch;

use self::feed::Feed;
pub(crate) use self::{log::Log, work::Work};
use crate::{
    connection::Connection,
    exit::{Exit, Failure},
    output::{plural, remark, tame},
};

pub(crate) use signals::{obey_leash, obey_signals};

/// The queue of the demonstration, and the name of the source that feeds it.
const DEMONSTRATION: &str = "demo";
/// How long, over its lease, a node that must stop at once may take to hand back what it holds.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Everything that makes a node.
#[derive(Debug, clap::Args)]
pub(crate) struct NodeArguments {
    #[command(flatten)]
    feed: Feed,
    #[command(flatten)]
    pub(crate) work: Work,
    /// Exit when the source named here, if there is one, has ended and nothing is left in the queue: 0, or 3 if the queue
    /// has errors, of whichever run; 1 if the source fails for good
    #[arg(long)]
    until_done: bool,
    /// Append what was pushed and run to this file
    #[arg(long, value_name = "PATH", hide = true)]
    journal: Option<PathBuf>,
}

impl NodeArguments {
    /// Makes a demonstration of a command that names neither queue nor handler nor lines nor calendar, on a queue and
    /// with a source that nothing else uses.
    pub(crate) fn demonstrate_if_bare(&mut self) -> Result<(), Failure> {
        if self.work.is_bare() && !self.feed.is_of_its_own() {
            let name = Name::new(DEMONSTRATION).map_err(|error| Failure::usage(error.to_string(), "name a --queue"))?;
            self.work.demonstrate_on(&name);
            self.feed.tick_as(&name);
        }
        Ok(())
    }

    /// Refuses what cannot work, before anything is touched.
    pub(crate) fn check(&self, role: Role) -> Result<(), Failure> {
        self.work.check()?;
        if role != Role::Worker {
            self.feed.check(self.until_done)?;
        }
        match role {
            Role::Generator if !self.feed.is_named() => Err(Failure::usage(
                "no source is named, and a generator does nothing else",
                "add --interval, --lines, --lines-from or --cron",
            )),
            Role::Auto | Role::Worker if !self.work.has_handler() => Err(Failure::usage(
                format!("no handler is named for the messages of queue {}", self.work.queue()?),
                "add --handler (demo, noop); `baton up` without flags is a demonstration",
            )),
            _ => Ok(()),
        }
    }

    /// Runs until it is asked to stop, or is done if it is to end then.
    pub(crate) async fn run(
        &self, connection: &Connection, role: Role, log: &Arc<Log>, cancel: &Cancel,
    ) -> Result<Exit, Failure> {
        let journal = self.journal.as_deref().map(open_journal).transpose()?;
        let witness = Arc::new(Witness { log: log.clone(), journal, failed: watch::Sender::new(None) });
        let queue = self.work.queue()?;
        let node = self.node(connection, role, &queue, &witness)?;
        // A worker leaves the source to others, but may wait for the end of one that is named.
        let works_only = role == Role::Worker;
        let source = if works_only { self.feed.source.clone() } else { self.feed.name()? };
        let (mut had_ended, mut run_by) = (None, None);
        if let Some(source) = source.as_ref().filter(|_| !works_only) {
            if self.feed.rewind {
                connection.given(connection.operator.rewind(&node).await)?;
            }
            let survey = connection.given(connection.operator.survey().await)?;
            let overview = Overview::of(&survey);
            let ended = overview.sources.iter().any(|it| it.name == *source && it.ended);
            had_ended = ended.then(|| source.clone());
            run_by = elsewhere(&overview, source);
        }
        let next_due = if works_only { None } else { self.feed.next_due()? };
        let failed = witness.failed.subscribe();
        let done = async {
            // Until it has joined, the store may still refuse it.
            log.joined().await;
            if let Some(novelty) = connection.novelty() {
                log.line(&novelty);
            }
            if let Some(source) = had_ended {
                log.say(&format!("source {source} has ended; --rewind starts it again"));
            }
            if let Some(run_by) = run_by {
                log.line(&run_by);
            }
            if let Some(next) = &next_due {
                log.line(next);
            }
            if !self.until_done {
                std::future::pending::<()>().await;
            }
            let held_up = |why: HeldUp| match why {
                HeldUp::Paused => log.say(&format!("queue {queue} is paused; `baton resume {queue}` lets it go on")),
                _ => log.say(&format!("nobody works for queue {queue}; start a node with a handler for it")),
            };
            let dead = connection.operator.until_done(&queue, source.as_ref(), held_up).await;
            match dead {
                0 => log.line("done: nothing is left"),
                _ => log.say(&format!(
                    "done, but {dead} message{} failed; see `baton errors --queue {queue}`",
                    plural(dead)
                )),
            }
            dead
        };
        let ended = match self.see_through(node, done, failed, log, cancel).await {
            Ok(ended) => ended,
            Err(NodeError::Store(StoreError::Refused(Refusal::DefinitionInUse { source_name, session }))) => {
                let other = connection.given(connection.operator.whereabouts(session).await)?;
                let cause = format!("{other} offers source {source_name} with another definition");
                Err(Failure::new(cause, "stop it first, or give this source another name (--source)"))
            }
            Err(NodeError::Store(StoreError::Refused(Refusal::Definition { source_name }))) => {
                let survey = connection.given(connection.operator.survey().await)?;
                let known = survey.sources.iter().find(|it| it.name == source_name);
                let differs = match known.filter(|known| known.queue != queue) {
                    Some(known) => format!("it feeds queue {}, not {queue}", known.queue),
                    None => "other lines, or the same in another way (--lines, --lines-from, --follow, --json-lines)"
                        .to_owned(),
                };
                let cause = format!("source {source_name} is known with another definition: {differs}");
                Err(Failure::new(cause, "give this one another name (--source), or start it over with --rewind"))
            }
            Err(error) => connection.given(Err(error)),
        };
        if let Some(journal) = &witness.journal {
            journal.flush();
        }
        ended
    }

    /// The node as the command describes it.
    fn node(&self, connection: &Connection, role: Role, queue: &Name, witness: &Arc<Witness>) -> Result<Node, Failure> {
        let mut node = self.work.place(connection.operator.fleet().node().role(role).observed_by(witness.clone()));
        if role != Role::Generator {
            node = self.work.give(node, queue);
        }
        if role == Role::Worker { Ok(node) } else { self.feed.offer(node, queue) }
    }

    /// Sees the node to its end, and says how that was.
    async fn see_through(
        &self, node: Node, done: impl Future<Output = u64>, mut failed: watch::Receiver<Option<Event>>, log: &Log,
        cancel: &Cancel,
    ) -> Result<Result<Exit, Failure>, NodeError> {
        let running = node.run(cancel.clone());
        let stuck = async {
            cancel.at_once().await;
            tokio::time::sleep(self.work.lease + LAST_WORDS).await;
        };
        tokio::pin!(running, done, stuck);
        let mut ended = Ok(Exit::Ok);
        let mut waits = true;
        loop {
            tokio::select! {
                ran = &mut running => {
                    return ran.map(|()| ended);
                }
                Ok(failure) = failed.wait_for(Option::is_some), if waits && self.until_done => {
                    waits = false;
                    if let Some(failure) = &*failure {
                        ended = Err(for_good(failure));
                    }
                    cancel.drain();
                }
                dead = &mut done, if waits => {
                    waits = false;
                    ended = Ok(if dead > 0 { Exit::Dead } else { Exit::Ok });
                    cancel.drain();
                }
                () = &mut stuck => {
                    log.line("left without a word: its lease does the rest");
                    return Ok(ended);
                }
            }
        }
    }
}

fn open_journal(path: &Path) -> Result<Journal, Failure> {
    let failed = |error: &io::Error| {
        remark(&format!("cannot write the journal: {error}; make room for it"));
        std::process::exit(Exit::Failed as i32);
    };
    Journal::open(path, failed).map_err(|error| {
        Failure::new(format!("cannot write the journal {}: {error}", path.display()), "name another file")
    })
}

/// That another node runs the source, if one does: it goes by what that one was told, such as its interval.
fn elsewhere(overview: &Overview, source: &Name) -> Option<String> {
    let holder = overview.sources.iter().find(|it| it.name == *source)?.holder?;
    let NodeState { host, pid, .. } = overview.nodes.iter().find(|node| node.session == holder)?;
    let other = format!("{}/{pid}", tame(host));
    Some(format!("source {source} is run by {other}, as that node was told to; this one is next when it leaves"))
}

/// A source that has failed for good. What it says of rewinding is its own next step, for which there is a flag.
fn for_good(failure: &Event) -> Failure {
    match failure {
        Event::SourceFailed { error, .. } if error.is_until_rewound() => {
            Failure::advised(Exit::Failed, &format!("{failure} (--rewind)"))
        }
        _ => {
            Failure::new(failure.to_string(), "correct that and run this again, or start the source over with --rewind")
        }
    }
}

/// Passes on what a node does.
struct Witness {
    log: Arc<Log>,
    journal: Option<Journal>,
    /// That a source failed for good, once one has.
    failed: watch::Sender<Option<Event>>,
}

impl Observer for Witness {
    fn ran(&self, _: &Name, range: baton::store::message::Range, first_body: &Bytes) {
        if let Some(journal) = &self.journal {
            journal.ran(range, first_body);
        }
    }

    fn settling(&self) {
        if let Some(journal) = &self.journal {
            journal.flush();
        }
    }

    fn told(&self, event: &Event) {
        self.log.told(event);
        if let Some(journal) = &self.journal {
            journal.told(event);
        }
        if matches!(event, Event::SourceFailed { error, .. } if error.is_for_good()) {
            self.failed.send_replace(Some(event.clone()));
        }
    }
}
