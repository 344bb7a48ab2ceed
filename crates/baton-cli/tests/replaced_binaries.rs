//! A fleet whose binaries are replaced one by one, as an update of the same store format does it.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at what it did not expect")]

mod sandbox;

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use baton_testkit::server::{Persistence, RedisServer};
use sandbox::{Sandbox, until};
use serde_json::json;

const TICKS: u64 = 1_500;

/// A node of another copy of the binary, which ends by itself when all is done.
fn node(sandbox: &Sandbox, binary: &Path) -> Child {
    let count = TICKS.to_string();
    let arguments =
        ["node", "--interval", "1ms", "--count", &count, "--handler", "noop", "--queue", "ticks", "--until-done"];
    let model = sandbox.command(&arguments);
    let mut command = Command::new(binary);
    command.args(arguments).env_clear();
    command.envs(model.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let log = std::fs::OpenOptions::new().create(true).append(true).open(sandbox.dir.path().join("log")).unwrap();
    command.current_dir(sandbox.dir.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

fn copy_of_the_binary(folder: &Path, nth: usize) -> PathBuf {
    let copy = folder.join(format!("baton-{nth}"));
    std::fs::copy(env!("CARGO_BIN_EXE_baton"), &copy).unwrap();
    copy
}

fn is_updated(sandbox: &Sandbox) {
    let folder = sandbox.dir.path();
    let mut running =
        vec![node(sandbox, &copy_of_the_binary(folder, 0)), node(sandbox, &copy_of_the_binary(folder, 1))];
    for nth in 2..6 {
        let before = sandbox.count("ticks", "done");
        until("messages flow", || sandbox.count("ticks", "done") > before || sandbox.count("ticks", "done") == TICKS);
        // The new one has joined before the old one goes: once in good order, once by kill -9.
        let next = node(sandbox, &copy_of_the_binary(folder, nth));
        until("the new one has joined", || {
            sandbox.nodes(None).contains(&next.id()) || sandbox.count("ticks", "done") == TICKS
        });
        let mut old = running.remove(0);
        running.push(next);
        if nth % 2 == 0 {
            assert!(Command::new("kill").arg(old.id().to_string()).status().unwrap().success());
        } else {
            old.kill().unwrap();
        }
        old.wait().unwrap();
        std::fs::remove_file(folder.join(format!("baton-{}", nth - 2))).unwrap();
    }
    for mut node in running {
        assert_eq!(node.wait().unwrap().code(), Some(0), "{}", sandbox.log());
    }
    let books = sandbox.run(&["audit", "--deep", "--json"]).expect(0).json();
    assert_eq!((&books["pushed"], &books["done"], &books["balanced"]), (&json!(TICKS), &json!(TICKS), &json!(true)));
    assert_eq!(sandbox.status()["sources"][0]["cursor"], json!(TICKS.to_string()));
}

#[test]
fn binaries_are_replaced_under_a_running_fleet() {
    is_updated(&Sandbox::new());
    is_updated(&Sandbox::on(&RedisServer::start(Persistence::None)));
}
