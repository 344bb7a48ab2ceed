//! `baton stats`: how fast the fleet is now.

use std::time::Duration;

use baton::{Name, admin::Rates, settings::quantity};

use crate::{
    connection::Connection,
    exit::{Exit, Failure},
    output::Output,
    settings::Settings,
};

/// Measure the running fleet for a moment: messages per second, waiting times, backlog
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton stats
  baton stats resize --seconds 10 --json

A waiting time runs from the push of a message to the start of its handler. The nodes measure it. It is null if no \
message was started in the sample. Only first attempts count: a message that was retried, requeued or in a crash would \
count from its push. With QUEUE, the waiting times are those of all queues that its nodes work for.")]
pub(crate) struct Stats {
    /// How long to measure; plain numbers are seconds
    #[arg(long, value_name = "S", default_value = "2", value_parser = quantity::seconds)]
    seconds: Duration,
    /// Only this queue; one that the fleet does not have is refused
    #[arg(value_name = "QUEUE")]
    queue: Option<Name>,
    /// Print one JSON object: {"pushed_per_s","done_per_s","failed_per_s","ready","latency_ms":{"p50","p99"}}
    #[arg(long)]
    json: bool,
}

impl Stats {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        if self.seconds < Duration::from_millis(10) {
            return Err(Failure::usage("--seconds is too short to measure anything", "give 10ms or more"));
        }
        let connection = Connection::to_fleet(settings, self.json).await?;
        let rates = connection.given(connection.admin.rates(self.queue.as_ref(), self.seconds).await)?;
        Output::print(self.json, &rates, |output| {
            let rate = |rate: f64| format!("{rate:.1}");
            let wait = |wait: Option<f64>| wait.map_or_else(|| "none ran".to_owned(), |ms| format!("{ms:.1} ms"));
            let Rates { pushed_per_s, done_per_s, failed_per_s, ready, latency_ms } = &rates;
            let queue = self.queue.as_ref().map_or_else(|| "all queues".to_owned(), ToString::to_string);
            let row = [queue, rate(*pushed_per_s), rate(*done_per_s), rate(*failed_per_s), ready.to_string()];
            let row = row.into_iter().chain([wait(latency_ms.p50), wait(latency_ms.p99)]).collect();
            output.table(&["queue", "pushed/s", "done/s", "failed/s", "ready", "wait p50", "wait p99"], &[row])
        })
    }
}
