//! What is said to who gives a message to a queue that nobody works for, and of a call that is broken off.

mod sandbox;

use std::io::{Read as _, Write as _};

use baton_testkit::server::{Persistence, RedisServer};
use sandbox::{Sandbox, until};

#[test]
fn a_push_to_a_queue_that_nobody_knows_or_works_for_says_so_and_which_was_perhaps_meant() {
    let sandbox = Sandbox::new();
    let push = |queue: &str| sandbox.run(&["push", queue, "1"]).expect(0).err;
    assert!(push("fetch").contains("a new store was made"));
    let store = format!("sqlite:{}", sandbox.path().display());
    assert_eq!(push("fetch"), format!("baton: no node works for queue fetch in {store}\n"));
    let keyed = sandbox.run(&["push", "fetch", "1", "--once", "a"]).expect(0).err;
    assert_eq!(keyed, format!("baton: no node works for queue fetch in {store}\n"));
    assert_eq!(sandbox.run(&["push", "fetch", "1", "--json"]).expect(0).err, "");
    let new = |queue: &str| format!("baton: queue {queue} is new in sqlite:{}, and no", sandbox.path().display());
    // One whose messages only wait may be a slip itself.
    assert_eq!(push("fetzh"), format!("{} node works for it\n", new("fetzh")));
    sandbox.run(&["node", "-q", "--queue", "fetch", "--handler", "noop", "--until-done"]).expect(0);
    assert_eq!(push("fetsh"), format!("{} node works for it; did you mean fetch?\n", new("fetsh")));
    assert_eq!(push("fetsh"), format!("baton: no node works for queue fetsh in {store}; did you mean fetch?\n"));
    assert_eq!(push("invoices"), format!("{} node works for it\n", new("invoices")));
    let _node = sandbox.start(&["node", "--queue", "worked", "--handler", "noop"]);
    until("it has joined", || sandbox.nodes(None).len() == 1);
    assert_eq!(push("worked"), "");
    assert_eq!(sandbox.pushed(), 9);
}

#[test]
fn a_queue_that_the_file_does_not_describe_is_refused_unless_it_is_known_or_to_be_made() {
    let sandbox = Sandbox::new();
    sandbox.write("baton.toml", "[queues.mail]\nhandler = \"none\"\n[queues.mails]\nhandler = \"none\"\n");
    let run = |args: &[&str]| sandbox.run(args);
    let push = |store: &str, queue: &str| run(&["push", queue, "1", "--store", store]).expect(0).err;
    let (made, new) = ("baton: a new store was made: sqlite:", "baton: queue mial is new in sqlite:");
    let refused = "baton: there is no queue mial in sqlite:a.db, and the fleet's file does not describe it; did you mean \
                   mail? --create makes it";
    for command in [&["push"][..], &["push", "--once", "a"], &["call"]] {
        let ran = run(&[command, &["mial", "1", "--store", "sqlite:a.db"]].concat()).expect(1);
        assert_eq!(ran.one_line(), refused);
    }
    assert!(!sandbox.dir.path().join("a.db").exists(), "nothing was made");
    let like = "and no node works for it; did you mean mail?";
    let created = run(&["push", "mial", "1", "--create", "--store", "sqlite:a.db"]).expect(0).err;
    assert_eq!(created, format!("{made}a.db\n{new}a.db, {like}\n"));
    // Now it is stored.
    let unworked = "baton: no node works for queue mial in sqlite:a.db; did you mean mail?\n";
    assert_eq!(push("sqlite:a.db", "mial"), unworked);
    assert_eq!(push("sqlite:b.db", "mail"), format!("{made}b.db\n"));
    run(&["push", "mial", "1", "--store", "sqlite:b.db"]).expect(1);
    // A name that the file has is right, whatever else is like it.
    assert_eq!(push("sqlite:b.db", "mails"), "baton: queue mails is new in sqlite:b.db, and no node works for it\n");
    // One with a mistake in it is for who runs it.
    sandbox.write("baton.toml", "[queues.mail]\n");
    assert_eq!(push("sqlite:c.db", "mial"), format!("{made}c.db\n"));
}

#[test]
fn a_call_to_a_queue_that_nobody_works_for_says_so_and_ctrl_c_cancels_it_for_good() {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "fetch", "1"]).expect(0);
    sandbox.run(&["node", "-q", "--queue", "fetch", "--handler", "noop", "--until-done"]).expect(0);
    let mut call = sandbox.start(&["call", "fetsh", "1"]);
    until("it is said", || sandbox.log().contains("baton: no node works for queue fetsh; did you mean fetch?\n"));
    call.signal("-INT");
    assert_eq!(call.wait(), Some(1));
    let log = sandbox.log();
    assert!(log.contains("baton: fetsh/1 is being cancelled: ") && !log.contains("again"), "{log}");
    // It has left, and closed the store in order: the last one out leaves no log.
    let names = std::fs::read_dir(sandbox.dir.path()).unwrap().map(|it| it.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().contains("-wal")).collect();
    assert!(left.is_empty(), "{left:?}");
    let _node = sandbox.start(&["node", "--queue", "fetsh", "--handler", "noop"]);
    until("nothing of it is left", || sandbox.count("fetsh", "ready") == 0);
    let audit = sandbox.run(&["audit", "fetsh", "--json"]).expect(0).json();
    assert_eq!((audit.get("cancelled").unwrap().as_u64(), audit.get("done").unwrap().as_u64()), (Some(1), Some(0)));
}

#[test]
fn a_call_to_a_paused_queue_says_so() {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "q", "1"]).expect(0);
    sandbox.run(&["pause", "q"]).expect(0);
    let mut call = sandbox.start(&["call", "q", "2"]);
    until("it is said", || sandbox.log().contains("baton: queue q is paused; `baton resume q` lets it go on\n"));
    call.signal("-INT");
    assert_eq!(call.wait(), Some(1), "{}", sandbox.log());
}

#[test]
fn a_call_whose_data_is_flushed_is_lost_and_not_one_that_never_was() {
    let server = RedisServer::start(Persistence::None);
    let sandbox = Sandbox::on(&server);
    let mut call = sandbox.start(&["call", "q", "2"]);
    until("it waits for a node", || sandbox.log().contains("no node works for queue q"));
    let address = server.url().trim_start_matches("redis://").split('/').next().unwrap().to_owned();
    let mut connection = std::net::TcpStream::connect(address).unwrap();
    connection.write_all(b"FLUSHALL\r\n").unwrap();
    assert_eq!(connection.read(&mut [0; 5]).unwrap(), 5);
    assert_eq!(call.wait(), Some(1), "{}", sandbox.log());
    let log = sandbox.log();
    assert!(log.contains("is lost: the store has it no more") && !log.contains("never was"), "{log}");
}

#[test]
fn a_call_whose_handler_runs_is_broken_off_by_ctrl_c_which_says_so() {
    let sandbox = Sandbox::new();
    let slow = ["--handler", "demo", "--demo-delay", "10m", "--demo-fail", "0"];
    let _node = sandbox.start(&[&["node", "--queue", "slow"][..], &slow].concat());
    until("it has joined", || sandbox.nodes(None).len() == 1);
    let mut call = sandbox.start(&["call", "slow", "1"]);
    until("it runs", || sandbox.count("slow", "in_flight") == 1);
    call.signal("-TERM");
    assert_eq!(call.wait(), Some(1));
    let log = sandbox.log();
    assert!(log.contains("baton: slow/1 was cancelled\n"), "{log}");
}
