//! `baton subset-sum`: which subsets of some integers have a sum.

mod fleet;

use std::{
    io::Read as _,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use baton::{
    Shutdown,
    builtin::subset_sum::{Event, InProcess, Interleaved, Problem, SearchOptions, Summary, serve, solve},
    pool::Program,
    settings::quantity,
};
use clap::ValueEnum;

use crate::{
    exit::{Exit, Failure},
    interrupt::{self, unless},
    output::{Output, remark, span},
    settings::Settings,
};

/// How long after Ctrl-C a reader that takes nothing may hold this up.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Find the subsets of up to 64 integers that have a given sum, and print each as it is found
///
/// Equal integers at different places count as different. A match keeps the order of its integers; the matches have no
/// order. Only --mode fleet needs a store.
///
/// The time grows as 2^(n/2): 52 random integers take about a second on one core, 64 take one or two minutes. The memory
/// is 64 MiB at most. A search is refused at once if its estimate is over --max-estimated-time; many matches are the usual reason.
/// A slow reader slows the search down. The search ends when the reader goes away, or with Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton subset-sum --sum 0 '[1,2,-4,5,-3]'
  baton subset-sum --sum 100 --limit 1 \"$(seq -s, 64 | sed 's/.*/[&]/')\"
  baton subset-sum --sum 100 --count-only --json - < numbers.json
  baton subset-sum --sum 0 --mode fleet '[1,2,-4,5,-3]'

Exit codes: 0 searched, or the limit reached; 1 interrupted, refused as too large, or not integers; 2 usage")]
pub(crate) struct SubsetSum {
    /// The integers, as a JSON array; - reads the array from standard input
    #[arg(value_name = "INTEGERS", required_unless_present = "child")]
    data: Option<String>,
    /// The sum that a subset must have
    #[arg(long, value_name = "N", allow_negative_numbers = true, required_unless_present = "child")]
    #[arg(value_parser = quantity::whole::<i128>)]
    sum: Option<i128>,
    /// Where the search runs
    #[arg(long, value_enum, value_name = "MODE", default_value = "process")]
    mode: Mode,
    /// End after this number of matches
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Print only the number of matches
    #[arg(long, conflicts_with = "limit")]
    count_only: bool,
    /// Refuse a search whose estimate is over this time, with a unit
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = quantity::time)]
    max_estimated_time: Duration,
    /// End the search after this time, pauses of its reader included [default: twice --max-estimated-time, at least 1m]
    #[arg(long, value_name = "TIME", value_parser = quantity::time)]
    timeout: Option<Duration>,
    /// End the search if its process prints nothing for this time; a healthy one prints every second. With --mode fleet
    /// the nodes have their own limit (--search-output-timeout)
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = quantity::time)]
    output_timeout: Duration,
    /// Refuse a search whose estimate is over this memory
    #[arg(long, value_name = "BYTES", default_value = "512MiB", value_parser = quantity::bytes)]
    max_estimated_memory: u64,
    /// Print JSON objects, one a line: {"event":"match","data":[…]} for each match, then {"event":"end","data":{"count",
    /// "complete"}}; complete is false if the limit ended the search
    #[arg(long)]
    json: bool,
    /// Be the process that computes
    #[arg(long, hide = true)]
    child: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// In this process, on all cores
    Inline,
    /// In this process, on one core, in time slices between other work
    Interleaved,
    /// In a process of its own with a lower priority, on all cores
    Process,
    /// In parts, by the nodes that work for the queue subset-sum; Ctrl-C cancels the search
    Fleet,
}

/// The program that computes, this one: as a mode of this command, or as the handler of a node.
pub(crate) fn program() -> Result<Program, Failure> {
    let path = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find this program: {error}"), "run it by its path"))?;
    Ok(Program::new(path, ["subset-sum", "--child"]))
}

impl SubsetSum {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        if self.child {
            // A parent that is gone wants to hear nothing.
            serve().ok();
            return Ok(Exit::Ok);
        }
        let problem = Problem::new(self.integers()?, self.sum.unwrap_or_default());
        let options = SearchOptions {
            limit: self.limit,
            count_only: self.count_only,
            max_seconds: self.max_estimated_time.as_secs(),
            max_bytes: self.max_estimated_memory,
        };
        let time = self.timeout.unwrap_or_else(|| options.timeout());
        let last_words = if self.mode == Mode::Fleet { interrupt::LAST_WORDS } else { LAST_WORDS };
        let (begun, shutdown, mut printer) = (Instant::now(), interrupt::listen(last_words)?, Printer::new(self.json));
        let timed_out = ends_after(&shutdown, time);
        let summary = match self.mode {
            Mode::Inline => {
                let print = |matches| printer.print(matches);
                solve(&problem, &options, &|| shutdown.asked().is_some(), print)
                    .map_err(|it| refused(&it.to_string()))?
            }
            Mode::Interleaved => {
                let refused = |it: baton::builtin::subset_sum::Refusal| refused(&it.to_string());
                match unless(&shutdown, Interleaved::start(problem, options)).await.transpose().map_err(refused)? {
                    Some(mut search) => {
                        while let Some(matches) = unless(&shutdown, search.next()).await.flatten() {
                            if printer.print(matches).is_break() {
                                break;
                            }
                        }
                        search.summary()
                    }
                    None => Summary::default(),
                }
            }
            Mode::Process => {
                let failed = |it: baton::builtin::subset_sum::ProcessError| refused(&it.to_string());
                let mut search = InProcess::start(&program()?, &problem, &options).map_err(failed)?;
                search = search.output_timeout(self.output_timeout);
                while let Some(next) = unless(&shutdown, search.next()).await {
                    let Some(matches) = next.map_err(failed)? else { break };
                    if printer.print(matches).is_break() {
                        break;
                    }
                }
                search.summary().unwrap_or_default()
            }
            Mode::Fleet => {
                fleet::search(settings, &problem, &options, &shutdown, |matches| printer.print(matches)).await?
            }
        };
        if timed_out.load(Ordering::Relaxed) && !summary.complete {
            let (printed, time) = (printer.printed, span(time));
            let cause = format!("the search was not finished after {time} (--timeout); {printed} matches were printed");
            return Err(Failure::new(cause, "take --limit or --count-only, or allow more time"));
        }
        printer.end(summary, options.count_only, &shutdown, begun.elapsed())
    }

    fn integers(&self) -> Result<Vec<i64>, Failure> {
        let mut text = self.data.clone().unwrap_or_default();
        if text == "-" {
            text.clear();
            let read = std::io::stdin().lock().read_to_string(&mut text);
            read.map_err(|error| Failure::new(format!("cannot read standard input: {error}"), "give the integers"))?;
        }
        serde_json::from_str(&text).map_err(|error| {
            let cause = format!("the integers are not a JSON array of integers of 64 bits: {error}");
            Failure::new(cause, "write them as '[1,2,-3]'")
        })
    }
}

/// Ends a search after so long as Ctrl-C does; whether it has.
fn ends_after(shutdown: &Shutdown, time: Duration) -> Arc<AtomicBool> {
    let (shutdown, timed_out) = (shutdown.clone(), Arc::<AtomicBool>::default());
    let has_timed_out = Arc::clone(&timed_out);
    tokio::spawn(async move {
        tokio::time::sleep(time).await;
        if shutdown.asked().is_none() {
            has_timed_out.store(true, Ordering::Relaxed);
            shutdown.graceful();
        }
    });
    timed_out
}

/// What a refusal says, with its own next step.
fn refused(text: &str) -> Failure {
    Failure::advised(Exit::Failed, text)
}

/// Prints matches as they come.
struct Printer {
    output: Output,
    json: bool,
    printed: u64,
    failed: Option<Failure>,
}

impl Printer {
    fn new(json: bool) -> Self {
        Self { output: Output::new(), json, printed: 0, failed: None }
    }

    /// Prints them; breaks off if nobody reads.
    fn print(&mut self, matches: Vec<Vec<i64>>) -> ControlFlow<()> {
        let (output, json) = (&mut self.output, self.json);
        self.printed += matches.len() as u64;
        let mut lines = matches.into_iter();
        let printed = lines.try_for_each(|data| match json {
            true => output.json(&Event::Match { key: None, data }),
            false => output.line(&format!("Match: {}", shown(&data))),
        });
        self.failed = printed.and_then(|()| output.flush()).err();
        if self.failed.is_some() || output.is_closed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Tells how it went.
    fn end(mut self, summary: Summary, count_only: bool, shutdown: &Shutdown, took: Duration) -> Result<Exit, Failure> {
        if let Some(failure) = self.failed {
            return Err(failure);
        }
        if self.output.is_closed() {
            return Ok(Exit::Ok);
        }
        if shutdown.asked().is_some() {
            let printed = self.printed;
            return Err(Failure::new(format!("interrupted after {printed} matches"), "run it again for all of them"));
        }
        if self.json {
            self.output.json(&Event::End { data: summary })?;
        } else if count_only {
            self.output.line(&summary.count.to_string())?;
        }
        self.output.flush()?;
        let count = match summary.count {
            1 => "1 match".to_owned(),
            count => format!("{count} matches"),
        };
        let rest = if summary.complete { "" } else { ", and perhaps more: the limit is reached" };
        remark(&format!("{count} in {}{rest}", span(took)));
        Ok(Exit::Ok)
    }
}

fn shown(numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    format!("[{}]", numbers.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_is_shown_as_json_shows_it() {
        assert_eq!((shown(&[1, 2, -3]), shown(&[])), ("[1,2,-3]".to_owned(), "[]".to_owned()));
    }
}
