//! The soak as a command: real node processes under every fault, and a verdict.

use std::{path::PathBuf, process::ExitCode, time::SystemTime};

use baton_testkit::soak::{Report, Settings, StoreKind, run_bounded};
use clap::{Parser, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};

/// Throws faults at a fleet of real processes and checks that nothing was lost and nothing was done twice.
#[derive(Debug, Parser)]
#[command(name = "soak")]
struct Arguments {
    /// The baton binary
    #[arg(long, value_name = "PATH", default_value = "target/release/baton")]
    baton: PathBuf,
    /// The store, or both one after the other
    #[arg(long, value_enum, default_value_t = Stores::Both)]
    store: Stores,
    /// Node processes
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(3..=200))]
    nodes: u16,
    /// How long faults are thrown at each store
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u64).range(15..=86_400))]
    seconds: u64,
    /// Throws the faults of an earlier run again
    #[arg(long)]
    seed: Option<u64>,
    /// Bytes the queue may hold
    #[arg(long, default_value_t = 64 << 20)]
    max_queue_bytes: u64,
    /// Kill generators also in front of so many waiting messages (default: a million from 60 seconds on)
    #[arg(long)]
    deep: Option<u64>,
    /// Messages a second that must be finished under faults (default: 10834 on Redis, that is 1.3 million in two
    /// minutes; none on SQLite)
    #[arg(long)]
    rate: Option<u64>,
    /// Have children of this command run the messages, by the line protocol
    #[arg(long, value_name = "COMMAND")]
    exec: Option<String>,
    /// Print the reports as one JSON object a store
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Stores {
    Redis,
    Sqlite,
    Both,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seed = arguments.seed.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.map_or(1, |time| u64::from(time.subsec_nanos()) ^ time.as_secs() << 20)
    });
    eprintln!("seed {seed}");
    let stores = match arguments.store {
        Stores::Redis => &[StoreKind::Redis][..],
        Stores::Sqlite => &[StoreKind::Sqlite],
        Stores::Both => &[StoreKind::Redis, StoreKind::Sqlite],
    };
    let mut passed = true;
    for store in stores {
        tokio::select! {
            good = soak(&arguments, *store, seed) => passed &= good,
            // The nodes are killed as the run is dropped.
            () = interrupted() => return ExitCode::from(130),
        }
    }
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns when this process is asked to end: it must not leave nodes behind.
async fn interrupted() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

/// One run; whether it passed.
async fn soak(arguments: &Arguments, store: StoreKind, seed: u64) -> bool {
    let here = std::env::current_exe().unwrap_or_default();
    let settings = Settings {
        program: arguments.baton.clone(),
        mixed: here.with_file_name("soak-node"),
        store,
        nodes: usize::from(arguments.nodes),
        seconds: arguments.seconds,
        seed,
        max_queue_bytes: arguments.max_queue_bytes,
        deep: arguments.deep.unwrap_or(if arguments.seconds >= 60 { 1_000_000 } else { 0 }),
        rate: arguments.rate.unwrap_or(if store == StoreKind::Redis { 10_834 } else { 0 }),
        exec: arguments.exec.clone(),
    };
    let folder = match tempfile::Builder::new().prefix("baton-soak-").tempdir() {
        Ok(folder) => folder,
        Err(error) => {
            eprintln!("no temporary folder: {error}");
            return false;
        }
    };
    let report = run_bounded(&settings, folder.path()).await;
    print(&report, arguments.json);
    if !report.passed() {
        eprintln!("journals and logs are kept in {}", folder.keep().display());
    }
    report.passed()
}

fn print(report: &Report, json: bool) {
    if json {
        match serde_json::to_string(report) {
            Ok(text) => println!("{text}"),
            Err(error) => eprintln!("the report cannot be written as JSON: {error}"),
        }
    } else {
        println!("{report}");
    }
}
