//! `baton push`: messages from the command line, from files and from standard input.

use std::{ffi::OsString, io, path::PathBuf, sync::Arc, time::Duration};

use baton::{
    Key, Name,
    admin::{Account, Admin, BadBody, Import, ImportCause, ImportError, Inputs, Note, NoteEar, Overview, Receipt},
    settings::quantity,
    store::StoreUrl,
};

use serde_json::value::RawValue;
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

use crate::{
    arguments::queue_before_bodies,
    attendance::{self, Attendance, NOTHING_YET},
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    interrupt,
    output::{Output, plural, remark},
    progress::Progress,
    settings::Settings,
};

/// Push messages to a queue: each argument after it is a JSON body, `-` reads one body a line from standard input
///
/// Blank lines are skipped. A body that is not JSON, or is over the limit, ends the push with exit code 1 and its
/// line number. While the queue is full or the store has no room, push waits, for --wait seconds at most.
///
/// With --resume NAME the store notes under that name how much of the input it has, in the same step as it takes the
/// messages. Run the same command again after any interruption, and every line exists exactly once. Another input under
/// the same name is refused, and so is another queue. Ctrl-C prints how many lines are stored.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton push messages 1 '\"two\"' '{\"n\":3}'
  seq 1000000 | baton push messages -
  baton push mail '{\"order\":7}' --once order-7
  baton push resize --file pictures.ndjson --resume pictures-2031-06")]
pub(crate) struct Push {
    /// The queue to push to
    #[arg(value_name = "QUEUE", value_parser = queue_before_bodies)]
    queue: Name,
    /// JSON bodies; `-` for lines from standard input
    #[arg(value_name = "BODY", allow_negative_numbers = true)]
    bodies: Vec<OsString>,
    /// Push the lines of this file; may be given several times
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,
    /// Push each line exactly once, however often the command is run under this name. A name stands for one input into
    /// one queue, and does not expire
    #[arg(long, value_name = "NAME")]
    resume: Option<Key>,
    /// Push one body under this idempotency key: the message exists once, however often this runs within --key-lifetime
    #[arg(long, value_name = "KEY", conflicts_with_all = ["resume", "file"])]
    once: Option<Key>,
    /// The largest body taken, up to 32MiB
    #[arg(long, value_name = "BYTES", default_value = "1MiB", value_parser = quantity::body_bytes)]
    max_body: usize,
    /// Wait while the queue holds more than this [default: 4GiB]
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes)]
    max_queue_bytes: Option<u64>,
    /// Push to the queue even if a baton.toml describes others and nothing knows this one
    #[arg(long)]
    create: bool,
    /// Print one JSON object: {"pushed","duplicates","first_id","last_id","queue"}
    #[arg(long)]
    json: bool,
}

impl Push {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        if let Some(key) = &self.once {
            return self.run_once(key, settings).await;
        }
        let (inputs, url) = (open(self.bodies, &self.file, self.max_body)?, &settings.store.value);
        let connection = Connection::open(settings, Missing::Create, self.max_queue_bytes)?;
        if !self.create {
            attendance::check(&self.queue, &connection, settings).await?;
        }
        if *url == StoreUrl::Memory {
            remark("a store in memory ends with this command; name another with --store to keep the messages");
        }
        let (keyed, progress) = (self.resume.is_some(), Progress::new(inputs.total_bytes()));
        let queue = self.queue.clone();
        let import = Import { queue: self.queue, key: self.resume, max_body: self.max_body };
        let failed = |error| failure(&error, keyed, url);
        // Before the push, which makes the queue. A store that does not answer is no failure yet: the push says why, and
        // its time to wait has begun.
        let (looking, wait) = (connection.admin.clone().wait(Duration::ZERO), settings.wait.value);
        let (is_new, began) = (connection.is_new(), Instant::now());
        let overview = look(&connection, &looking, wait).await;
        let spent = if overview.is_none() { began.elapsed() } else { Duration::ZERO };
        let waits = Arc::new(Notify::new());
        let admin = connection.admin.clone().wait(wait.saturating_sub(spent)).reporting_to(hear(&waits));
        // Until it has begun, a signal ends the command as it does by default.
        let importer = admin.importer(import).await.map_err(failed)?;
        let attendance = overview.map(|it| Attendance::beside(&queue, &it, &attendance::described(settings)));
        // Of a store that is new itself, only a name that is like another one is worth a word.
        let attendance = attendance.filter(|it| !is_new || it.is_doubtful());
        let novel = attendance.and_then(|it| remark_on(&it, &queue, url, self.json));
        let show = |it: baton::admin::Progress| progress.show(it.bytes, it.messages);
        let interrupted = interrupt::listen(interrupt::LAST_WORDS)?;
        let pushing = importer.push(inputs, &interrupted, show);
        tokio::pin!(pushing);
        let receipt = tokio::select! {
            biased;
            receipt = &mut pushing => receipt,
            () = explain(&connection, &queue, &waits), if !self.json => pushing.await,
        };
        progress.end();
        if receipt.as_ref().is_ok_and(|it| it.pushed > 0) {
            connection.novelty().iter().chain(&novel).for_each(|it| remark(it));
        }
        let receipt = receipt.map_err(failed)?;
        Output::print(self.json, &receipt, |output| show_receipt(output, &receipt))
            .map_err(|failure| unseen(&failure, &receipt))
    }
}

impl Push {
    async fn run_once(&self, key: &Key, settings: &Settings) -> Result<Exit, Failure> {
        let body = match self.bodies.as_slice() {
            [body] if body != "-" => body.as_encoded_bytes().trim_ascii(),
            _ => {
                let next = "give one body as an argument; --resume NAME pushes each line of a long input once";
                return Err(Failure::usage("--once KEY stands for one message", next));
            }
        };
        BadBody::check(body, self.max_body)
            .map_err(|why| Failure::new(format!("argument 1 {why}{}", hint(&why)), "nothing was pushed"))?;
        let body: &RawValue = serde_json::from_slice(body)
            .map_err(|error| Failure::new(format!("argument 1 is not JSON: {error}"), "nothing was pushed"))?;
        let connection = Connection::open(settings, Missing::Create, self.max_queue_bytes)?;
        if !self.create {
            attendance::check(&self.queue, &connection, settings).await?;
        }
        let looking = connection.admin.clone().wait(Duration::ZERO);
        let overview = look(&connection, &looking, settings.wait.value).await.filter(|_| !connection.is_new());
        let receipt = connection.stored(connection.admin.push_once(&self.queue, key, body).await)?;
        let attendance = overview.map(|it| Attendance::beside(&self.queue, &it, &attendance::described(settings)));
        let said = attendance.and_then(|it| remark_on(&it, &self.queue, &settings.store.value, self.json));
        connection.novelty().iter().chain(&said).for_each(|it| remark(it));
        connection.admin.leave().await;
        Output::print(self.json, &receipt, |output| match receipt.pushed {
            0 => output.line(&format!("it was pushed before to {}{}", receipt.queue, ids(&receipt))),
            _ => show_receipt(output, &receipt),
        })
    }
}

/// The fleet before a push; nothing if the store does not answer soon.
async fn look(connection: &Connection, looking: &Admin, wait: Duration) -> Option<Overview> {
    match connection.is_new() {
        true => Some(NOTHING_YET),
        false => timeout((wait / 2).max(SHORTEST_LOOK), looking.overview()).await.ok().and_then(Result::ok),
    }
}

/// What a person is to know of the queue pushed to; a program that reads JSON knows which queues are worked for.
fn remark_on(attendance: &Attendance, queue: &Name, store: &StoreUrl, json: bool) -> Option<String> {
    attendance.novelty(queue, store).or_else(|| attendance.unworked(queue, store).filter(|_| !json))
}

/// Passes notes on, and notifies of the first wait.
fn hear(waits: &Arc<Notify>) -> NoteEar {
    let waits = waits.clone();
    Arc::new(move |note| {
        remark(&note.to_string());
        if matches!(note, Note::Waiting { .. }) {
            waits.notify_one();
        }
    })
}

/// Says once, of a push that has waited for a second, why its queue does not become emptier.
async fn explain(connection: &Connection, queue: &Name, waits: &Notify) {
    waits.notified().await;
    tokio::time::sleep(UNHEARD).await;
    let looking = connection.admin.clone().wait(Duration::ZERO);
    // A store that does not answer is what the push waits for.
    let Ok(overview) = looking.overview().await else { return };
    let attendance = Attendance::of(queue, &overview);
    if let Some(why) = attendance.pause(queue).or_else(|| attendance.absence(queue)) {
        remark(&why);
    }
}

/// After how long a wait is explained.
const UNHEARD: Duration = Duration::from_secs(1);

/// The shortest time that the look before the push may take.
const SHORTEST_LOOK: Duration = Duration::from_millis(300);

/// Opens everything and checks the arguments, before anything is sent.
fn open(bodies: Vec<OsString>, files: &[PathBuf], max_body: usize) -> Result<Inputs, Failure> {
    const NOTHING: &str = "nothing was pushed";
    let unreadable = |name: &str, error: &io::Error| Failure::new(format!("cannot read {name}: {error}"), NOTHING);
    if bodies.is_empty() && files.is_empty() {
        let next = "give JSON bodies, - for standard input, or --file PATH";
        return Err(Failure::usage("there is nothing to push", next));
    }
    if bodies.iter().filter(|body| *body == "-").count() > 1 {
        return Err(Failure::usage("standard input is named twice", "give - once"));
    }
    let mut inputs = Inputs::new();
    for (number, body) in (1..).zip(bodies) {
        if body == "-" {
            inputs.standard_input().map_err(|error| unreadable("standard input", &error))?;
            continue;
        }
        let body = body.into_encoded_bytes();
        if let Err(why) = BadBody::check(body.trim_ascii(), max_body) {
            return Err(Failure::new(format!("argument {number} {why}{}", hint(&why)), NOTHING));
        }
        inputs.body(body);
    }
    for path in files {
        inputs.file(path).map_err(|error| unreadable(&path.display().to_string(), &error))?;
    }
    Ok(inputs)
}

/// What decides whether such a body is taken: a flag, or how it is written.
fn hint(why: &BadBody) -> &'static str {
    match why {
        BadBody::TooLarge { .. } => " (--max-body)",
        BadBody::NotJson { what, .. } if what.starts_with("key must be") => {
            r#" (keys stand in double quotes: '{"a":1}')"#
        }
        BadBody::NotJson { .. } => r#" (a text stands in quotes: '"hello"')"#,
        _ => "",
    }
}

/// The same of a line, which may be one of plain text.
fn hint_of_a_line(why: &BadBody) -> &'static str {
    match why {
        BadBody::NotJson { what, .. } if !what.starts_with("key must be") => {
            r#" (a text stands in quotes, as "hello"; `baton up --lines FILE` takes plain lines as texts)"#
        }
        _ => hint(why),
    }
}

/// Why a push ended early, what is stored, and how to go on.
fn failure(error: &ImportError, keyed: bool, url: &StoreUrl) -> Failure {
    const ON: &str = "run the same command again to go on from there";
    let (cause, told) = (&error.cause, error.account.as_ref().map(Account::to_string).unwrap_or_default());
    let again = match &error.account {
        _ if keyed => "run the command again",
        Some(account) if account.stored > 0 => "push the rest",
        _ => "push again",
    };
    let failure = match cause {
        ImportCause::Bad { why, .. } => {
            return Failure::new(format!("{cause}{}; {told}", hint_of_a_line(why)), format!("correct it and {again}"));
        }
        ImportCause::Unreadable { .. } => {
            return Failure::new(format!("{cause}; {told}"), format!("make it readable and {again}"));
        }
        ImportCause::OtherInput { .. } => return nothing_stored(cause, "take another name"),
        ImportCause::OtherQueue { .. } => return nothing_stored(cause, "take another name, or push to that queue"),
        ImportCause::TooShort { .. } => {
            return nothing_stored(cause, "push the whole input again, or take another name for other input");
        }
        ImportCause::BrokenOff => return Failure::new(format!("{cause}; {told}"), again),
        ImportCause::Interrupted { unanswered: false } if keyed => {
            return Failure::new(format!("{cause}; {told}"), ON);
        }
        ImportCause::Interrupted { .. } if keyed => Failure::new(cause.to_string(), "wait for the store to answer"),
        ImportCause::Interrupted { .. } => Failure::new(cause.to_string(), "leave out what is stored"),
        ImportCause::Full { .. } => Failure::new(cause.to_string(), "start a node, or raise --max-queue-bytes"),
        ImportCause::Destroyed { .. } => Failure::new(cause.to_string(), "push the whole input again"),
        ImportCause::KeyInUse { .. } => Failure::new(cause.to_string(), "wait for it to end"),
        ImportCause::Thread(_) => Failure::new(cause.to_string(), "free some memory or threads"),
        ImportCause::Store(error) => Failure::of_store(error, url),
        _ => Failure::new(cause.to_string(), "run the command again"),
    };
    match &error.account {
        None => failure,
        Some(_) if keyed => failure.after(&told, ON),
        Some(account) if account.unknown.is_empty() => failure.after(&told, again),
        Some(_) => {
            let next = "push with --resume to have every line exactly once, whatever happens";
            let mut failure = failure.after(&told, next);
            failure.exit = Exit::Failed;
            failure
        }
    }
}

fn nothing_stored(cause: &ImportCause, next: &str) -> Failure {
    Failure::new(format!("{cause}; nothing was stored"), next)
}

/// The messages are stored, and standard output could not be written.
fn unseen(failure: &Failure, receipt: &Receipt) -> Failure {
    let (count, ids) = (receipt.pushed, ids(receipt));
    let are = if count == 1 { "is" } else { "are" };
    let stored = format!("{count} message{} {are} stored{ids}", plural(count));
    Failure::new(format!("{}; {stored}", failure.cause), "do not push again")
}

fn ids(receipt: &Receipt) -> String {
    match (receipt.first_id, receipt.last_id) {
        (Some(first), Some(last)) if first == last => format!(" (id {first})"),
        (Some(first), Some(last)) => format!(" (ids {first} to {last})"),
        _ => String::new(),
    }
}

fn show_receipt(output: &mut Output, receipt: &Receipt) -> Result<(), Failure> {
    let ids = ids(receipt);
    let skipped = match receipt.duplicates {
        0 => String::new(),
        count => format!(", {count} line{} had been pushed before", plural(count)),
    };
    let count = receipt.pushed;
    output.line(&format!("pushed {count} message{} to {}{ids}{skipped}", plural(count), receipt.queue))
}

#[cfg(test)]
mod tests {
    use baton::store::StoreError;

    use super::*;

    #[test]
    fn that_nothing_was_stored_is_said_once() {
        let why = "Redis at h:1 is at its maxmemory: raise it or let workers catch up".to_owned();
        let error = ImportError { cause: StoreError::NoRoom(why).into(), account: Some(Account::default()) };
        let told = failure(&error, false, &StoreUrl::Memory).to_string();
        let line = "the store takes nothing new: Redis at h:1 is at its maxmemory; nothing was stored; raise it or let workers \
                    catch up, then push again";
        assert_eq!(told, line);
    }
}
