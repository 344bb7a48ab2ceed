//! A small measurement gives every figure it documents, keeps its books, and leaves nothing behind.

mod sandbox;

use std::{path::Path, process::Command};

use baton_testkit::server::{Persistence, RedisServer};
use sandbox::{Sandbox, is_gone, until};
use serde_json::Value;

const RATES: [&str; 9] = [
    "push_per_s",
    "process_per_s",
    "whole_per_s",
    "singles_per_s",
    "everyday_push_per_s",
    "everyday_whole_per_s",
    "work_burn_per_s",
    "work_wait_per_s",
    "work_fail_per_s",
];
const LATENCIES: [&str; 5] = ["idle_p50_us", "idle_p99_us", "load_per_s", "load_p50_us", "load_p99_us"];
const OTHERS: [&str; 13] = [
    "push_cpu_us",
    "process_cpu_us",
    "cpu_us",
    "failover_median_ms",
    "failover_max_ms",
    "memory_bulk_bytes",
    "memory_singles_bytes",
    "burn_200us_per_s",
    "raw_burn_200us_per_s",
    "burn_200us_ratio",
    "burn_1ms_per_s",
    "raw_burn_1ms_per_s",
    "burn_1ms_ratio",
];
const BESIDE_RAW: [&str; 21] = [
    "raw_push_per_s",
    "raw_process_per_s",
    "raw_whole_per_s",
    "push_ratio",
    "process_ratio",
    "whole_ratio",
    "raw_singles_per_s",
    "singles_ratio",
    "everyday_push_cpu_us",
    "everyday_whole_cpu_us",
    "work_burn_cpu_us",
    "work_wait_cpu_us",
    "work_fail_cpu_us",
    "raw_everyday_push_per_s",
    "raw_everyday_push_cpu_us",
    "everyday_push_ratio",
    "everyday_push_cpu_ratio",
    "raw_idle_p50_us",
    "raw_idle_p99_us",
    "idle_p50_ratio",
    "idle_p99_ratio",
];
const SMALL: [&str; 6] = ["bench", "--messages", "5000", "--rounds", "1", "--json"];

/// The command with a folder of its own for what is temporary.
fn bench(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let mut command = sandbox.command(arguments);
    command.env("TMPDIR", sandbox.dir.path()).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

#[track_caller]
fn are_positive(figures: &Value, fields: &[&str]) {
    for field in fields {
        assert!(figures[field].as_f64().is_some_and(|figure| figure > 0.0), "{field}: {figures}");
    }
}

/// Processes that were started with this text in their surroundings.
fn marked_with(text: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let marked = |pid: &u32| {
        let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let both = [read("environ"), read("cmdline")].concat();
        both.windows(text.len()).any(|part| part == text.as_bytes())
    };
    pids.filter(marked).filter(|pid| !is_gone(*pid)).collect()
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

#[test]
fn both_stores_of_its_own_are_measured_and_gone() {
    let sandbox = Sandbox::new();
    let output = bench(&sandbox, &SMALL).output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!((output.status.code(), err.as_str()), (Some(0), ""), "{out}");
    let results: Value = serde_json::from_str(&out).unwrap();
    for store in ["sqlite", "redis"] {
        let figures = &results[store];
        are_positive(figures, &[&RATES[..], &LATENCIES, &OTHERS].concat());
        assert_eq!((&figures["messages"], &figures["rounds"]), (&5000.into(), &1.into()));
        assert_eq!((&figures["parcel"], &figures["bytes"]), (&512.into(), &100.into()));
        assert_eq!((&figures["backlog"], &figures["shared"]), (&0.into(), &false.into()));
        // Bulk and whole, and whatever else was pushed beside them.
        assert!(figures["done"].as_u64().unwrap() > 10_000, "{figures}");
    }
    are_positive(&results["redis"], &BESIDE_RAW);
    assert!(results["sqlite"]["raw_push_per_s"].is_null());
    assert!(is_empty(sandbox.dir.path()), "nothing is left on disk");
    let left = marked_with(sandbox.dir.path().to_str().unwrap());
    assert!(left.is_empty(), "nothing is left running: {left:?}");
}

#[test]
fn a_named_store_is_left_as_it_was() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start(Persistence::None);
    let url = server.url();
    let arguments = [&SMALL[..], &["--store", &url, "--only", "process,raw", "--backlog", "2000"]].concat();
    let output = bench(&sandbox, &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    are_positive(&results["redis"], &["process_per_s", "raw_process_per_s", "process_ratio", "process_cpu_us"]);
    assert_eq!(results["redis"]["done"], 7000);
    assert_eq!(results["redis"]["shared"], false);
    assert!(results["redis"]["singles_per_s"].is_null() && results["sqlite"].is_null());
    let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
    assert!(keys.is_empty(), "{keys:?}");
}

#[test]
fn the_table_names_the_messages_of_what_was_asked_for_and_shows_no_other_rows() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start(Persistence::None);
    let shown = |only: &str| {
        let arguments = ["bench", "--messages", "5000", "--rounds", "1", "--store", &server.url(), "--only", only];
        let output = bench(&sandbox, &arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let push = shown("push,raw");
    let title = "messages of 100 bytes, medians of 1 round, in each 5000 in bulk, in parcels of 512\n";
    assert!(push.contains(title) && push.contains("of rates more is better"), "{push}");
    assert!(push.contains("\npush ") && !push.contains("\nwhole ") && !push.contains("\nprocess "), "{push}");
    let raw = shown("raw");
    assert!(["push ", "process ", "whole "].iter().all(|row| raw.contains(&format!("\n{row}"))), "{raw}");
    let singles = shown("singles");
    assert!(singles.contains("in each 1000 for singles\n"), "{singles}");
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    let sandbox = Sandbox::new();
    let folder = sandbox.dir.path().to_str().unwrap();
    let arguments = ["bench", "--only", "failover"];
    let child = bench(&sandbox, &arguments).spawn().unwrap();
    // Itself and two nodes.
    until("its children run", || marked_with(folder).len() >= 3);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "baton: interrupted: nothing is left running; run it again for figures\n");
    until("all are gone", || marked_with(folder).is_empty());
    assert!(is_empty(sandbox.dir.path()), "nothing is left on disk");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let sandbox = Sandbox::new();
    let memory = sandbox.run(&["bench", "--store", "memory:"]).expect(2);
    assert!(memory.one_line().contains("not shared by processes"), "{}", memory.err);
    let parcel = sandbox.run(&["bench", "--parcel", "65536", "--bytes", "1MiB", "--messages", "1"]).expect(2);
    assert!(parcel.one_line().contains("take a smaller --parcel"), "{}", parcel.err);
    assert!(sandbox.run(&["bench", "--bytes", "1"]).expect(2).one_line().contains("2 bytes or more"));
    let nobody = sandbox.run(&["bench", "--store", "redis://127.0.0.1:1/", "--wait", "0"]).expect(5);
    assert!(nobody.one_line().contains("the store is not up"), "{}", nobody.err);
}
