//! Commands killed with -9 midway, on both real stores: nothing is lost, nothing is there twice.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at what it did not expect")]

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
};

use baton::{
    Name,
    store::{
        self, Kind,
        message::{Body, Outcome, ParcelBuilder, Run, Submission},
        session::{Session, SessionOptions},
    },
};
use baton_testkit::server::{Persistence, RedisServer};
use serde_json::Value;

const ERRORS: u64 = 20_000;
const LINES: u64 = 1_000_000;

fn baton(store: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    command.args(arguments).env_clear().env("BATON_STORE", store);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn json(store: &str, arguments: &[&str]) -> Value {
    let output = baton(store, arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Reads whole lines of a child's output; after `limit` of them kills it with -9 and reads what it had written.
fn lines_until_killed(mut child: Child, limit: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while out.read_line(&mut line).unwrap() > 0 {
        // A last line without its end was cut short by the kill: nobody has read it.
        if line.ends_with('\n') {
            lines.push(std::mem::take(&mut line));
        }
        if lines.len() == limit {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    lines
}

fn errors_survive_twenty_kills(url: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(fail(url));
    let mut seen = BTreeSet::new();
    for round in 0..20 {
        let child = baton(url, &["errors", "--remove", "--json"]).spawn().unwrap();
        let printed = lines_until_killed(child, 350 + round * 37);
        assert!(!printed.is_empty(), "round {round} printed nothing");
        seen.extend(printed.iter().map(|line| id(line)));
    }
    let left = json(url, &["audit", "--deep", "--json"]);
    assert!(left["balanced"] == true && left["failed"].as_u64().unwrap() > 0, "killed midway, not at the end: {left}");
    let rest = baton(url, &["errors", "--remove", "--json"]).output().unwrap();
    assert!(rest.status.success(), "{}", String::from_utf8_lossy(&rest.stderr));
    seen.extend(String::from_utf8(rest.stdout).unwrap().lines().map(id));
    assert!(seen.into_iter().eq(1..=ERRORS), "every error was printed");
    let books = json(url, &["audit", "--deep", "--json"]);
    assert_eq!((&books["balanced"], &books["failed"], &books["removed"]), (&true.into(), &0.into(), &ERRORS.into()));
}

fn id(line: &str) -> u64 {
    serde_json::from_str::<Value>(line).unwrap()["id"].as_u64().unwrap()
}

/// Pushes messages and lets all of them fail.
async fn fail(url: &str) {
    let queue = Name::new("messages").unwrap();
    let store = store::open(&url.parse().unwrap(), Name::new("baton").unwrap(), true).unwrap();
    let session = Session::join(store, SessionOptions { kind: Kind::Node, ..SessionOptions::client() }).await.unwrap();
    let mut builder = ParcelBuilder::default();
    for nth in 0..ERRORS {
        builder.add(Body::new(format!("{{\"n\":{nth}}}").as_bytes()).unwrap()).unwrap();
    }
    let submission = Submission { queue: queue.clone(), parcel: builder.finish().unwrap(), key: None, call: None };
    session.submit(vec![submission], None).await.unwrap();
    while let Some(held) = session.claim(queue.clone(), 500, 1 << 20).await.unwrap().held {
        let (claim_no, queue, spans) = held.into_parts();
        let outcome = Outcome::Failed { error: "it failed".to_owned() };
        let run = |range| Run { claim_no, queue: queue.clone(), range, outcome: outcome.clone() };
        session.settle(spans.iter().map(|(span, _)| run(span.range)).collect()).await.unwrap();
    }
    session.leave().await.unwrap();
}

fn a_long_push_is_exact_after_a_kill(url: &str, folder: &Path) {
    let input = folder.join("lines");
    let text: String = (0..LINES).map(|nth| format!("{{\"n\":{nth}}}\n")).collect();
    std::fs::write(&input, &text).unwrap();
    let push = |input: Stdio| {
        baton(url, &["push", "messages", "-", "--resume", "import", "--json"]).stdin(input).spawn().unwrap()
    };
    // Half of the input arrives, some of it is stored, and the command waits for more when it is killed.
    let mut child = push(Stdio::piped());
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&text.as_bytes()[..text.len() / 2]).unwrap();
    let stored = || {
        let audit = baton(url, &["audit", "--json", "--wait", "1"]).output().unwrap();
        serde_json::from_slice::<Value>(&audit.stdout).ok().and_then(|books| books["pushed"].as_u64()).unwrap_or(0)
    };
    while stored() == 0 {
        assert!(child.try_wait().unwrap().is_none(), "the push ended by itself");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stdin);
    let before = stored();
    assert!(before < LINES, "it was killed midway");
    let output = push(std::fs::File::open(&input).unwrap().into()).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let pushed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(pushed["pushed"].as_u64().unwrap() + pushed["duplicates"].as_u64().unwrap(), LINES);
    assert_eq!(pushed["duplicates"], before);
    let books = json(url, &["audit", "--deep", "--json"]);
    assert_eq!((&books["pushed"], &books["ready"], &books["balanced"]), (&LINES.into(), &LINES.into(), &true.into()));
}

#[test]
fn errors_survive_twenty_kills_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    errors_survive_twenty_kills(&format!("sqlite:{}", folder.path().join("store.db").display()));
}

#[test]
fn errors_survive_twenty_kills_on_redis() {
    let server = RedisServer::start(Persistence::AofEverySecond);
    errors_survive_twenty_kills(&server.url());
}

#[test]
fn a_long_push_is_exact_after_a_kill_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    a_long_push_is_exact_after_a_kill(&url, folder.path());
}

#[test]
fn a_long_push_is_exact_after_a_kill_on_redis() {
    let server = RedisServer::start(Persistence::AofEverySecond);
    a_long_push_is_exact_after_a_kill(&server.url(), server.folder());
}
