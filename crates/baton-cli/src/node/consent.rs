//! Whether a run may take the messages that others left in its queue.
//!
//! A program that was meant for the lines of one source may do harm to other messages. So a new source and a handler of
//! its own do not begin on a queue in which messages of others wait, unless a person agrees.

use std::{
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    sync::mpsc::{self, RecvTimeoutError},
    time::Duration,
};

use baton::{Name, Shutdown, store::Survey};

use super::{Log, Plan};
use crate::{exit::Failure, output::plural};

/// How often a question that waits for its answer looks whether the process is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Refuses a run over the messages of others; what is said where it goes on with them.
pub(super) fn to_share(
    plan: &Plan, is_agreed: bool, survey: &Survey, log: &Log, shutdown: &Shutdown,
) -> Result<Vec<String>, Failure> {
    let mut remarks = Vec::new();
    for queue in plan.newly_fed(survey) {
        let Some(left) = waiting(queue, survey) else { continue };
        let waiting = format!("queue {queue} holds {left} message{} that this run did not push", plural(left));
        if !is_agreed && !asks(&format!("{waiting}. Run them too?"), log, shutdown)? {
            return Err(Failure::new(
                format!("{waiting} and would run too"),
                format!("add --share-queue to run them, take another --queue, or remove them: baton purge {queue}"),
            ));
        }
        remarks.push(format!("{waiting} and runs too"));
    }
    Ok(remarks)
}

/// How many messages wait in a queue or are under way, if there are some.
pub(super) fn waiting(queue: &Name, survey: &Survey) -> Option<u64> {
    let books = survey.queues.iter().find(|it| it.queue == *queue)?;
    Some(books.ready + books.delayed + books.in_flight).filter(|left| *left > 0)
}

/// Asks the person at the terminal, if there is one; without an answer it is no.
fn asks(question: &str, log: &Log, shutdown: &Shutdown) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(false);
    }
    let (answer, answered) = mpsc::channel();
    // The panel is free while the answer is awaited: a signal is logged before it is obeyed.
    log.beside_the_panel(|| write!(io::stderr().lock(), "{question} [y/N] ").ok());
    // A thread of its own: a process that is told to stop does not wait for the answer.
    std::thread::spawn(move || {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).ok();
        // Without a listener the process is about to end.
        answer.send(line).ok();
    });
    loop {
        match answered.recv_timeout(LOOK_EVERY) {
            Ok(line) => {
                if !line.ends_with('\n') {
                    log.beside_the_panel(|| writeln!(io::stderr().lock()).ok());
                }
                return Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"));
            }
            Err(RecvTimeoutError::Timeout) if shutdown.asked().is_none() => {}
            Err(_) => return Err(Failure::new("stopped before the question was answered", "run this again")),
        }
    }
}
