//! The first lines of `up` and `node`: one event where the log is no terminal, a short block where it is one.

mod sandbox;
mod terminal;

use sandbox::{Sandbox, until};
use terminal::on_a_terminal;

/// The fields of the first line of a log.
fn first(log: &str) -> Vec<&str> {
    log.lines().next().unwrap_or_default().split(' ').skip(1).collect()
}

#[test]
fn the_log_begins_with_what_runs_where() {
    let sandbox = Sandbox::new();
    let (version, format) =
        (format!("version={}", env!("CARGO_PKG_VERSION")), format!("format={}", baton::store::FORMAT));
    let store = format!("store=sqlite:{}", sandbox.path().display());
    sandbox.run(&["push", "q", "1"]).expect(0);
    let node = ["node", "--handler", "noop", "--queue", "q", "--until-done"];
    let ran = sandbox.run(&node).expect(0);
    let expected = [&version[..], &format, &store, "description=none", "gateway=none", "queues=q", "sources=none"];
    assert_eq!(first(&ran.err)[..9], [&["info", "started"][..], &expected].concat(), "{}", ran.err);
    assert_eq!(sandbox.run(&[&node[..], &["-q"]].concat()).expect(0).err, "");

    let file = "[queues.a]\nhandler = \"noop\"\n[queues.b]\nhandler = \"none\"\n[sources.s]\nqueue = \"b\"\ninterval = \"1h\"\n";
    sandbox.write("baton.toml", file);
    let _up = sandbox.start(&["up", "--listen", "0", "--recipes", "--workers", "1"]);
    until("its worker is there", || sandbox.nodes(None).len() == 2);
    let log = sandbox.log();
    let said = first(&log);
    let description = said.iter().find(|it| it.starts_with("description=")).unwrap();
    assert!(description.ends_with("/baton.toml") && description.starts_with("description=/"), "{log}");
    assert!(said.contains(&"queues=a,subset-sum") && said.contains(&"sources=s"), "{log}");
    assert!(said.iter().any(|it| it.starts_with("gateway=http://127.0.0.1:")), "{log}");
    assert_eq!(log.matches(" started version=").count(), 1, "workers do not say it again: {log}");
}

#[test]
fn a_password_is_not_said() {
    let sandbox = Sandbox::new();
    let node = ["--store", "redis://me:secret@127.0.0.1:1/0", "--wait", "0", "node", "--handler", "noop"];
    let ran = sandbox.run(&node).expect(5);
    assert!(ran.err.contains(" store=redis://me:***@127.0.0.1:1/0 ") && !ran.err.contains("secret"), "{}", ran.err);
}

#[test]
fn on_a_terminal_it_is_a_block_of_five_lines() {
    let sandbox = Sandbox::new();
    sandbox.run(&["--fleet", "shop", "push", "q", "1"]).expect(0);
    let node = ["--fleet", "shop", "node", "--handler", "noop", "--queue", "q", "--until-done"];
    let text = on_a_terminal(&sandbox.command(&node), "", &[]).out.replace('\r', "");
    let block: Vec<&str> = text.lines().take(5).collect();
    let head = format!("baton {}, store format {}", env!("CARGO_PKG_VERSION"), baton::store::FORMAT);
    let store = format!("  store        sqlite:{}, fleet shop", sandbox.path().display());
    let rest = ["  description  none", "  gateway      none", "  queues       q; sources: none"];
    assert_eq!(block, [&[&head[..], &store][..], &rest].concat(), "{text}");
}
