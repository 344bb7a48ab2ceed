//! The error registry as a person meets it: pages that are printed, flushed, and only then disposed of.

mod drain;
mod entry;
mod grouping;

use std::{collections::BTreeMap, time::Duration};

use baton::{
    message::Name,
    store::{Books, DeadMessage, Disposal, Peek, Survey, TakeSurvey},
};

use self::drain::Drain;
pub(crate) use self::grouping::group;
use crate::{
    connection::Connection,
    exit::Failure,
    interrupt::Interrupt,
    output::{Output, plural, remark},
    queues,
};

/// How often a follower looks for new errors.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const PAGE_ERRORS: u32 = 1000;
const PAGE_BYTES: u64 = 4 << 20;

/// Which errors are wanted.
pub(crate) struct Wanted {
    pub(crate) queue: Option<Name>,
    pub(crate) limit: Option<u64>,
    pub(crate) containing: Option<String>,
}

impl Wanted {
    /// The errors of the queues wanted, whatever their text; remarks a queue that the fleet does not have.
    fn total(&self, survey: &Survey) -> Total {
        let lacking = queues::remark_lack(self.queue.as_ref(), survey);
        let errors = survey.queues.iter().filter(|books| self.queue(books)).map(|books| books.dead);
        Total { lacking, errors: errors.fold(0, u64::saturating_add) }
    }

    fn queue(&self, books: &Books) -> bool {
        books.dead > 0 && self.queue.as_ref().is_none_or(|queue| *queue == books.queue)
    }

    fn error(&self, error: &DeadMessage) -> bool {
        self.containing.as_ref().is_none_or(|text| error.error.contains(text.as_str()))
    }
}

/// How many errors there are to choose from.
#[derive(Debug, Clone, Copy)]
struct Total {
    /// Whether the queue itself is missing, which has been said.
    lacking: bool,
    errors: u64,
}

impl Total {
    /// Tells that nothing was found.
    fn tell_none(self) {
        match self {
            Self { lacking: true, .. } => {}
            Self { errors: 0, .. } => remark("no errors"),
            Self { errors: 1, .. } => remark("the only error does not match"),
            Self { errors, .. } => remark(&format!("none of {errors} errors matches")),
        }
    }

    /// So many errors, and of how many if that is not all.
    fn share(self, count: u64) -> String {
        match self.errors > count {
            true => format!("{count} of {} errors", self.errors),
            false => format!("{count} error{}", plural(count)),
        }
    }
}

/// Prints errors, page by page, and disposes of what was printed if so asked.
pub(crate) async fn print(
    connection: &Connection, wanted: &Wanted, disposal: Option<Disposal>, follow: bool, output: &mut Output, json: bool,
) -> Result<(), Failure> {
    let interrupt = if follow { Interrupt::listen()? } else { Interrupt::never() };
    let mut printer =
        Printer { connection, wanted, output, json, left: wanted.limit.unwrap_or(u64::MAX), printed: 0, bodiless: 0 };
    // How far each registry was seen.
    let mut seen: BTreeMap<Name, u64> = BTreeMap::new();
    let mut survey = connection.ask(TakeSurvey).await?;
    let total = wanted.total(&survey);
    loop {
        for books in survey.queues.iter().filter(|books| wanted.queue(books)) {
            let after = seen.get(&books.queue).copied().filter(|after| *after <= books.dead_seq).unwrap_or(0);
            if after == books.dead_seq {
                continue;
            }
            let mut drain = match disposal {
                Some(disposal) => Some(Drain::begin(connection, &books.queue, disposal).await?),
                None => None,
            };
            let upto = drain.as_ref().map_or(books.dead_seq, |drain| drain.upto);
            let reached = printer.queue(&books.queue, after, upto, drain.as_mut(), &interrupt).await?;
            seen.insert(books.queue.clone(), reached);
            if printer.has_enough() || interrupt.came() {
                break;
            }
        }
        // A drain lasts as long as its session: others are let in while this one waits.
        connection.leave().await;
        if !follow || printer.has_enough() || interrupt.came() {
            break;
        }
        tokio::select! {
            () = interrupt.wait() => break,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        survey = connection.ask(TakeSurvey).await?;
    }
    // A reader who has gone has seen enough.
    let told = !json && !follow && !printer.output.is_closed();
    conclude(disposal, printer.printed, total, told);
    if disposal == Some(Disposal::Requeue) && printer.bodiless > 0 {
        let (count, s) = (printer.bodiless, plural(printer.bodiless));
        remark(&format!("{count} error{s} cannot be requeued, for want of a body: --drain removes what it prints"));
    }
    Ok(())
}

/// Tells what became of them, beside what was printed.
fn conclude(disposal: Option<Disposal>, count: u64, total: Total, told: bool) {
    match disposal {
        Some(Disposal::Requeue) => remark(&format!("requeued {count} message{}", plural(count))),
        _ if !told => {}
        _ if count == 0 => total.tell_none(),
        Some(Disposal::Drain) => remark(&format!("removed {}", total.share(count))),
        None => remark(&format!("{}; --drain removes what it prints, --requeue tries it again", total.share(count))),
    }
}

struct Printer<'a> {
    connection: &'a Connection,
    wanted: &'a Wanted,
    output: &'a mut Output,
    json: bool,
    left: u64,
    printed: u64,
    /// Errors without a body among those printed.
    bodiless: u64,
}

impl Printer<'_> {
    const fn has_enough(&self) -> bool {
        self.left == 0 || self.output.is_closed()
    }

    /// Prints the errors of one queue after `after`, up to and with `upto`; how far it came.
    async fn queue(
        &mut self, queue: &Name, mut after: u64, upto: u64, mut drain: Option<&mut Drain<'_>>, interrupt: &Interrupt,
    ) -> Result<u64, Failure> {
        while !self.has_enough() && !interrupt.came() {
            let page = page(self.connection, queue, after, upto).await?;
            let Some(last) = page.last() else { return Ok(upto) };
            let mut reached = last.seq;
            let mut ids = Vec::new();
            for error in page.iter().filter(|error| self.wanted.error(error)) {
                entry::write(self.output, queue, error, self.json)?;
                ids.push(error.id);
                self.bodiless += u64::from(error.body.is_empty());
                if ids.len() as u64 == self.left {
                    reached = error.seq;
                    break;
                }
            }
            self.output.flush()?;
            // Only what a reader has taken may be removed.
            if self.output.is_closed() {
                return Ok(after);
            }
            let shown = ids.len() as u64;
            let mut count = shown;
            if let Some(drain) = drain.as_deref_mut().filter(|_| shown > 0) {
                let Some(disposed) = drain.dispose(ids).await? else { continue };
                count = disposed;
            }
            self.left -= shown;
            self.printed += count;
            after = reached;
        }
        Ok(after)
    }
}

async fn page(connection: &Connection, queue: &Name, after: u64, upto: u64) -> Result<Vec<DeadMessage>, Failure> {
    let peek = Peek { queue: queue.clone(), after, upto, limit: PAGE_ERRORS, max_bytes: PAGE_BYTES };
    Ok(connection.ask(peek).await?.errors)
}
