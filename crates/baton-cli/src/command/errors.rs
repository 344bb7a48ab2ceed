//! `baton errors`: lists failed messages; removes or requeues them if so asked.

use std::{collections::BTreeSet, time::Duration};

use baton::{
    MessageId, Name,
    admin::{Causes, FailedMessage, HandedOver, Taken, Wanted},
    store::Disposal,
};

use crate::{
    attendance::Attendance,
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    interrupt,
    output::{Ink, Output, moment, plural, remark, tame},
    settings::Settings,
};

/// How long the store may take to answer after Ctrl-C.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// List the messages that failed for good; --remove removes them, --requeue tries them again
///
/// --remove removes a message only after it was printed. If the command is cut off, the next one may print some again, and
/// none is lost. `baton --getErrors` is the same as `baton errors --remove`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton errors --limit 10
  baton errors --group
  baton errors --match 'timed out after # ms' --requeue
  baton errors resize --id 17 --id 21 --requeue
  baton errors --remove --json >> errors.ndjson

JSON, one line for each failed message: {\"id\",\"queue\",\"body\",\"error\",\"last_error\",\"attempts\",\"crashes\",\"node\",\"at\"}; \
`at` is in milliseconds since 1970; `last_error` is why \
the attempt before failed, if the message was retried.
With --group one object: {\"failed\",\"groups\":[{\"cause\",\"count\",\"queue\",\"example_id\"}]}")]
pub(crate) struct Errors {
    /// Only this queue; one that the fleet does not have is refused, or waited for with --follow
    #[arg(value_name = "QUEUE")]
    queue: Option<Name>,
    /// Print them and remove what was printed
    #[arg(long)]
    remove: bool,
    /// Only look, as it is without a flag
    #[arg(long, hide = true, conflicts_with_all = ["remove", "requeue"])]
    peek: bool,
    /// Go on with new failures until interrupted
    #[arg(long)]
    follow: bool,
    /// Print them and put them back into their queues
    #[arg(long, conflicts_with = "remove")]
    requeue: bool,
    /// At most this many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    limit: Option<u64>,
    /// Only the message with this id; may be given several times. Name the queue if several have failed messages
    #[arg(long, value_name = "N")]
    id: Vec<u64>,
    /// Only messages whose error contains this text; `#` stands for any number, as --group prints it
    #[arg(long = "match", value_name = "TEXT")]
    containing: Option<String>,
    /// Count the messages by cause, and remove nothing
    #[arg(long, conflicts_with_all = ["follow", "requeue", "remove"])]
    group: bool,
    /// Print JSON, one line for each message
    #[arg(long)]
    json: bool,
}

impl Errors {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        if self.remove && !Output::is_there() {
            let next = "give it a file or a pipe, or > /dev/null to discard them";
            return Err(Failure::new(
                "standard output is closed: messages that were not printed are not removed",
                next,
            ));
        }
        // One that is followed may come later. A program reads a line as an error: that there is no fleet is not one.
        let connection = match self.follow {
            true => Connection::open(settings, Missing::Refuse, None)?,
            false => Connection::to_fleet(settings, self.json && self.group).await?,
        };
        let admin = &connection.admin;
        let ids = self.id.into_iter().map(MessageId).collect();
        let wanted = Wanted { queue: self.queue, ids, limit: self.limit, containing: self.containing };
        if self.group {
            let causes = connection.given(admin.causes(&wanted).await)?;
            return Output::print(self.json, &causes, |output| show_causes(output, &causes));
        }
        let disposal = match (self.remove, self.requeue) {
            (true, _) => Some(Disposal::Remove),
            (_, true) => Some(Disposal::Requeue),
            _ => None,
        };
        let follow = if self.follow { Some(interrupt::listen(interrupt::LAST_WORDS)?) } else { None };
        let (mut output, mut failure, mut queues) = (Output::new(), None, BTreeSet::new());
        let print = |page: &[FailedMessage]| {
            // Only what the reader has taken may be removed.
            let written = page.iter().try_for_each(|error| write(&mut output, error, self.json));
            queues.extend(page.iter().map(|it| it.queue.clone()));
            failure = written.and_then(|()| output.flush()).err();
            if failure.is_some() || output.is_closed() { Taken::Gone } else { Taken::Yes }
        };
        let handed_over = async { Some(admin.hand_over(&wanted, disposal, follow.as_ref(), print).await) };
        let overdue = async {
            match &follow {
                Some(shutdown) => shutdown.any().await,
                None => std::future::pending().await,
            }
            tokio::time::sleep(LAST_WORDS).await;
            None
        };
        let handed_over = tokio::select! {
            handed_over = handed_over => handed_over,
            overdue = overdue => overdue,
        };
        if let Some(failure) = failure {
            return Err(failure);
        }
        let Some(handed_over) = handed_over else {
            let next = "run it again; some may be printed once more";
            return Err(Failure::new("interrupted, and the store does not answer", next));
        };
        let HandedOver { count, bodiless, total, missed, gone } = connection.given(handed_over)?;
        // A reader who has gone has seen enough.
        let told = !self.json && !self.follow && !gone;
        let none = count + bodiless == 0;
        match disposal {
            // A command that was to change something says that it changed nothing.
            _ if none && (told || disposal == Some(Disposal::Requeue)) => tell_none(total, missed),
            _ => conclude(disposal, count, total, missed, told),
        }
        if disposal == Some(Disposal::Requeue) && bodiless > 0 {
            let s = plural(bodiless);
            remark(&format!(
                "{bodiless} message{s} cannot be requeued: the body is missing; --remove removes what it prints"
            ));
        }
        if disposal == Some(Disposal::Requeue) && count > 0 && !self.json {
            say_unworked(&connection, settings, &queues).await;
        }
        Ok(Exit::Ok)
    }
}

/// Says of each queue that no node works for what was put back into it, if that is so.
async fn say_unworked(connection: &Connection, settings: &Settings, queues: &BTreeSet<Name>) {
    // It is a remark: a store that does not answer now has requeued them all the same.
    let Ok(overview) = connection.admin.clone().wait(Duration::ZERO).overview().await else { return };
    // A queue in which messages failed has its right name.
    let said = queues.iter().filter_map(|it| {
        Attendance::beside(it, &overview, std::slice::from_ref(it)).unworked(it, &settings.store.value)
    });
    said.for_each(|it| remark(&it));
}

/// Tells what became of them, beside what was printed.
fn conclude(disposal: Option<Disposal>, count: u64, total: u64, missed: u64, told: bool) {
    // So many errors, and of how many if that is not all.
    let share = match total > count {
        true => format!("{count} of {total} errors"),
        false => format!("{count} error{}", plural(count)),
    };
    let others = match missed {
        0 => String::new(),
        missed => format!("; another process has removed or requeued {missed} meanwhile"),
    };
    match disposal {
        Some(Disposal::Requeue) => remark(&format!("requeued {count} message{}{others}", plural(count))),
        _ if !told => {}
        Some(Disposal::Remove) => remark(&format!("removed {share}{others}")),
        None => remark(&format!("{share}; --remove removes what it prints, --requeue tries it again")),
    }
}

/// Tells that nothing was found.
fn tell_none(total: u64, missed: u64) {
    match (total.saturating_sub(missed), missed) {
        (0, 0) => remark("no errors"),
        (1, 0) => remark("the only error does not match"),
        (errors, 0) => remark(&format!("none of {errors} errors matches")),
        (0, 1) => remark("there was 1 error, and another process has removed or requeued it meanwhile"),
        (0, missed) => {
            remark(&format!("there were {missed} errors, and another process has removed or requeued them meanwhile"));
        }
        (errors, missed) => remark(&format!(
            "none of {errors} error{} matches; another process has removed or requeued {missed} meanwhile",
            plural(errors)
        )),
    }
}

fn show_causes(output: &mut Output, causes: &Causes) -> Result<(), Failure> {
    if causes.groups.is_empty() {
        tell_none(causes.total, 0);
        return Ok(());
    }
    let rows = causes.groups.iter().map(|it| {
        let (count, queue) = (it.count.to_string(), it.queue.to_string());
        vec![count, queue, it.example_id.to_string(), it.cause.clone()]
    });
    output.table(&["count", "queue", "example", "cause"], &rows.collect::<Vec<_>>())
}

/// One error, for a person or for a program.
fn write(output: &mut Output, it: &FailedMessage, json: bool) -> Result<(), Failure> {
    if json {
        return output.json(it);
    }
    let head = format!("{}/{}", it.queue, it.id);
    let crashes = if it.crashes == 1 { "" } else { "es" };
    let tries = format!("{} attempt{}, {} crash{crashes}", it.attempts, plural(it.attempts.into()), it.crashes);
    let about = format!("{}  {}  {tries}", moment(it.at), tame(&it.node));
    output.line(&format!("{}  {}", output.paint(Ink::Red, &head), output.paint(Ink::Faint, &about)))?;
    write_text(output, "error:", &it.error)?;
    if let Some(before) = it.last_error.as_ref().filter(|before| **before != it.error) {
        write_text(output, "before:", before)?;
    }
    let body = if it.body.is_empty() { "(missing)".into() } else { String::from_utf8_lossy(&it.body) };
    output.line(&format!("  body:  {}", tame(&body)))
}

/// A text of several lines behind what it is.
fn write_text(output: &mut Output, what: &str, text: &str) -> Result<(), Failure> {
    let width = what.len();
    for (number, line) in text.lines().enumerate() {
        output.line(&format!("  {:width$} {}", if number == 0 { what } else { "" }, tame(line)))?;
    }
    Ok(())
}
