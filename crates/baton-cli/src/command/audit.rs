//! `baton audit`: the books, and whether they balance.

use std::time::Duration;

use baton::{Name, admin, settings::quantity, store::Books};

use crate::{
    connection::Connection,
    exit::{Exit, Failure},
    output::{Ink, Output},
    settings::Settings,
};

/// Check that every message ever pushed is in exactly one state; exit 0 only if so
///
/// For every queue pushed = ready + delayed + in_flight + done + failed + removed + cancelled must hold. With --deep the
/// messages themselves are counted and compared with the books. Every message that may still run must then have its body.
/// Both checks work on a live fleet.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton audit
  baton audit resize --json
  baton audit --deep --max-hold 30s

Exit codes: 0 balanced, 1 no such fleet or queue, 4 not balanced, 5 store unreachable or unfit")]
pub(crate) struct Audit {
    /// Check only this queue; it is an error if the fleet has no such queue
    #[arg(value_name = "QUEUE")]
    queue: Option<Name>,
    /// Also count the messages themselves
    #[arg(long)]
    deep: bool,
    /// How long a deep audit may hold the fleet still, with a unit
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::time)]
    max_hold: Duration,
    /// Print one JSON object: {"pushed","ready","delayed","in_flight","done","failed","removed","cancelled","requeued","balanced",
    /// "stale_pushes","stale_settles","unbalanced"}, with --deep also "held_ms"
    #[arg(long)]
    json: bool,
}

impl Audit {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let connection = Connection::to_fleet(settings, self.json).await?;
        let deep = self.deep.then_some(self.max_hold);
        let audit = connection.given(connection.admin.audit(self.queue.as_ref(), deep).await)?;
        let exit = Output::print(self.json, &audit, |output| show(output, &audit))?;
        Ok(if audit.balanced { exit } else { Exit::Unbalanced })
    }
}

fn show(output: &mut Output, it: &admin::Audit) -> Result<(), Failure> {
    let head = [
        "queue",
        "pushed",
        "ready",
        "delayed",
        "in flight",
        "done",
        "failed",
        "removed",
        "cancelled",
        "requeued",
        "stale settles",
    ];
    let row = |name: &str, numbers: [u64; 10]| {
        [name.to_owned()].into_iter().chain(numbers.map(|number| number.to_string())).collect::<Vec<_>>()
    };
    let of_queue = |it: &Books| {
        let [a, b, c, d] = [it.pushed, it.ready, it.delayed, it.in_flight];
        let [e, f] = [it.removed, it.cancelled];
        row(it.queue.as_str(), [a, b, c, d, it.done, it.failed, e, f, it.requeued, it.stale_settles])
    };
    let mut rows: Vec<Vec<String>> = it.books.iter().map(of_queue).collect();
    if rows.len() != 1 {
        let [a, b, c, d] = [it.pushed, it.ready, it.delayed, it.in_flight];
        let [e, f] = [it.removed, it.cancelled];
        rows.push(row("all queues", [a, b, c, d, it.done, it.failed, e, f, it.requeued, it.stale_settles]));
    }
    output.table(&head, &rows)?;
    if it.balanced {
        let deep = it.held_ms.map_or("", |_| ", and the data agrees with them");
        return output.line(&output.paint(Ink::Green, &format!("balanced: the books add up{deep}")));
    }
    it.unbalanced.iter().try_for_each(|fault| output.line(&output.paint(Ink::Red, &format!("NOT balanced: {fault}"))))
}
