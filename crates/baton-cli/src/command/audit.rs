//! `baton audit`: the books, and whether they balance.

use std::time::Duration;

use baton::{
    message::Name,
    store::{Books, Lacking, QueueRecount, Recount, TakeSurvey},
};
use serde::Serialize;

use crate::{
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    output::{Ink, Output, table},
    quantity, queues,
    settings::Settings,
};

/// Check that every message ever pushed is in exactly one state; exit 0 only if so
///
/// pushed = ready + delayed + in_flight + done + dead + drained must hold for every queue. With --deep the messages
/// themselves are counted and compared with the books, and every one that may still run must have its body; this works
/// on a live fleet.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton audit
  baton audit --queue resize --json
  baton audit --deep --max-hold 30s

Exit codes: 0 balanced, 4 not balanced, 5 store unreachable or unfit")]
pub(crate) struct Audit {
    /// Only this queue; one that nothing was pushed to has zeros
    #[arg(long, value_name = "NAME")]
    queue: Option<Name>,
    /// Count the messages themselves too
    #[arg(long)]
    deep: bool,
    /// The longest the fleet may be held still for a deep audit, with its unit
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::time)]
    max_hold: Duration,
    /// Print one JSON object: {"pushed","ready","delayed","in_flight","done","dead","drained","requeued","balanced",
    /// "stale_pushes","stale_settles","unbalanced"}, with --deep also "held_ms"
    #[arg(long)]
    json: bool,
}

/// The sums over the queues looked at.
#[derive(Serialize, Default)]
struct Totals {
    pushed: u64,
    ready: u64,
    delayed: u64,
    in_flight: u64,
    done: u64,
    dead: u64,
    drained: u64,
    requeued: u64,
    balanced: bool,
    stale_pushes: u64,
    stale_settles: u64,
    /// What is wrong, a line a queue.
    unbalanced: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_ms: Option<u64>,
}

impl Audit {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let connection = Connection::open(settings, Missing::Refuse, None)?;
        let survey = connection.ask(TakeSurvey).await?;
        queues::remark_lack(self.queue.as_ref(), &survey);
        let wanted = |books: &Books| self.queue.as_ref().is_none_or(|queue| *queue == books.queue);
        let (books, faults, held_ms) = if self.deep {
            let max_hold_ms = u64::try_from(self.max_hold.as_millis()).unwrap_or(u64::MAX);
            let recounted = connection.ask_at_length(Recount { max_hold_ms }).await;
            let recounted = recounted.map_err(|error| connection.failure(&error))?;
            let queues: Vec<QueueRecount> = recounted.queues.into_iter().filter(|it| wanted(&it.books)).collect();
            let faults = recount_faults(&queues);
            (queues.into_iter().map(|it| it.books).collect(), faults, Some(recounted.held_ms))
        } else {
            let books: Vec<Books> = survey.queues.into_iter().filter(wanted).collect();
            let faults = books.iter().filter_map(books_fault).collect();
            (books, faults, None)
        };
        let totals = Totals { held_ms, unbalanced: faults, ..Totals::of(&books) };
        let totals = Totals { balanced: totals.unbalanced.is_empty(), ..totals };
        let mut output = Output::new();
        if self.json {
            output.json(&totals)?
        } else {
            show(&mut output, &books, &totals)?
        }
        output.flush()?;
        Ok(if totals.balanced { Exit::Ok } else { Exit::Unbalanced })
    }
}

impl Totals {
    /// Damaged counters may hold anything, so sums stop at the largest number.
    fn of(books: &[Books]) -> Self {
        let sum = |pick: fn(&Books) -> u64| books.iter().map(pick).fold(0, u64::saturating_add);
        Self {
            pushed: sum(|it| it.pushed),
            ready: sum(|it| it.ready),
            delayed: sum(|it| it.delayed),
            in_flight: sum(|it| it.in_flight),
            done: sum(|it| it.done),
            dead: sum(|it| it.dead),
            drained: sum(|it| it.drained),
            requeued: sum(|it| it.requeued),
            stale_pushes: sum(|it| it.stale_pushes),
            stale_settles: sum(|it| it.stale_settles),
            ..Self::default()
        }
    }
}

/// All that is wrong with recounted queues: books that do not add up first, then data that differs from them.
pub(crate) fn recount_faults(queues: &[QueueRecount]) -> Vec<String> {
    let books = queues.iter().filter_map(|it| books_fault(&it.books));
    books.chain(queues.iter().filter_map(recount_fault)).chain(queues.iter().filter_map(body_fault)).collect()
}

/// What is wrong with the books of a queue, if anything.
fn books_fault(it: &Books) -> Option<String> {
    let states = [it.ready, it.delayed, it.in_flight, it.done, it.dead, it.drained];
    let found: i128 = states.into_iter().map(i128::from).sum();
    let off = found - i128::from(it.pushed);
    (off != 0).then(|| match off > 0 {
        true => format!("queue {}: {off} more accounted for than the {} pushed", it.queue, it.pushed),
        false => format!("queue {}: {} of {} pushed are not accounted for", it.queue, -off, it.pushed),
    })
}

/// Which messages of a queue could not be run for want of a body, if any.
fn body_fault(it: &QueueRecount) -> Option<String> {
    let (queue, first) = (&it.books.queue, it.lacking.first?);
    Some(match it.lacking.count {
        1 => format!("queue {queue}: the body of {queue}/{first} is missing"),
        count => format!("queue {queue}: the bodies of {count} messages are missing, from {queue}/{first} on"),
    })
}

/// What differs between the books of a queue and its data, if anything.
fn recount_fault(it: &QueueRecount) -> Option<String> {
    // Books that do not add up are reported as such; adding them again proves nothing.
    let it = &QueueRecount { lacking: Lacking::default(), ..it.clone() };
    if books_fault(&it.books).is_some() || it.balance() {
        return None;
    }
    let pairs = [
        ("ready", it.books.ready, it.ready.count),
        ("delayed", it.books.delayed, it.delayed.count),
        ("in flight", it.books.in_flight, it.in_flight.count),
        ("dead", it.books.dead, it.dead.count),
    ];
    let differing = pairs.into_iter().filter(|(_, booked, found)| booked != found);
    let differing: Vec<String> = differing
        .map(|(state, booked, found)| format!("{state} is {booked} in the books, {found} in the data"))
        .collect();
    let what = match differing.is_empty() {
        true => "the counts agree, but some id is there twice and another is missing".to_owned(),
        false => differing.join(", "),
    };
    Some(format!("queue {}: {what}", it.books.queue))
}

fn show(output: &mut Output, books: &[Books], totals: &Totals) -> Result<(), Failure> {
    let head =
        ["queue", "pushed", "ready", "delayed", "in flight", "done", "dead", "drained", "requeued", "stale settles"];
    let row = |name: &str, numbers: [u64; 9]| {
        [name.to_owned()].into_iter().chain(numbers.map(|number| number.to_string())).collect::<Vec<_>>()
    };
    let mut rows: Vec<Vec<String>> = books
        .iter()
        .map(|it| {
            let states = [it.pushed, it.ready, it.delayed, it.in_flight, it.done, it.dead, it.drained];
            let [a, b, c, d, e, f, g] = states;
            row(it.queue.as_str(), [a, b, c, d, e, f, g, it.requeued, it.stale_settles])
        })
        .collect();
    if rows.len() != 1 {
        let it = totals;
        let numbers = [
            it.pushed,
            it.ready,
            it.delayed,
            it.in_flight,
            it.done,
            it.dead,
            it.drained,
            it.requeued,
            it.stale_settles,
        ];
        rows.push(row("all queues", numbers));
    }
    for line in table(&head, &rows) {
        output.line(&line)?;
    }
    if totals.balanced {
        let deep = totals.held_ms.map_or("", |_| ", and the data agrees with them");
        return output.line(&output.paint(Ink::Green, &format!("balanced: the books add up{deep}")));
    }
    for fault in &totals.unbalanced {
        output.line(&output.paint(Ink::Red, &format!("NOT balanced: {fault}")))?;
    }
    Ok(())
}
