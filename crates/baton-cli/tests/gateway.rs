//! The gateway of `up`: where it is, for whom, and what can be asked of it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod sandbox;

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    process::Command,
};

use baton_testkit::server::{Persistence, RedisServer};
use sandbox::{Running, Sandbox, is_gone, until};
use serde_json::{Value, json};

/// Where the gateway of an `up` in this sandbox says it is.
fn address(sandbox: &Sandbox) -> String {
    let mut found = None;
    until("the gateway is there", || {
        let log = sandbox.log();
        found = log.split("gateway=http://").nth(1).and_then(|rest| rest.split_whitespace().next()).map(str::to_owned);
        found.is_some()
    });
    found.unwrap()
}

/// The whole answer to a request; the connection ends with it.
fn ask(address: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    write!(stream, "{head} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{length}content-type: application/json\r\n\r\n{body}")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn up(sandbox: &Sandbox, flags: &[&str]) -> Running {
    let up = sandbox.start(&[&["up", "--queue", "work", "--handler", "noop", "--workers", "0"][..], flags].concat());
    until("it runs", || !sandbox.nodes(None).is_empty());
    up
}

#[test]
fn up_answers_and_what_is_pushed_is_worked_off() {
    let server = RedisServer::start(Persistence::None);
    for sandbox in [Sandbox::new(), Sandbox::on(&server)] {
        let mut up = up(&sandbox, &["--listen", "0", "--recipes"]);
        let address = address(&sandbox);
        assert!(ask(&address, "GET /health", "").ends_with("\r\n\r\nI'm alive!"));
        let pushed = ask(&address, "POST /push/work", "{\"n\":1}");
        assert!(pushed.starts_with("HTTP/1.1 202 ") && pushed.contains("location: /messages/work/1@"), "{pushed}");
        until("it is done", || sandbox.count("work", "done") == 1);
        let found = ask(&address, "GET /subsetSum?data=[1,2,-3,3]&sum=0", "");
        assert!(found.contains("Match: [1,2,-3]\n") && found.contains("Match: [-3,3]\n"), "{found}");
        let split = ask(&address, "GET /subsetSum?data=[1,2,-3,3]&sum=0&mode=fleet", "");
        assert!(split.contains("Match: [1,2,-3]\n") && split.contains("Match: [-3,3]\n"), "{split}");
        let refused = ask(&address, "GET /subsetSum?data=[1,2,-3", "");
        assert!(refused.starts_with("HTTP/1.1 400 "), "{refused}");
        sandbox.run(&["stop"]).expect(0);
        assert_eq!(up.wait(), Some(0), "{}", sandbox.log());
        assert!(TcpStream::connect(&address).is_err());
        sandbox.run(&["audit", "--deep"]).expect(0);
    }
}

#[test]
fn a_request_that_is_broken_off_at_the_stop_is_no_message_that_runs_again() {
    let sandbox = Sandbox::new();
    let mut up = up(&sandbox, &["--listen", "0", "--grace", "300ms"]);
    let address = address(&sandbox);
    let mut stream = TcpStream::connect(&address).unwrap();
    let head = "content-type: application/json\r\ncontent-length: 3\r\nexpect: 100-continue";
    write!(stream, "POST /push/work HTTP/1.1\r\nhost: {address}\r\n{head}\r\n\r\n").unwrap();
    let mut goes_on = [0; 25];
    stream.read_exact(&mut goes_on).unwrap();
    assert_eq!(&goes_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    up.signal("-TERM");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("\"code\":\"maybe-stored\""), "{answer}");
    assert_eq!(up.wait(), Some(0), "{}", sandbox.log());
    assert!(!sandbox.log().contains("runs again later"), "{}", sandbox.log());
}

#[test]
fn only_the_demonstration_takes_the_next_port_and_says_so() {
    // Another program, or another test, has the usual one.
    let _taken = std::net::TcpListener::bind("127.0.0.1:8000");
    let demo = Sandbox::new();
    let _demo = demo.start(&["up", "--demo", "--workers", "0", "--quiet"]);
    until("it says where it is", || demo.log().contains("the gateway of the demonstration is at http://127.0.0.1:80"));
    assert!(demo.log().contains("baton: port 8000 is taken"), "{}", demo.log());
    let plain = Sandbox::new();
    let refused = plain.run(&["up", "--queue", "work", "--handler", "noop", "--workers", "0"]).expect(1);
    let line = refused.one_line();
    assert!(line.starts_with("baton: cannot listen at 127.0.0.1:8000: it is taken"), "{line}");
    assert!(line.contains("by --listen") && line.contains("--no-gateway"), "{line}");
}

#[test]
fn a_file_may_say_where_the_gateway_listens_and_none_is_there_where_none_is_wanted() {
    let described = Sandbox::new();
    described.write("baton.toml", "[gateway]\nlisten = 0\n[queues.work]\nhandler = \"noop\"\n");
    let _up = described.start(&["up", "--workers", "0"]);
    assert_ne!(address(&described), "127.0.0.1:8000");
    described.write("baton.toml", "[gateway]\nlisten = \"nowhere\"\nlistn = 1\n");
    let refused = described.run(&["config", "--check"]).expect(2).err;
    assert!(refused.contains("baton.toml:2:10: listen of gateway: not an address"), "{refused}");
    assert!(refused.contains("baton.toml:3:1: unknown key \"listn\" of gateway; did you mean listen?"), "{refused}");
    let none = Sandbox::new();
    let _none = up(&none, &["--no-gateway"]);
    assert!(none.log().contains(" gateway=none "), "{}", none.log());
    let until_done = Sandbox::new();
    until_done.write("lines", "a\nb\n");
    let work = ["up", "--queue", "work", "--handler", "noop", "--until-done"];
    let ran = until_done.run(&[&work[..], &["--lines", "lines"]].concat()).expect(0);
    assert!(ran.err.contains(" gateway=none "), "{}", ran.err);
    let ran = until_done.run(&[&work[..], &["--listen", "0"]].concat()).expect(0);
    assert!(ran.err.contains(" gateway=http://127.0.0.1:"), "{}", ran.err);
}

#[test]
fn recipes_are_there_on_request_by_flag_or_file_and_in_no_other_fleet() {
    let plain = Sandbox::new();
    let _plain = up(&plain, &["--listen", "0"]);
    let refused = ask(&address(&plain), "GET /totalSales", "");
    assert!(refused.starts_with("HTTP/1.1 404 ") && refused.contains("start it with --recipes"), "{refused}");
    let queues = |sandbox: &Sandbox| sandbox.status()["queues"].to_string();
    assert!(!queues(&plain).contains("subset-sum"), "{}", queues(&plain));
    let described = Sandbox::new();
    described.write("baton.toml", "recipes = true\n[queues.work]\nhandler = \"noop\"\n");
    let _described = described.start(&["up", "--workers", "0", "--listen", "0"]);
    let address = address(&described);
    assert!(ask(&address, SEARCH, "").contains("Match: [1,2,-3]\n"));
    assert!(queues(&described).contains("subset-sum"), "{}", queues(&described));
    for flag in ["--linger", "--sales", "--search-timeout", "--search-output-timeout", "--demo-init"] {
        let refused = plain.run(&["up", "--queue", "q", "--handler", "noop", flag, "5s"]).expect(2);
        let line = refused.one_line();
        assert!(line.contains(flag) && line.ends_with("; add --recipes or --demo"), "{line}");
    }
}

#[test]
fn an_address_that_is_taken_or_open_to_others_is_refused_with_what_to_do() {
    let sandbox = Sandbox::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    // Where an address is named, the demonstration takes no other either.
    let ran = sandbox.run(&["up", "--demo", "--listen", &address]).expect(1);
    let holder = if cfg!(target_os = "linux") { format!(" (process {})", std::process::id()) } else { String::new() };
    assert!(ran.one_line().contains(&format!("cannot listen at {address}: it is taken")), "{}", ran.err);
    assert!(ran.one_line().contains(&holder) && ran.one_line().contains("--listen"), "{}", ran.err);
    let ran = sandbox.run(&["up", "--demo", "--listen", "0.0.0.0:0"]).expect(2);
    assert!(ran.one_line().contains("`baton token add NAME`"), "{}", ran.err);
    let ran = sandbox.run(&["up", "--demo", "--listen", "nonsense"]).expect(2);
    assert!(ran.one_line().contains("not an address"), "{}", ran.err);
}

#[test]
fn tokens_are_made_listed_and_revoked_and_asked_for_from_the_first_on() {
    let sandbox = Sandbox::new();
    assert!(sandbox.run(&["token", "list"]).expect(0).out.contains("is open to everybody on this machine"));
    let added = sandbox.run(&["token", "add", "ci"]).expect(0);
    let fleet = format!("fleet baton at sqlite:{}", sandbox.path().display());
    assert!(added.err.contains(&format!("token ci is of {fleet}")), "{}", added.err);
    let token = added.out.trim().to_owned();
    assert!(token.starts_with("baton_") && token.len() == 70, "{token}");
    sandbox.run(&["token", "add", "ci"]).expect(1);
    let reader = sandbox.run(&["token", "add", "eye", "--right", "read", "--json"]).expect(0).json();
    assert_eq!((&reader["name"], &reader["right"]), (&json!("eye"), &json!("read")));
    let listed = sandbox.run(&["token", "list", "--json"]).expect(0);
    assert!(!listed.out.contains(&token), "{}", listed.out);
    let names: Vec<Value> = listed.json()["tokens"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, ["ci", "eye"]);
    let _up = up(&sandbox, &["--listen", "0.0.0.0:0"]);
    let address = address(&sandbox).replace("0.0.0.0", "127.0.0.1");
    assert!(ask(&address, "POST /push/work", "1").starts_with("HTTP/1.1 401 "));
    let with =
        |token: &str| ask(&address, &format!("POST /push/work HTTP/1.1\r\nauthorization: Bearer {token}\r\nx:"), "1");
    assert!(with(&token).starts_with("HTTP/1.1 202 "), "{}", with(&token));
    assert!(with(reader["token"].as_str().unwrap()).starts_with("HTTP/1.1 403 "));
    assert!(sandbox.log().contains("the gateway asks for a token, and 2 are valid"), "{}", sandbox.log());
    assert_eq!(sandbox.run(&["token", "revoke", "ci"]).expect(0).out, format!("revoked token ci of {fleet}\n"));
    sandbox.run(&["token", "revoke", "ci"]).expect(1);
    until("it is revoked", || with(&token).starts_with("HTTP/1.1 401 "));
    let last = sandbox.run(&["token", "revoke", "eye"]).expect(0).out;
    assert!(last.contains("that was the last one: the gateway stays closed to everybody until `baton token open`"));
    until("it is told", || sandbox.log().contains("gateway: token eye was revoked"));
    assert!(!sandbox.log().contains(&token), "{}", sandbox.log());
}

#[test]
fn a_token_of_one_shop_closes_no_other_and_no_other_address_of_its_store_is_open() {
    let (shop, other) = (Sandbox::new(), Sandbox::new());
    // Both are shops of one user, who has one state folder, and have the default name.
    let state = tempfile::TempDir::new().unwrap();
    let run = |sandbox: &Sandbox, arguments: &[&str]| {
        sandbox::Ran::of(sandbox.command(arguments).env("XDG_STATE_HOME", state.path()).output().unwrap())
    };
    let start = |sandbox: &Sandbox, flags: &[&str]| {
        std::fs::remove_file(sandbox.dir.path().join("log")).ok();
        let up = ["up", "--queue", "work", "--handler", "noop", "--workers", "0", "--listen", "0"];
        let mut command = sandbox.command(&[&up[..], flags].concat());
        let up = sandbox.start_by(command.env("XDG_STATE_HOME", state.path()));
        (up, address(sandbox))
    };
    let status = |address: &str| ask(address, "POST /push/work", "1").split(' ').nth(1).unwrap().to_owned();
    let (up, at) = start(&shop, &[]);
    let (other_up, other_at) = start(&other, &[]);
    until("it is said that it is open", || other.log().contains("the gateway is open to everybody on this machine"));
    run(&shop, &["token", "add", "ci"]).expect(0);
    until("the shop is closed", || status(&at) == "401");
    until("the log tells", || {
        let log = shop.log();
        log.contains("gateway: token ci was added") && log.contains("closed to callers without a token from now on")
    });
    assert_eq!(status(&other_at), "202");
    assert!(!other.log().contains("token ci"), "{}", other.log());
    drop((up, other_up));
    let (other_up, other_at) = start(&other, &[]);
    assert_eq!(status(&other_at), "202", "after a restart too");
    drop(other_up);

    // The last token goes: it stays closed, by any address.
    run(&shop, &["token", "revoke", "ci"]).expect(0);
    let closed = |store: &str, why: &str| {
        let (_up, at) = start(&shop, &["--store", store]);
        assert_eq!(status(&at), "401", "{why}");
        until("it is said", || shop.log().contains("the gateway is closed, because no token is valid"));
        assert!(run(&shop, &["token", "list", "--store", store]).expect(0).out.contains("the gateway is closed"));
        assert_eq!(run(&shop, &["token", "list", "--json", "--store", store]).expect(0).json()["gateway"], "closed");
    };
    closed("sqlite:baton.db", "a relative path");
    std::os::unix::fs::symlink(shop.path(), shop.dir.path().join("link.db")).unwrap();
    closed("sqlite:link.db", "a link");
    for end in ["", "-wal", "-shm"] {
        let name = |name: &str| shop.dir.path().join(format!("{name}{end}"));
        std::fs::rename(name("baton.db"), name("moved.db")).ok();
    }
    closed("sqlite:moved.db", "a file that was moved");
    closed("sqlite:baton.db", "a store without data at the same address");

    let said = run(&shop, &["token", "open", "--store", "sqlite:moved.db"]).expect(0).out;
    assert!(said.contains("moved.db") && said.contains("every user and program of this machine may push"), "{said}");
    let (up, at) = start(&shop, &["--store", "sqlite:moved.db"]);
    assert_eq!(status(&at), "202");
    run(&shop, &["token", "add", "ci", "--store", "sqlite:moved.db"]).expect(0);
    until("it is closed", || status(&at) == "401");
    let ran = run(&shop, &["token", "open", "--store", "sqlite:moved.db"]).expect(1);
    assert!(ran.one_line().contains("there are tokens: ci; revoke them first"), "{}", ran.err);
    drop(up);
}

#[test]
fn a_server_stays_closed_by_any_name_of_this_host_and_after_a_flush() {
    let server = RedisServer::start(Persistence::None);
    let sandbox = Sandbox::new();
    let port = server.url().split(':').nth(2).unwrap().split('/').next().unwrap().to_owned();
    sandbox.run(&["token", "add", "ci", "--store", &format!("redis://localhost:{port}/0")]).expect(0);
    sandbox.run(&["token", "revoke", "ci", "--store", &format!("redis://:secret@127.0.0.1:{port}")]).expect(0);
    let store = format!("redis://127.0.0.1:{port}");
    let _up = sandbox.start(&["up", "--queue", "work", "--handler", "noop", "--listen", "0", "--store", &store]);
    let at = address(&sandbox);
    assert!(ask(&at, "POST /push/work", "1").starts_with("HTTP/1.1 401 "));
    let text = std::fs::read_to_string(sandbox.dir.path().join(".local/state/baton/tokens.json")).unwrap();
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn a_call_is_followed_from_the_shell() {
    let sandbox = Sandbox::new();
    let _up = up(&sandbox, &["--listen", "0", "--recipes"]);
    let ran = sandbox.run(&["call", "subset-sum", r#"{"data":[1,2,-3],"sum":0}"#]).expect(0);
    let lines: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0], json!({"number": 1, "event": "match", "data": [1, 2, -3]}));
    assert_eq!(lines[1]["event"], "end");
    let ran = sandbox.run(&["call", "subset-sum", r#"{"data":[1,2,-3],"sum":0}"#, "--result"]).expect(0);
    assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap()["count"], 1);
    sandbox.run(&["call", "subset-sum", "{}"]).expect(3);
    assert!(sandbox.run(&["call", "work", "{"]).expect(1).one_line().contains("is not JSON"));
    assert_eq!(sandbox.run(&["call", "work", "7"]).expect(0).out, "{\"number\":1,\"event\":\"end\",\"data\":null}\n");
}

#[test]
fn what_a_child_tells_before_its_end_reaches_who_follows_the_call() {
    let sandbox = Sandbox::new();
    let text = "#!/bin/sh\nwhile read -r line; do\n\
        echo '{\"event\":\"progress\",\"data\":{\"done\":50}}'\n\
        echo '{\"event\":\"match\",\"key\":\"a\",\"data\":[1]}'\necho '{\"event\":\"match\",\"key\":\"a\",\"data\":[1]}'\n\
        echo '{\"event\":\"note\"}'\necho '{\"event\":\"end\",\"data\":7}'\ndone\n";
    sandbox.write("tells.sh", text);
    let node = sandbox.start(&["node", "--queue", "work", "--exec", "/bin/sh tells.sh"]);
    let ran = sandbox.run(&["call", "work", "1"]).expect(0);
    let told: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = told.iter().map(|it| (it["event"].as_str().unwrap(), &it["data"])).collect();
    let (done, one, seven) = (json!({"done": 50}), json!([1]), json!(7));
    // What has a key is told once.
    assert_eq!(told, [("progress", &done), ("match", &one), ("note", &Value::Null), ("end", &seven)]);
    // Others may be pushed to the same child: nobody follows them.
    sandbox.run(&["push", "work", "1"]).expect(0);
    until("it is done", || sandbox.count("work", "done") == 2);
    drop(node);
}

#[test]
fn a_caller_is_told_the_cause_in_a_line_and_nothing_that_its_child_said_of_others() {
    let sandbox = Sandbox::new();
    let text = "#!/bin/sh\nwhile read -r line; do\ncase $line in\n\
        *fine*) echo 'card 1234' >&2; echo '{\"event\":\"end\",\"result\":1}';;\n\
        *) echo 'about to break' >&2; echo 'KeyError: x' >&2; exit 1;;\nesac\ndone\n";
    sandbox.write("breaks.sh", text);
    let _node = sandbox.start(&["node", "--queue", "work", "--concurrency", "1", "--exec", "/bin/sh breaks.sh"]);
    for _ in 0..2 {
        sandbox.run(&["call", "work", "\"fine\""]).expect(0);
    }
    until("it is said that nobody reads that", || sandbox.log().contains("wrote \"result\" into its `end` event"));
    assert_eq!(sandbox.log().matches("into its `end` event").count(), 1, "{}", sandbox.log());
    let ran = sandbox.run(&["call", "work", "1"]).expect(3);
    let told: Value = serde_json::from_str(ran.out.trim()).unwrap();
    let cause = "the child failed with exit code 1 before it answered: KeyError: x";
    assert_eq!(told["data"], json!({"message": cause}));
    assert_eq!(ran.one_line(), "baton: work/3 failed; see `baton errors work`");
    let listed = sandbox.run(&["errors", "--json"]).expect(0).json();
    assert_eq!(listed["error"], format!("{cause}\nabout to break\nKeyError: x"));
    assert!(sandbox.log().contains("card 1234"), "{}", sandbox.log());
    let ran = sandbox.run(&["call", "work", "1", "--result"]).expect(3);
    assert!(ran.one_line().contains(cause), "{}", ran.err);
}

const SEARCH: &str = "GET /subsetSum?data=[1,2,-3,3]&sum=0";

/// A gateway whose only child, which has searched before and waits, stands still.
fn with_a_frozen_child(sandbox: &Sandbox, flags: &[&str]) -> (Running, String, u32) {
    let up = up(sandbox, &[&["--recipes", "--listen", "0"], flags].concat());
    let address = address(sandbox);
    assert!(ask(&address, SEARCH, "").contains("Match: [1,2,-3]\n"));
    let children = || {
        let found = Command::new("pgrep").args(["-P", &up.pid().to_string()]).output().unwrap().stdout;
        let found = String::from_utf8(found).unwrap();
        let searches = |pid: &u32| {
            let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.contains("subset-sum")
        };
        found.lines().map(|pid| pid.parse().unwrap()).find(searches)
    };
    let child: u32 = children().unwrap();
    assert!(Command::new("kill").args(["-STOP", &child.to_string()]).status().unwrap().success());
    (up, address, child)
}

#[test]
fn a_search_whose_child_stands_still_is_gone_on_with_by_another() {
    let sandbox = Sandbox::new();
    let (_up, address, child) = with_a_frozen_child(&sandbox, &["--search-output-timeout", "1s"]);
    let found = ask(&address, SEARCH, "");
    assert!(found.contains("Match: [1,2,-3]\n") && found.contains("Match: [-3,3]\n"), "{found}");
    assert!(!found.contains("Error"), "{found}");
    until("the first child is gone", || is_gone(child));
}

#[test]
fn a_search_that_takes_too_long_ends_with_an_error_and_its_child_is_gone() {
    let sandbox = Sandbox::new();
    let (_up, address, child) = with_a_frozen_child(&sandbox, &["--search-timeout", "1s"]);
    let found = ask(&address, SEARCH, "");
    assert!(found.contains("Error: the search was not finished after 1s"), "{found}");
    until("the child is gone", || is_gone(child));
}

#[test]
fn a_queue_that_the_file_does_not_describe_is_refused_unless_the_file_or_a_flag_opens_the_gateway() {
    let described = "[queues.messages]\nhandler = \"noop\"\n";
    let opened = format!("{described}[gateway]\nopen_queues = true\n");
    for (file, flags, status) in
        [(described, &[][..], "404"), (described, &["--open-queues"], "202"), (&opened, &[], "202")]
    {
        let sandbox = Sandbox::new();
        sandbox.write("baton.toml", file);
        let mut up = sandbox.start(&[&["up", "--workers", "0", "--listen", "0"][..], flags].concat());
        let address = address(&sandbox);
        let pushed = ask(&address, "POST /push/mesages", "1");
        assert!(pushed.starts_with(&format!("HTTP/1.1 {status} ")), "{pushed}");
        assert_eq!(status == "404", pushed.contains("no queue `mesages`; did you mean `messages`?"), "{pushed}");
        let pushed = ask(&address, "POST /push/messages", "1");
        assert!(pushed.starts_with("HTTP/1.1 202 "), "{pushed}");
        up.signal("-TERM");
        assert_eq!(up.wait(), Some(0), "{}", sandbox.log());
    }
    let sandbox = Sandbox::new();
    sandbox.write("baton.toml", format!("{described}[gateway]\nopen_queue = true\n"));
    let told = sandbox.run(&["config", "--check"]).expect(2).err;
    assert!(told.contains("unknown key \"open_queue\" of gateway; did you mean open_queues?"), "{told}");
}
