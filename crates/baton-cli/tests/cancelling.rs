//! Calls cancelled through a gateway while other processes wait for them, hold them or run them, and are killed.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod sandbox;
mod web;

use std::{
    collections::BTreeMap,
    fs,
    process::Command,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use baton_testkit::server::{Persistence, RedisServer};
use sandbox::{Running, Sandbox, is_gone, until};
use web::Web;

/// The processes that run a script of this sandbox.
fn children(sandbox: &Sandbox) -> Vec<u32> {
    let script = sandbox.dir.path().join("work.sh");
    let pids = fs::read_dir("/proc").unwrap().filter_map(|it| it.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let runs = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == script.as_os_str().as_encoded_bytes()) && !is_gone(*pid)
    };
    pids.filter(runs).collect()
}

/// A worker whose children note what they begin: a body of 0 fails, 1 ends at once, more takes as many hundredths of a second.
fn worker(sandbox: &Sandbox, queue: &str, flags: &[&str]) -> Running {
    let script = sandbox.dir.path().join("work.sh");
    let text = "while read -r line; do body=${line##*:}; body=${body%\\}*}; echo \"$line\" >> begun\n\
        if [ \"$body\" = 0 ]; then echo '{\"event\":\"error\",\"message\":\"fails\"}'; continue; fi\n\
        echo '{\"event\":\"begun\"}'\n\
        if [ \"$body\" -gt 1 ]; then sleep \"$(printf '%d.%02d' $((body / 100)) $((body % 100)))\"; fi\n\
        echo '{\"event\":\"end\",\"data\":'\"$body\"'}'\ndone\n";
    sandbox.write("work.sh", text);
    let exec = format!("/bin/sh {}", script.display());
    sandbox.start(&[&["node", "--queue", queue, "--exec", &exec][..], flags].concat())
}

/// How often children began a message.
fn begun(sandbox: &Sandbox, message: &str) -> usize {
    let (queue, id) = message.split_once('/').unwrap();
    let text = fs::read_to_string(sandbox.dir.path().join("begun")).unwrap_or_default();
    let (id, queue) = (format!("{{\"id\":{id},"), format!("\"queue\":\"{queue}\""));
    text.lines().filter(|line| line.starts_with(&id) && line.contains(&queue)).count()
}

#[test]
fn what_waits_or_is_delayed_or_claimed_ahead_is_not_begun_and_what_runs_is_broken_off() {
    let server = RedisServer::start(Persistence::None);
    let sandbox = Sandbox::on(&server);
    let web = Web::over(&server.url());
    // Waiting: nobody works for its queue yet.
    let waiting = web.push("waits", "1");
    assert_eq!(web.state(&waiting), "ready");
    assert!(web.cancel(&waiting));
    assert_eq!(web.state(&waiting), "cancelling");
    let _waits = worker(&sandbox, "waits", &[]);
    until("it is cancelled", || web.state(&waiting) == "cancelled");
    assert_eq!(begun(&sandbox, &waiting), 0);
    assert!(!web.cancel(&waiting), "it has ended");
    // Delayed: it failed once, and would be tried again.
    let _delays = worker(&sandbox, "delays", &["--retries", "5", "--backoff", "2s"]);
    let delayed = web.push("delays", "0");
    until("it is delayed", || web.state(&delayed) == "delayed");
    assert!(web.cancel(&delayed));
    assert_eq!(web.state(&delayed), "cancelled", "it is not waited for until it is due");
    assert_eq!(begun(&sandbox, &delayed), 1);
    // Running in a child, and claimed ahead of it or waiting behind it.
    let _runs = worker(&sandbox, "runs", &["--concurrency", "1"]);
    let running = web.push("runs", "100000");
    until("it runs", || begun(&sandbox, &running) == 1);
    let ahead = web.push("runs", "1");
    assert!(web.cancel(&ahead));
    let at = Instant::now();
    assert!(web.cancel(&running));
    until("both are cancelled", || web.state(&running) == "cancelled" && web.state(&ahead) == "cancelled");
    println!("cancelled in a child after {:?}", at.elapsed());
    assert_eq!(begun(&sandbox, &ahead), 0);
    until("no child sleeps on", || {
        let pids = children(&sandbox).into_iter();
        pids.map(|pid| fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default())
            .all(|of_it| of_it.trim().is_empty())
    });
    // Running inline.
    let _inline =
        sandbox.start(&["node", "--queue", "inline", "--handler", "demo", "--demo-delay", "1000s", "--demo-fail", "0"]);
    let inline = web.push("inline", "1");
    until("it runs", || web.state(&inline) == "in-flight");
    let at = Instant::now();
    assert!(web.cancel(&inline));
    until("it is cancelled", || web.state(&inline) == "cancelled");
    println!("cancelled inline after {:?}", at.elapsed());
    let audit = sandbox.run(&["audit", "--deep", "--json"]).expect(0).json();
    assert_eq!((&audit["cancelled"], &audit["pushed"]), (&5.into(), &5.into()), "{audit}");
}

/// A draw of its own for each number.
fn drawn(seed: u64, nth: u64) -> u64 {
    let mixed = (seed ^ nth.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 20
}

/// `BATON_CALLS=1000` for the long form; `BATON_SEED` draws the same bodies and moments again.
#[test]
fn calls_cancelled_at_random_with_kills_end_once_and_leave_no_child() {
    let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let calls = number("BATON_CALLS").unwrap_or(150);
    let seed = number("BATON_SEED")
        .unwrap_or_else(|| u64::from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos()));
    println!("BATON_SEED={seed} BATON_CALLS={calls}");
    let server = RedisServer::start(Persistence::None);
    let sandbox = Sandbox::on(&server);
    let web = Web::over(&server.url());
    let flags = ["--concurrency", "3", "--retries", "2", "--backoff", "200ms"];
    let child_node = || worker(&sandbox, "children", &flags);
    let demo =
        ["--handler", "demo", "--demo-delay", "0..150ms", "--demo-fail", "0.2", "--retries", "1", "--backoff", "100ms"];
    let inline_node = || sandbox.start(&[&["node", "--queue", "inline", "--concurrency", "3"][..], &demo].concat());
    let mut nodes = [child_node(), child_node(), inline_node(), inline_node()];
    let (mut messages, mut to_cancel) = (Vec::new(), BTreeMap::new());
    let (mut kills, mut child_kills, mut marked) = (0, 0, 0);
    let mut cancel_due = |to_cancel: &mut BTreeMap<(Instant, u64), String>, all: bool| {
        while let Some(due) = to_cancel.first_entry().filter(|due| all || due.key().0 <= Instant::now()) {
            marked += u64::from(web.cancel(&due.remove()));
        }
    };
    for nth in 0..calls {
        let draw = |what: u64| drawn(seed, nth * 8 + what);
        let message = match draw(0) % 2 {
            0 => web.push("children", &(draw(1) % 20).to_string()),
            _ => web.push("inline", "1"),
        };
        if !draw(2).is_multiple_of(3) {
            to_cancel.insert((Instant::now() + Duration::from_millis(draw(3) % 1500), nth), message.clone());
        }
        messages.push(message);
        cancel_due(&mut to_cancel, false);
        if nth % 30 == 29 {
            let at = usize::try_from(draw(4) % 4).unwrap();
            if let Some(node) = nodes.get_mut(at) {
                node.kill();
                *node = if at < 2 { child_node() } else { inline_node() };
            }
            kills += 1;
        }
        if nth % 12 == 5
            && let Some(pid) = children(&sandbox).first()
        {
            // It may have ended meanwhile.
            child_kills += u64::from(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
        }
    }
    cancel_due(&mut to_cancel, true);
    let mut ends: BTreeMap<String, u64> = BTreeMap::new();
    for message in &messages {
        let mut state = String::new();
        until(&format!("{message} ends"), || {
            state = web.state(message);
            ["done", "failed", "cancelled"].contains(&state.as_str())
        });
        *ends.entry(state).or_default() += 1;
        let events: Vec<_> = web.follow("GET", &format!("/messages/{message}/events"), "").collect();
        assert_eq!(events.iter().filter(|it| it.is_last()).count(), 1, "{message}: {events:?}");
        assert!(events.last().is_some_and(web::Event::is_last), "{message}: {events:?}");
    }
    println!("{ends:?}, {marked} cancelled in time, {kills} nodes and {child_kills} children killed");
    let audit = sandbox.run(&["audit", "--deep", "--json"]).expect(0).json();
    assert_eq!((&audit["balanced"], &audit["pushed"]), (&true.into(), &calls.into()), "{audit}");
    for state in ["done", "failed", "cancelled"] {
        assert_eq!(audit[state].as_u64(), Some(ends.get(state).copied().unwrap_or(0)), "{state}: {audit} {ends:?}");
    }
    assert!(ends.get("cancelled").is_some_and(|cancelled| *cancelled > 0), "{ends:?}");
    drop(nodes);
    until("no child is left", || children(&sandbox).is_empty());
}
