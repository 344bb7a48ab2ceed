//! Streams of a gateway while the processes that tell them are killed with -9: they go on, and nothing is told twice.

mod sandbox;
mod web;

use std::{collections::BTreeSet, fs};

use baton_testkit::server::{Persistence, RedisServer};
use sandbox::{Sandbox, until};
use web::{Event, Web};

/// Numbers of events follow each other; the last is the only one of its kind.
#[track_caller]
fn assert_whole(events: &[Event], last: &str) {
    let numbers: Vec<u64> = events.iter().map(Event::number).collect();
    assert!(numbers.iter().copied().eq(1..=events.len() as u64), "{numbers:?}");
    assert_eq!(events.last().map(|it| it.name.as_str()), Some(last));
    assert_eq!(events.iter().filter(|it| it.is_last()).count(), 1);
}

#[test]
fn a_call_goes_on_when_its_worker_is_killed_and_what_has_a_key_comes_once() {
    let server = RedisServer::start(Persistence::None);
    let sandbox = Sandbox::on(&server);
    // Tells, and waits in the middle until it may go on.
    let text = "#!/bin/sh\nread -r line\nfor n in 1 2 3 4; do\n\
        echo '{\"event\":\"match\",\"key\":\"'$n'\",\"data\":'$n'}'\necho '{\"event\":\"progress\",\"data\":'$n'}'\n\
        if [ $n = 2 ]; then while [ ! -e go ]; do sleep 0.05; done; fi\ndone\n\
        echo '{\"event\":\"end\",\"data\":\"all\"}'\nread -r line\n";
    sandbox.write("tells.sh", text);
    let node = || sandbox.start(&["node", "--queue", "work", "--exec", "/bin/sh tells.sh", "--concurrency", "1"]);
    let (web, mut killed) = (Web::over(&server.url()), node());
    let mut stream = web.follow("POST", "/call/work", "1");
    let mut events: Vec<Event> = (0..4).map(|_| stream.next().unwrap()).collect();
    killed.kill();
    fs::write(sandbox.dir.path().join("go"), "").unwrap();
    let _other = node();
    events.extend(stream);
    assert_whole(&events, "end");
    let told: Vec<String> = events.iter().map(|it| format!("{} {}", it.name, it.data)).collect();
    let expected = [
        "match 1",
        "progress 1",
        "match 2",
        "progress 2",
        "restart 1",
        "progress 1",
        "progress 2",
        "match 3",
        "progress 3",
        "match 4",
        "progress 4",
        "end \"all\"",
    ];
    assert_eq!(told, expected);
    sandbox.run(&["audit", "--deep"]).expect(0);
}

#[test]
fn a_subset_sum_goes_on_when_its_worker_is_killed_and_every_match_arrives_once() {
    let server = RedisServer::start(Persistence::None);
    let sandbox = Sandbox::on(&server);
    let numbers = format!("[{}]", (1..=23).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
    let alone = sandbox.run(&["subset-sum", "--sum", "138", &numbers]).expect(0);
    let expected: BTreeSet<String> =
        alone.out.lines().map(|line| line.strip_prefix("Match: ").unwrap().to_owned()).collect();
    let node = || sandbox.start(&["node", "--queue", "subset-sum", "--handler", "subset-sum"]);
    let (web, mut killed) = (Web::over(&server.url()), node());
    let mut stream = web.follow("GET", &format!("/subsetSum?data={numbers}&sum=138"), "");
    // The first match is there long before the last: the rest does not fit into what may be told and not read.
    let mut events: Vec<Event> = (0..500).map(|_| stream.next().unwrap()).collect();
    assert_eq!(web.state("subset-sum/1"), "in-flight");
    killed.kill();
    let _other = node();
    until("it runs again", || web.state("subset-sum/1") == "in-flight");
    events.extend(stream);
    assert_whole(&events, "end");
    assert!(events.iter().any(|it| it.name == "restart"), "it was killed in the middle");
    let matches: Vec<&String> = events.iter().filter(|it| it.name == "match").map(|it| &it.data).collect();
    assert_eq!(matches.len(), expected.len(), "each once");
    assert!(matches.into_iter().collect::<BTreeSet<_>>().into_iter().eq(&expected), "all of them");
    sandbox.run(&["audit", "--deep"]).expect(0);
}
