//! Runs one workload a given number of times and prints how many messages that were; nothing in it is left to chance.
//!
//! `bench/instructions/check.py` runs it under callgrind: two runs that differ only in how often the work is done
//! differ in instructions by that work alone.
#![expect(clippy::expect_used, reason = "a benchmark ends where its inputs are broken")]

mod bodies;
mod handlers;

use std::{hint::black_box, process::ExitCode};

use baton::{
    Handler,
    builtin::Noop,
    store::message::{Outcome, Parcel},
};
use bodies::{bodies, parcel};
use handlers::{Function, Trials, Yielding};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // As `cargo bench` and `cargo test` call it, whatever criterion's flags beside.
    if arguments.is_empty() || arguments.iter().any(|argument| argument == "--bench") {
        println!("instructions are counted under callgrind: python3 bench/instructions/check.py");
        return ExitCode::SUCCESS;
    }
    let messages = match arguments.as_slice() {
        [workload, times] => times.parse().ok().and_then(|times| messages(workload, times)),
        _ => None,
    };
    let Some(messages) = messages else {
        eprintln!("usage: instructions parcel-build|parcel-parse|parcel-bodies TIMES");
        eprintln!("       instructions dispatch-noop|dispatch-function|dispatch-yielding TIMES");
        return ExitCode::from(2);
    };
    println!("{messages}");
    ExitCode::SUCCESS
}

/// Does the work; the messages it was done for, or nothing if there is no such work.
fn messages(workload: &str, times: u32) -> Option<u64> {
    match workload {
        "parcel-build" => {
            let bodies = bodies();
            Some(sum(times, || parcel(black_box(&bodies)).len().into()))
        }
        "parcel-parse" => {
            let bytes = parcel(&bodies()).bytes().clone();
            Some(sum(times, || Parcel::parse(black_box(&bytes).clone()).map_or(0, |parcel| parcel.len().into())))
        }
        "parcel-bodies" => {
            let parcel = parcel(&bodies());
            Some(sum(times, || black_box(&parcel).bodies().map(|body| u64::from(!black_box(body).is_empty())).sum()))
        }
        "dispatch-noop" => Some(dispatched(times, Noop)),
        "dispatch-function" => Some(dispatched(times, Function)),
        "dispatch-yielding" => Some(dispatched(times, Yielding)),
        _ => None,
    }
}

fn dispatched(times: u32, handler: impl Handler + Copy) -> u64 {
    let trials = Trials::new();
    sum(times, || {
        let runs = trials.run(handler);
        runs.iter().filter(|run| run.outcome == Outcome::DONE).map(|run| u64::from(run.range.len)).sum()
    })
}

fn sum(times: u32, mut work: impl FnMut() -> u64) -> u64 {
    (0..times).map(|_| work()).sum()
}
