//! `baton bench`: the figures of a store, with ratios to what the bare store does.

use std::{sync::Arc, time::Duration};

use baton::settings::quantity;
use baton_bench::{Figures, Measure, Plan, Producer, Receiver, Tell, Workload};
use tokio::signal::unix::SignalKind;

use crate::{
    exit::{Exit, Failure},
    interrupt,
    output::{Ink, Output, remark},
    settings::{Origin, Settings},
};

/// How long its data may take to be removed after a signal.
const CLEARED: Duration = Duration::from_secs(60);

/// Measure a store: rates, latency, failover, memory and CPU, with ratios to bare Redis commands
///
/// Without --store it measures SQLite in a temporary folder (on disk only if TMPDIR is). It also measures a redis-server
/// of its own, if the PATH has one. BATON_STORE and the configuration file are ignored, so that no store comes under load by
/// accident. With --store it measures only that store, in a fleet `bench-…` that is removed at the end. Every message is
/// accounted for afterwards: the exit code is 4 if the books do not balance or a message is not done.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton bench
  baton bench --messages 100000 --rounds 5 --only push,process,whole,raw
  baton bench --store redis://127.0.0.1:6379/1 --json
  baton bench --only push,process --backlog 10000000    cost does not grow with what waits
  baton bench --only everyday --store redis://127.0.0.1:6379/1    what a single message costs there
  baton bench --only cpu                                how much of all cores handlers get

The measurements:
  push      one process that pushes parcels of messages
  process   one worker process whose handler does nothing
  whole     both at once
  raw       the same bytes by RPUSH, and by LMOVE and LTRIM, at the same depth
  load      the rate of pushes, one message a call, while the latency at load is measured:
            half the rate of singles, at most 20,000/s
  everyday  16 processes that push one message a call, compared with as many clients of
            redis-benchmark that do LPUSH; then the same with a worker that does nothing.
            Work of three kinds is then pushed one message a call, and processed
  cpu       a node with 64 handlers at once that compute for 0.2 or 1 ms, compared with one
            thread a core that does nothing else
  exec      one Python child a core that does nothing with its messages, compared with a bare
            loop over the pipes of such children
Rates are messages per second. Ratios are baton to raw: more is better for rates, less for times, CPU and bytes. \
A figure that was not measured is null.

JSON: {\"sqlite\":{…},\"redis\":{…}}, for each store
  \"store\",\"messages\",\"rounds\",\"parcel\",\"bytes\",\"backlog\",\"shared\" (others use the server too),
  \"push_per_s\",\"process_per_s\",\"whole_per_s\", with \"raw_\" before each,
  \"push_ratio\",\"process_ratio\",\"whole_ratio\",
  \"push_cpu_us\",\"process_cpu_us\",\"cpu_us\" (a message; of the server, or of SQLite's process),
  \"singles_per_s\",\"raw_singles_per_s\",\"singles_ratio\",\"redis_benchmark_lpush\",\"singles_benchmark_ratio\",
  \"everyday_push_per_s\",\"everyday_push_cpu_us\" (of Redis, a message), with \"raw_\" before each,
  \"everyday_push_ratio\",\"everyday_push_cpu_ratio\",\"everyday_memory_bytes\" (beyond the body),
  \"everyday_whole_per_s\",\"everyday_whole_cpu_us\" (pushed and processed),
  \"work_burn_per_s\",\"work_wait_per_s\",\"work_fail_per_s\", and \"work_burn_cpu_us\",\"work_wait_cpu_us\",
  \"work_fail_cpu_us\" (of Redis, a message, pushed and processed),
  \"idle_p50_us\",\"idle_p99_us\",\"raw_idle_p50_us\",\"raw_idle_p99_us\",\"idle_p50_ratio\",\"idle_p99_ratio\",
  \"load_per_s\",\"load_p50_us\",\"load_p99_us\",\"failover_median_ms\",\"failover_max_ms\",
  \"burn_200us_per_s\",\"burn_1ms_per_s\", with \"raw_\" before each, and \"burn_200us_ratio\",\"burn_1ms_ratio\",
  \"exec_per_s\",\"raw_exec_per_s\",\"exec_ratio\",\"exec_wait_us\" (p50 of a child, from an answer to the next message),
  \"memory_bulk_bytes\",\"memory_singles_bytes\" (a waiting message, beyond its body),
  \"done\" (messages in all)")]
pub(crate) struct Bench {
    /// Messages in each round
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    messages: u64,
    /// Rounds; the figures are their medians
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Messages in a parcel
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    parcel: u32,
    /// Bytes of each body, a JSON string
    #[arg(long, value_name = "BYTES", default_value = "100", value_parser = quantity::body_bytes)]
    bytes: usize,
    /// Push this number of messages first, to measure under a backlog
    #[arg(long, value_name = "N", default_value_t = 0)]
    backlog: u64,
    /// Measure only these, separated by commas
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    only: Vec<Measure>,
    /// Let the redis-server keep an append-only file, synced every second
    #[arg(long)]
    aof: bool,
    /// Print one JSON object; see below
    #[arg(long)]
    json: bool,
    /// Be a child of the latency measurement
    #[arg(long, value_enum, hide = true)]
    echo: Option<Receiver>,
    /// Be a process that pushes singly to this queue
    #[arg(long, value_name = "QUEUE", hide = true)]
    produce: Option<String>,
    /// Be a worker of such messages
    #[arg(long, value_enum, hide = true)]
    work: Option<Workload>,
}

impl Bench {
    /// Whether it is a process of a measurement that pushes one message after the other.
    pub(crate) const fn produces(&self) -> bool {
        self.produce.is_some()
    }

    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let tell: Tell = Arc::new(remark);
        if let Some(receiver) = self.echo {
            receiver.run(settings, &tell).await?;
            return Ok(Exit::Ok);
        }
        if let Some(queue) = self.produce {
            Producer { queue, messages: self.messages, bytes: self.bytes }.run(settings, &tell).await?;
            return Ok(Exit::Ok);
        }
        if let Some(workload) = self.work {
            workload.run(self.messages, settings, &tell).await?;
            return Ok(Exit::Ok);
        }
        if self.bytes < 2 {
            return Err(Failure::usage("a JSON string has 2 bytes or more", "take a larger --bytes"));
        }
        let Self { messages, rounds, parcel, bytes, backlog, only, aof, .. } = self;
        let plan = Plan { messages, rounds, parcel, bytes, backlog, aof, only };
        let named = (settings.store.from == Origin::Said).then(|| settings.store.value.clone());
        // A terminal that goes away would leave its data in the store.
        let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let cancel = interrupt::listen_to(&signals, CLEARED)?;
        let results = baton_bench::run(&plan, named, settings.wait.value, &cancel, tell).await?;
        let mut output = Output::new();
        if self.json {
            output.json(&results)?;
        } else {
            for figures in results.sqlite.iter().chain(&results.redis) {
                show(figures, &mut output)?;
            }
        }
        output.flush()?;
        Ok(Exit::Ok)
    }
}

fn show(figures: &Figures, output: &mut Output) -> Result<(), Failure> {
    output.line(&figures.title())?;
    output.table(&["", "baton", "raw", "ratio", ""], &figures.rows())?;
    if let Some(reading) = figures.reading() {
        output.line(&output.paint(Ink::Faint, reading))?;
    }
    if figures.is_shared() {
        output.line("others use this server too: they are in its CPU and memory figures")?;
    }
    let done = figures.done();
    let balanced = format!("balanced: {done} messages are done, each once, and the data agrees with the books");
    output.line(&output.paint(Ink::Green, &balanced))
}
