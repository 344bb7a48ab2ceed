//! A browser's EventSource on `/subsetSum`, whose connection is cut again and again and whose worker is killed with -9: it comes
//! again by itself behind what it has read, and gets every match once. Without a Chromium this is left out, and says so.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod sandbox;
mod web;

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use baton_testkit::server::{Persistence, RedisServer};
use sandbox::{Sandbox, until};
use web::Web;

/// Streams that are cut, each after so many bytes.
const CUTS: usize = 3;
const CUT_AFTER: usize = 64 << 10;
/// Bytes behind which nothing comes before the worker is killed: some hundreds of events, of tens of thousands.
const HELD_AFTER: usize = 32 << 10;

fn chromium() -> Option<&'static str> {
    let is_there =
        |name: &&str| Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(is_there)
}

/// Passes connections on, holds the first stream up until the worker is killed, and cuts the first streams; counts requests
/// that go on behind an event.
fn cutting_proxy(
    upstream: SocketAddr, resumed: &Arc<AtomicUsize>, is_held: &Arc<AtomicBool>, is_killed: &Arc<AtomicBool>,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, cuts) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let (resumed, is_held, is_killed) = (Arc::clone(resumed), Arc::clone(is_held), Arc::clone(is_killed));
    thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut server) = (client.unwrap(), TcpStream::connect(upstream).unwrap());
            let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            let (cuts, resumed) = (Arc::clone(&cuts), Arc::clone(&resumed));
            let (is_held, is_killed) = (Arc::clone(&is_held), Arc::clone(&is_killed));
            thread::spawn(move || {
                let mut bytes = [0; 16 << 10];
                while let Ok(count @ 1..) = client.read(&mut bytes) {
                    let some = bytes.get(..count).unwrap();
                    let text = String::from_utf8_lossy(some).to_ascii_lowercase();
                    resumed.fetch_add(usize::from(text.contains("last-event-id: subset-sum/1@")), Ordering::SeqCst);
                    if server.write_all(some).is_err() {
                        break;
                    }
                }
                server.shutdown(Shutdown::Both).ok();
            });
            thread::spawn(move || {
                let (mut bytes, mut passed) = ([0; 16 << 10], 0);
                while let Ok(count @ 1..) = from.read(&mut bytes) {
                    passed += count;
                    if to.write_all(bytes.get(..count).unwrap()).is_err() {
                        break;
                    }
                    if passed > HELD_AFTER {
                        is_held.store(true, Ordering::SeqCst);
                        until("the worker is killed", || is_killed.load(Ordering::SeqCst));
                    }
                    if passed > CUT_AFTER && cuts.fetch_add(1, Ordering::SeqCst) < CUTS {
                        break;
                    }
                }
                to.shutdown(Shutdown::Both).ok();
                from.shutdown(Shutdown::Both).ok();
            });
        }
    });
    address
}

#[test]
fn an_event_source_in_chromium_gets_every_match_once_over_cuts_and_a_killed_worker() {
    let Some(chromium) = chromium() else {
        println!("left out: there is no Chromium here (apt-get install chromium)");
        return;
    };
    let server = RedisServer::start(Persistence::None);
    let sandbox = Sandbox::on(&server);
    // Fewer than the events of a call may take: while nobody reads for a moment, none is lost.
    let numbers = format!("[{}]", (1..=21).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
    let alone = sandbox.run(&["subset-sum", "--sum", "115", &numbers]).expect(0);
    let expected: BTreeSet<&str> = alone.out.lines().map(|line| line.strip_prefix("Match: ").unwrap()).collect();
    let node = || sandbox.start(&["node", "--queue", "subset-sum", "--handler", "subset-sum"]);
    let (web, mut killed) = (Web::over(&server.url()), node());
    let (resumed, is_held, is_killed) = (Arc::<AtomicUsize>::default(), Arc::default(), Arc::default());
    let proxy = cutting_proxy(web.address, &resumed, &is_held, &is_killed);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/event_source.py");
    let path = format!("/subsetSum?data={numbers}&sum=115");
    let mut page = Command::new("python3");
    page.arg(script).args([chromium, &format!("http://{proxy}"), &path]).stdout(Stdio::piped());
    let mut page = page.spawn().unwrap();
    until("the search is in its middle", || is_held.load(Ordering::SeqCst));
    killed.kill();
    is_killed.store(true, Ordering::SeqCst);
    let _other = node();
    let mut told: Vec<(String, String, String)> = Vec::new();
    for line in BufReader::new(page.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let mut parts = line.splitn(3, '\t').map(str::to_owned);
        told.push((parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap()));
    }
    assert!(page.wait().unwrap().success());
    let opened = told.iter().filter(|(_, name, _)| name == "open").count();
    let (again, events) = (resumed.load(Ordering::SeqCst), told.iter().filter(|(_, name, _)| name != "open"));
    let number = |id: &str| id.strip_prefix("subset-sum/1@").and_then(|id| id.split_once(':')?.1.parse::<u64>().ok());
    let numbers = events.clone().map(|(id, ..)| number(id).unwrap());
    assert!(numbers.eq(1..=events.clone().count() as u64), "ids follow each other over all cuts");
    let matches: Vec<&str> = events.clone().filter(|it| it.1 == "match").map(|it| it.2.as_str()).collect();
    assert_eq!(matches.len(), expected.len(), "each once");
    assert!(matches.into_iter().collect::<BTreeSet<_>>() == expected, "all of them");
    assert_eq!(events.clone().filter(|it| it.1 == "restart").count(), 1, "the worker was killed in the middle");
    assert_eq!(told.last().map(|it| it.1.as_str()), Some("end"));
    assert!(opened > CUTS && again >= CUTS, "it came again: {opened} times open, {again} times behind an event");
    println!("{} matches in Chromium over {opened} connections", expected.len());
    until("the call has ended", || web.state("subset-sum/1") == "done");
}
