//! A node from its start to its end, and what is said of that.

use std::{sync::Arc, time::Duration};

use baton::{
    Cancel, Event, Name, Node, NodeError,
    operate::{HeldUp, NodeState, Overview},
    store::{Kind, Refusal, StoreError, Survey},
};
use tokio::sync::watch;

use super::{Log, NodeArguments, Plan, program::Stage, witness::Witness};
use crate::{
    connection::Connection,
    exit::{Exit, Failure},
    output::{plural, tame},
};

/// How long, over its lease, a node that must stop at once may take to hand back what it holds.
const LAST_WORDS: Duration = Duration::from_secs(2);

impl NodeArguments {
    /// Runs until it is asked to stop, or is done if it is to end then.
    pub(crate) async fn run(
        &self, plan: &Plan, connection: &Connection, log: &Arc<Log>, cancel: &Cancel,
    ) -> Result<Exit, Failure> {
        let witness = Arc::new(Witness::new(log, self.journal.as_deref(), plan.run_by_programs())?);
        let stage = Stage { log, cancel, prints: self.until_done };
        let (node, children) = plan.node(connection, &self.work, &witness, &stage)?;
        let at_first = self.before(plan, connection, &node).await?;
        let failed = witness.failed();
        let done = async {
            // Until it has joined, the store may still refuse it.
            log.joined().await;
            if let Some(novelty) = connection.novelty() {
                log.line(&novelty);
            }
            at_first.ended.iter().for_each(|it| log.say(it));
            plan.for_no_shell().for_each(|it| log.say(&it));
            at_first.remarks.iter().for_each(|it| log.line(it));
            if !self.until_done {
                std::future::pending::<()>().await;
            }
            until_done(plan, connection, log).await
        };
        let ended = match self.see_through(node, done, failed, log, cancel).await {
            Ok(ended) => ended,
            Err(error) => Err(refused(plan, connection, error).await?),
        };
        witness.flush();
        let closed = async {
            for pool in &children {
                pool.close().await;
            }
        };
        tokio::select! {
            biased;
            // They go with the node.
            () = cancel.at_once() => {}
            () = closed => {}
        }
        if matches!(ended, Ok(Exit::Failed)) {
            say_what_is_left(plan, connection, log).await;
        }
        ended
    }

    /// Rewinds the sources if that is asked for; what there is to say of them before they run.
    async fn before(&self, plan: &Plan, connection: &Connection, node: &Node) -> Result<AtFirst, Failure> {
        let mut at_first = AtFirst::default();
        if plan.sources.is_empty() {
            return Ok(at_first);
        }
        if self.feed.begins_anew() {
            connection.given(connection.operator.rewind(node).await)?;
        }
        if self.feed.reads_stdin() {
            let once =
                "lines of standard input are read once: if this process is killed, those not pushed yet are lost";
            at_first.remarks.push(once.to_owned());
        }
        let survey = connection.given(connection.operator.survey().await)?;
        let overview = Overview::of(&survey);
        at_first.ended.extend(plan.queues.iter().filter_map(|work| others_work(plan, &work.queue, &survey)));
        for source in &plan.sources {
            let name = &source.name;
            if let Some(known) = survey.sources.iter().find(|it| it.name == *name && it.ended) {
                let grown = if source.has_grown_since(&known.cursor) { ", and its file has grown since" } else { "" };
                at_first.ended.push(format!("source {name} has ended{grown}; --rewind starts it again"));
            }
            at_first.remarks.extend(elsewhere(&overview, name));
        }
        at_first.remarks.extend(plan.sources.iter().filter_map(super::source_feed::SourceFeed::next_due));
        Ok(at_first)
    }

    /// Sees the node to its end, and says how that was.
    async fn see_through(
        &self, node: Node, done: impl Future<Output = Exit>, mut failed: watch::Receiver<Option<Event>>, log: &Log,
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
                    // It was stopped before all was done.
                    let ended = if waits && self.until_done { Ok(Exit::Failed) } else { ended };
                    return ran.map(|()| ended);
                }
                Ok(failure) = failed.wait_for(Option::is_some), if waits && self.until_done => {
                    waits = false;
                    if let Some(failure) = &*failure {
                        ended = Err(for_good(failure));
                    }
                    cancel.drain();
                }
                exit = &mut done, if waits => {
                    waits = false;
                    ended = Ok(exit);
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

/// What there is to say when the node has joined.
#[derive(Default)]
struct AtFirst {
    /// Of sources that had ended before, and of queues that others use: to be heard also where nobody wants a log.
    ended: Vec<String>,
    remarks: Vec<String>,
}

/// Says what waits of what was to be done.
async fn say_what_is_left(plan: &Plan, connection: &Connection, log: &Log) {
    // A store that does not tell is not waited for: whoever stops wants to go.
    let Ok(Ok(survey)) = tokio::time::timeout(LAST_WORDS, connection.operator.survey()).await else { return };
    let concerned = survey.queues.iter().filter(|it| plan.queues.iter().any(|work| work.queue == it.queue));
    let left: u64 = concerned.map(|it| it.ready + it.delayed + it.in_flight).sum();
    let more = if plan.awaited.iter().any(|name| survey.sources.iter().any(|it| it.name == *name && !it.ended)) {
        ", and its source has not ended"
    } else {
        ""
    };
    let s = plural(left);
    log.say(&format!("stopped before all was done: {left} message{s} left{more}; run this again to go on"));
}

/// Waits until nothing is left to do; how that ended.
async fn until_done(plan: &Plan, connection: &Connection, log: &Log) -> Exit {
    let held_up = |queue: &Name, why: HeldUp| match why {
        HeldUp::Paused => log.say(&format!("queue {queue} is paused; `baton resume {queue}` lets it go on")),
        _ => log.say(&format!("nobody works for queue {queue}; start a node with a handler for it")),
    };
    let queues: Vec<Name> = plan.queues.iter().map(|work| work.queue.clone()).collect();
    let dead = connection.operator.until_done(&queues, &plan.awaited, held_up).await;
    let count = dead.iter().map(|(_, count)| count).sum();
    match dead.as_slice() {
        [] => {
            log.line("done: nothing is left");
            return Exit::Ok;
        }
        [(queue, _)] => {
            log.say(&format!("done, but {count} message{} failed; see `baton errors --queue {queue}`", plural(count)))
        }
        several => {
            let queues: Vec<String> = several.iter().map(|(queue, count)| format!("{queue} ({count})")).collect();
            let queues = queues.join(", ");
            log.say(&format!("done, but {count} messages failed in queues {queues}; see `baton errors`"));
        }
    }
    Exit::Dead
}

/// Why the store refuses the node, in the words of who described its sources.
async fn refused(plan: &Plan, connection: &Connection, error: NodeError) -> Result<Failure, Failure> {
    Ok(match error {
        NodeError::Store(StoreError::Refused(Refusal::DefinitionInUse { source_name, session })) => {
            let other = connection.given(connection.operator.whereabouts(session).await)?;
            let cause = format!("{other} offers source {source_name} with another definition");
            Failure::new(cause, "stop it first, or give this source another name (--source)")
        }
        NodeError::Store(StoreError::Refused(Refusal::Definition { source_name })) => {
            let survey = connection.given(connection.operator.survey().await)?;
            let known = survey.sources.iter().find(|it| it.name == source_name);
            let meant = plan.sources.iter().find(|it| it.name == source_name);
            let differs = match known.zip(meant).filter(|(known, meant)| known.queue != meant.queue) {
                Some((known, meant)) => format!("it feeds queue {}, not {}", known.queue, meant.queue),
                None => {
                    "other lines, or the same in another way (--lines, --lines-from, --follow, --json-lines)".to_owned()
                }
            };
            let cause = format!("source {source_name} is known with another definition: {differs}");
            Failure::new(cause, "give this one another name (--source), or start it over with --rewind")
        }
        error => return connection.given(Err(error)),
    })
}

/// That a program is about to run messages which are not of its source, or others those of its source, if that is so.
fn others_work(plan: &Plan, queue: &Name, survey: &Survey) -> Option<String> {
    let is_new = |name: &Name| !survey.sources.iter().any(|it| it.name == *name && !it.cursor.is_empty());
    let mut feeds = plan.sources.iter().filter(|it| it.queue == *queue);
    if !plan.run_by_programs().contains(queue) || !feeds.any(|it| is_new(&it.name)) {
        return None;
    }
    let own = "--queue NAME gives these lines a queue of their own";
    let books = survey.queues.iter().find(|it| it.queue == *queue)?;
    let left = books.ready + books.delayed + books.in_flight;
    let others = survey.sessions.iter().filter(|it| it.kind == Kind::Node && it.queues.contains(queue)).count();
    match (left, others) {
        (0, 0) => None,
        (_, 0) => Some(format!("queue {queue} has {left} message{} of others, which are run too; {own}", plural(left))),
        _ => {
            let s = plural(others as u64);
            Some(format!("{others} other node{s} run messages of queue {queue}, by what they were told; {own}"))
        }
    }
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
