//! A node from its start to its end, and the messages about it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use baton::{
    Event, Name, Node, NodeError, Shutdown,
    admin::{HeldUp, NodeState, Overview},
    builtin::Exec,
    store::{Kind, Refusal, SourceView, StoreError, Survey},
};
use tokio::sync::watch;

use super::{
    Log, NodeArguments, Plan, consent,
    plan::LeftOut,
    program::Stage,
    source_feed::{AfterEnd, Pull, SourceFeed},
    witness::Witness,
};
use crate::{
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    interrupt::unless,
    output::{plural, tame},
    settings::Settings,
};

/// How long, over its lease, a node that must stop at once may take to hand back what it holds.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How often it is said again that the store has no room.
const REMIND_EVERY: Duration = Duration::from_secs(600);
/// How often, and how many times, a run looks whether another one began on its queue at the same moment.
const COMPANY_LOOK_EVERY: Duration = Duration::from_secs(1);
const COMPANY_LOOKS: u32 = 5;
/// How a run that was stopped goes on.
const AGAIN: &str = "; run this again to go on";

impl NodeArguments {
    /// What to do about a store that is missing: a run that only works off what is there makes none.
    pub(crate) fn missing(&self, plan: &Plan) -> Missing {
        if self.works_off_what_is_there(plan) { Missing::Refuse } else { Missing::Create }
    }

    /// Whether it ends when its queues are empty, and neither a source nor a file stands for their names.
    fn works_off_what_is_there(&self, plan: &Plan) -> bool {
        self.until_done && !plan.is_described && plan.sources.is_empty() && plan.awaited.is_empty()
    }

    /// Refuses such a run over a fleet or queue that is not there, before anything is stored: the name is probably mistyped.
    pub(crate) async fn check_queues(
        &self, plan: &Plan, connection: &Connection, settings: &Settings,
    ) -> Result<(), Failure> {
        if !self.works_off_what_is_there(plan) {
            return Ok(());
        }
        if !connection.given(connection.admin.exists().await)? {
            return Err(connection.no_fleet(settings, "").await);
        }
        let survey = connection.given(connection.admin.survey().await)?;
        for queue in plan.queues.iter().map(|it| &it.queue) {
            let is_fed = survey.sources.iter().any(|it| it.queue == *queue);
            // A fed queue may have no message yet.
            if !is_fed {
                connection.given(connection.admin.queue(queue).await)?;
            }
        }
        Ok(())
    }

    /// What had failed before this run. Read before the first process of the run works.
    pub(crate) async fn failed_before(&self, plan: &Plan, connection: &Connection) -> Result<FailedBefore, Failure> {
        if !self.until_done {
            return Ok(FailedBefore::default());
        }
        connection.given(connection.admin.newest_errors(&plan.to_be_emptied()).await).map(FailedBefore)
    }

    /// Runs until it is asked to stop, or is done if it is to end then.
    pub(crate) async fn run(
        &self, plan: &Plan, connection: &Connection, before: &FailedBefore, log: &Arc<Log>, shutdown: &Shutdown,
    ) -> Result<Exit, Failure> {
        let witness = Arc::new(Witness::new(log, self.journal.as_deref())?);
        let stage = Stage { log, shutdown, prints: self.until_done };
        let left_out = plan.left_out();
        let (node, children) = plan.node(connection, &self.work, &witness, &stage, &left_out)?;
        let at_first = async {
            let mut at_first = self.before(plan, connection, &node, log, shutdown).await?;
            at_first.ended.extend(self.told_of(left_out, connection).await?);
            Ok::<_, Failure>(at_first)
        };
        let Some(at_first) = unless(shutdown, at_first).await.transpose()? else {
            return Ok(if self.until_done { Exit::Failed } else { Exit::Ok });
        };
        let failed = witness.failed();
        children.iter().for_each(Exec::warm_up);
        let done = async {
            // Until it has joined, the store may still refuse it.
            log.joined().await;
            if let Some(novelty) = connection.novelty() {
                log.line(&novelty);
            }
            at_first.ended.iter().for_each(|it| log.say(it));
            plan.doubts().for_each(|it| log.say(it));
            at_first.remarks.iter().for_each(|it| log.line(it));
            if !self.until_done {
                return remark_on_company(plan, at_first.alone.clone(), connection, log).await;
            }
            tokio::select! {
                exit = until_done(plan, connection, before, log) => exit,
                exit = remind_of_room(witness.waits(), log) => exit,
                exit = remark_on_company(plan, at_first.alone.clone(), connection, log) => exit,
            }
        };
        let ended = match self.see_through(node, done, failed, log, shutdown).await {
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
            () = shutdown.at_once() => {}
            () = closed => {}
        }
        for source in plan.sources.iter().filter(|it| matches!(it.pull, Pull::Stdin { .. })) {
            // What it read is nowhere else, so nobody can go on with it; where it stays known it does no harm.
            tokio::time::timeout(LAST_WORDS, connection.admin.remove_source(&source.name)).await.ok();
        }
        // Its lines would be pushed once more.
        let next = if self.feed.reads_stdin() { "; run this without --lines to go on with those" } else { AGAIN };
        if matches!(ended, Ok(Exit::Failed)) {
            say_what_is_left(plan, next, connection, log).await;
        } else if ended.is_err() && witness.failed().borrow().is_some() {
            // What to do about the source is said with its failure.
            say_what_is_left(plan, "", connection, log).await;
        }
        ended
    }

    /// Asks for consent, then rewinds or reopens sources; returns the remarks about them.
    async fn before(
        &self, plan: &Plan, connection: &Connection, node: &Node, log: &Log, shutdown: &Shutdown,
    ) -> Result<AtFirst, Failure> {
        let mut at_first = AtFirst::default();
        if plan.sources.is_empty() {
            return Ok(at_first);
        }
        let mut survey = connection.given(connection.admin.survey().await)?;
        // Before anything is changed.
        at_first.ended = consent::to_share(plan, self.feed.share_queue, &survey, log, shutdown)?;
        if self.feed.begins_anew() {
            connection.given(connection.admin.rewind(node).await)?;
            survey = connection.given(connection.admin.survey().await)?;
        }
        if self.feed.reads_stdin() {
            let once =
                "lines of standard input are read once: if this process is killed, those not pushed yet are lost";
            at_first.remarks.push(once.to_owned());
        }
        let overview = Overview::of(&survey);
        let programs = plan.run_by_programs();
        let shared = plan.newly_fed(&survey).filter(|queue| programs.contains(queue));
        for queue in shared {
            match others_at_work(queue, &survey) {
                Some(said) => at_first.ended.push(said),
                None => at_first.alone.push(queue.clone()),
            }
        }
        for source in &plan.sources {
            let name = &source.name;
            if let Some(known) = survey.sources.iter().find(|it| it.name == *name && it.ended) {
                let waiting = consent::waiting(&source.queue, &survey).filter(|_| plan.runs(&source.queue));
                let said = match source.after_its_end(&known.cursor, waiting).await {
                    AfterEnd::More(said) => {
                        connection.given(connection.admin.reopen_source(name).await)?;
                        said
                    }
                    AfterEnd::Over(said) => {
                        Some(said.unwrap_or_else(|| format!("source {name} has ended; --rewind starts it again")))
                    }
                };
                at_first.ended.extend(said);
            }
            at_first.remarks.extend(elsewhere(&overview, name));
        }
        at_first.remarks.extend(plan.sources.iter().filter_map(SourceFeed::next_due));
        if self.until_done {
            let endless = plan.sources.iter().filter(|it| matches!(it.pull, Pull::Cron { .. }) && it.count.is_none());
            let said =
                |it: &SourceFeed| format!("source {} follows a calendar, and this run waits for its end too", it.name);
            at_first.remarks.extend(endless.map(said));
        }
        Ok(at_first)
    }

    /// What is said of sources that cannot be read here. One that is waited for must be, unless it has ended.
    async fn told_of(&self, left_out: Vec<LeftOut>, connection: &Connection) -> Result<Vec<String>, Failure> {
        if left_out.is_empty() {
            return Ok(Vec::new());
        }
        let survey = connection.given(connection.admin.survey().await)?;
        let has_ended = |name: &Name| survey.sources.iter().any(|it| it.name == *name && it.ended);
        let mut told = Vec::new();
        for LeftOut { source, why } in left_out.into_iter().filter(|it| !has_ended(&it.source)) {
            if self.until_done {
                return Err(why.of(&format!("source {source}")));
            }
            told.push(format!("source {source} is left to other nodes until this one is started again: {}", why.cause));
        }
        Ok(told)
    }

    /// Sees the node to its end, and says how that was.
    async fn see_through(
        &self, node: Node, done: impl Future<Output = Exit>, mut failed: watch::Receiver<Option<Event>>, log: &Log,
        shutdown: &Shutdown,
    ) -> Result<Result<Exit, Failure>, NodeError> {
        let running = node.run(shutdown.clone());
        let stuck = async {
            shutdown.at_once().await;
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
                    shutdown.graceful();
                }
                exit = &mut done, if waits => {
                    waits = false;
                    ended = Ok(exit);
                    shutdown.graceful();
                }
                () = &mut stuck => {
                    log.line("left without notice: others take over when its lease has ended");
                    return Ok(ended);
                }
            }
        }
    }
}

/// The newest error of each queue when a run began: older ones are not its own.
#[derive(Debug, Default)]
pub(crate) struct FailedBefore(BTreeMap<Name, u64>);

impl FailedBefore {
    /// How many of a queue's errors are of this run. A store that does not tell leaves them all to it.
    async fn since(&self, queue: &Name, all: u64, connection: &Connection) -> u64 {
        let place = self.0.get(queue).copied().unwrap_or(0);
        connection.admin.failed_since(queue, place).await.map_or(all, |since| since.min(all))
    }
}

/// The remarks to make when the node has joined.
#[derive(Default)]
struct AtFirst {
    /// About sources that had ended before and queues that others use: shown also without a log.
    ended: Vec<String>,
    remarks: Vec<String>,
    /// Newly fed queues that no other node was at work on when it was looked.
    alone: Vec<Name>,
}

/// Says what waits of what was to be done.
async fn say_what_is_left(plan: &Plan, next: &str, connection: &Connection, log: &Log) {
    // A store that does not tell is not waited for: whoever stops wants to go.
    let Ok(Ok(survey)) = tokio::time::timeout(LAST_WORDS, connection.admin.survey()).await else { return };
    let queues = plan.to_be_emptied();
    let concerned = survey.queues.iter().filter(|it| queues.contains(&it.queue));
    let left: u64 = concerned.map(|it| it.ready + it.delayed + it.in_flight).sum();
    let more = if plan.awaited.iter().any(|name| survey.sources.iter().any(|it| it.name == *name && !it.ended)) {
        ", and its source has not ended"
    } else {
        ""
    };
    let s = plural(left);
    if left > 0 || !next.is_empty() {
        log.say(&format!("stopped before all was done: {left} message{s} left{more}{next}"));
    }
}

/// Waits until nothing is left to do; how that ended.
async fn until_done(plan: &Plan, connection: &Connection, before: &FailedBefore, log: &Log) -> Exit {
    let held_up = |queue: &Name, why: HeldUp| match why {
        HeldUp::Paused => log.say(&format!("queue {queue} is paused; `baton resume {queue}` lets it go on")),
        HeldUp::Delayed(due_in) => log.say(&format!(
            "queue {queue} waits: its next retry is due in {}; `baton status` shows what is left",
            longspan(due_in)
        )),
        _ => log.say(&format!("no node works for queue {queue}; start one with a handler for it")),
    };
    let all = connection.admin.until_done(&plan.to_be_emptied(), &plan.awaited, held_up).await;
    let (mut failed, mut older) = (Vec::new(), Vec::new());
    for (queue, all) in all {
        let since = before.since(&queue, all, connection).await;
        failed.extend((since > 0).then(|| (queue.clone(), since)));
        older.extend((all > since).then(|| (queue, all - since)));
    }
    if failed.is_empty() && older.is_empty() {
        log.line("done: nothing is left");
        return Exit::Ok;
    }
    let shown = if failed.is_empty() { &older } else { &failed };
    let see = match shown.as_slice() {
        [(queue, _)] => format!("see `baton errors {queue}`"),
        _ => "see `baton errors`".to_owned(),
    };
    if failed.is_empty() {
        log.say(&format!("done: nothing is left; {} before this run; {see}", counted(&older)));
        return Exit::Ok;
    }
    let older = match older.iter().map(|(_, count)| count).sum::<u64>() {
        0 => String::new(),
        count => format!(", and {count} before this run"),
    };
    log.say(&format!("done, but {}{older}; {see}", counted(&failed)));
    Exit::MessagesFailed
}

/// How many messages failed, and in which queues if these are several.
fn counted(failed: &[(Name, u64)]) -> String {
    let count = failed.iter().map(|(_, count)| count).sum();
    let queues: Vec<String> = failed.iter().map(|(queue, count)| format!("{queue} ({count})")).collect();
    let places = if queues.len() > 1 { format!(" in queues {}", queues.join(", ")) } else { String::new() };
    format!("{count} message{} failed{places}", plural(count))
}

/// Says that a source waits for room in the store: at once where nobody wants a log, and now and then while that lasts.
async fn remind_of_room(mut waits: watch::Receiver<Option<String>>, log: &Log) -> Exit {
    loop {
        let Ok(why) = waits.wait_for(Option::is_some).await.map(|why| why.clone().unwrap_or_default()) else {
            return std::future::pending().await;
        };
        if log.is_quiet() {
            log.say(&why);
        }
        while tokio::time::timeout(REMIND_EVERY, waits.wait_for(Option::is_none)).await.is_err() {
            log.say(&why);
        }
    }
}

/// Says once of each queue that another program feeds it too: one that began at the same moment was not there
/// yet when consent was asked for. Its source has another name; the processes of this run offer the same ones.
async fn remark_on_company(plan: &Plan, mut alone: Vec<Name>, connection: &Connection, log: &Log) -> Exit {
    let own = plan.source_names();
    for _ in 0..COMPANY_LOOKS {
        if alone.is_empty() {
            break;
        }
        // A store that does not answer is reported elsewhere.
        if let Ok(survey) = connection.admin.survey().await {
            alone.retain(|queue| {
                let feeds = |it: &&SourceView| it.queue == *queue && !own.contains(&it.name.as_str());
                let is_fed = survey.sources.iter().filter(feeds).any(|it| it.holder.is_some());
                if is_fed {
                    log.say(&format!(
                        "another program feeds queue {queue} too: each may run the messages of the other; give one of them \
                         another --queue"
                    ));
                }
                !is_fed
            });
        }
        tokio::time::sleep(COMPANY_LOOK_EVERY).await;
    }
    std::future::pending().await
}

/// A long time, for people.
fn longspan(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3_600),
    }
}

/// Why the store refuses the node, in the words of who described its sources.
async fn refused(plan: &Plan, connection: &Connection, error: NodeError) -> Result<Failure, Failure> {
    Ok(match error {
        NodeError::Store(StoreError::Refused(Refusal::DefinitionInUse { source_name, session })) => {
            let other = connection.given(connection.admin.whereabouts(session).await)?;
            let cause = format!("{other} offers source {source_name} with another definition");
            Failure::new(cause, "stop it first, or give this source another name (--source)")
        }
        NodeError::Store(StoreError::Refused(Refusal::Definition { source_name })) => {
            let survey = connection.given(connection.admin.survey().await)?;
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

/// A remark that other nodes run messages of the queue, if they do.
fn others_at_work(queue: &Name, survey: &Survey) -> Option<String> {
    match survey.sessions.iter().filter(|it| it.kind == Kind::Node && it.queues.contains(queue)).count() {
        0 => None,
        1 => Some(format!("another node runs messages of queue {queue} too, with settings of its own")),
        others => Some(format!("{others} other nodes run messages of queue {queue} too, with settings of their own")),
    }
}

/// A remark that another node runs the source, if one does: the settings of that node hold, such as its interval.
fn elsewhere(overview: &Overview, source: &Name) -> Option<String> {
    let holder = overview.sources.iter().find(|it| it.name == *source)?.holder?;
    let NodeState { host, pid, .. } = overview.nodes.iter().find(|node| node.session == holder)?;
    let other = format!("{}/{pid}", tame(host));
    Some(format!("node {other} runs source {source} with settings of its own; this node takes over when it leaves"))
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
