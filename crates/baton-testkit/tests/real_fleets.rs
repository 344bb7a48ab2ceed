//! Drawn fleets in real processes on real stores: all is worked off in time, nothing is lost or done twice, no handler
//! sees another queue's message, every source is generated.
//!
//! `BATON_SEED` is the first seed and `BATON_FLEETS` how many follow: a failing seed and 1 replay its fleet, though not
//! the timing of its processes.
#![expect(clippy::panic, clippy::expect_used, reason = "a test stops at what it did not expect")]

use std::path::Path;

use baton_testkit::{
    real::{self, Outcome},
    sim::topology::Topology,
    soak::target::StoreKind,
};

/// The fleets of a plain test run, which together have every kind of work, of fault and of trouble with sources.
const PLAIN: [u64; 5] = [4, 18, 41, 57, 115];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// The seeds that are asked for.
fn seeds() -> Vec<u64> {
    let by_clock = || std::time::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_secs());
    match (number("BATON_SEED"), number("BATON_FLEETS")) {
        (None, None) => PLAIN.to_vec(),
        (seed, fleets) => {
            let (base, count) = (seed.unwrap_or_else(by_clock), fleets.unwrap_or(1));
            println!("fleets from BATON_SEED={base} BATON_FLEETS={count}");
            (base..base + count).collect()
        }
    }
}

async fn run_all(kind: StoreKind) {
    for seed in seeds() {
        let began = std::time::Instant::now();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let outcome = real::run(seed, kind, Path::new(env!("CARGO_BIN_EXE_fleet-node")), folder.path()).await;
        if !outcome.findings.is_empty() {
            let store = kind.name();
            panic!(
                "seed {seed} on {store}:\n  {}\nthe fleet:\n{}{}again with: BATON_SEED={seed} BATON_FLEETS=1 cargo \
                 nextest run -p baton-testkit --test real_fleets {store}",
                outcome.findings.join("\n  "),
                Topology::small(seed),
                logs(folder.path())
            );
        }
        let Outcome { messages, failed, attempts, lives, .. } = outcome;
        println!(
            "seed {seed}: {messages} messages, {attempts} attempts, {failed} failed, {lives} lives of nodes, {:.1} s",
            began.elapsed().as_secs_f64()
        );
    }
}

/// The last lines that each node has told.
fn logs(folder: &Path) -> String {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut logs: Vec<_> = files.filter(|path| path.extension().is_some_and(|extension| extension == "log")).collect();
    logs.sort();
    let tail = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(30).collect();
        let told: String = lines.iter().rev().map(|line| format!("  {line}\n")).collect();
        format!("the end of {}:\n{told}", path.file_name().unwrap_or_default().display())
    };
    logs.iter().map(tail).collect()
}

#[tokio::test]
async fn drawn_fleets_of_processes_keep_their_promises_on_sqlite() {
    run_all(StoreKind::Sqlite).await;
}

#[tokio::test]
async fn drawn_fleets_of_processes_keep_their_promises_on_redis() {
    run_all(StoreKind::Redis).await;
}

#[test]
fn small_fleets_have_all_there_is_to_draw() {
    let fleets: Vec<Topology> = (1..=200).map(Topology::small).collect();
    let sizes = |of: fn(&Topology) -> usize| {
        (fleets.iter().map(of).min().unwrap_or(0), fleets.iter().map(of).max().unwrap_or(0))
    };
    assert_eq!(sizes(|it| it.nodes.len()), (2, 4));
    assert_eq!(sizes(|it| it.queues.len()), (1, 6));
    assert_eq!(sizes(|it| it.sources.len()), (0, 3));
    let plain: Vec<Topology> = PLAIN.into_iter().map(Topology::small).collect();
    for (fleets, least) in [(fleets, 10), (plain, 1)] {
        let told = |of: fn(&Topology) -> Vec<String>| fleets.iter().flat_map(of).collect::<Vec<_>>();
        let works = told(|it| it.queues.iter().map(|it| format!("{:?}", it.work)).collect());
        let faults = told(|it| it.faults.iter().map(|it| format!("{:?}", it.fault)).collect());
        let troubles = told(|it| it.sources.iter().map(|it| format!("{:?}", it.trouble)).collect());
        let kinds = [
            (works, &["Instant", "Sleeps", "Uneven", "Fails", "Postpones", "Panics", "Passes", "Burns"][..]),
            (faults, &["Kill", "Drain", "Pause", "Lossy", "Stall", "HoldQueue"][..]),
            (troubles, &["None", "OpenFails", "OpenPanics", "PullFails", "PullPanics"][..]),
        ];
        for (all, kind) in kinds.iter().flat_map(|(all, kinds)| kinds.iter().map(move |kind| (all, kind))) {
            assert!(all.iter().filter(|one| one.starts_with(kind)).count() >= least, "{kind}");
        }
    }
}
