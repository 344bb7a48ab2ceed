//! Backups and restores of real fleets, stopped cleanly and killed: books and bodies as at the backup, never damaged.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at what it did not expect")]

mod sandbox;

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rusqlite::Connection;
use sandbox::{Running, Sandbox, until};
use serde_json::Value;

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

/// A fleet that generates and works, and leaves something undone: its handler is slow beside its source.
fn start(sandbox: &Sandbox) -> Running {
    let pushed = |sandbox: &Sandbox| {
        let books = sandbox.run(&["audit", "--json"]);
        if books.code == Some(0) { books.json()["pushed"].as_u64().unwrap() } else { 0 }
    };
    let before = pushed(sandbox);
    let node = sandbox.start(&[
        "node",
        "--interval",
        "1ms",
        "--handler",
        "demo",
        "--demo-delay",
        "0..20ms",
        "--demo-fail",
        "0.1",
        "--concurrency",
        "4",
    ]);
    let deadline = Instant::now() + Duration::from_secs(60);
    while pushed(sandbox) <= before + 100 {
        let look = || {
            let (audit, status) = (sandbox.run(&["audit", "--json"]), sandbox.run(&["status"]));
            format!("{:?} {}{}\n{}{}\n{}", audit.code, audit.out, audit.err, status.out, status.err, sandbox.log())
        };
        assert!(
            Instant::now() < deadline,
            "never: the fleet is at work, {before} were pushed before. Now:\n{}",
            look()
        );
        thread::sleep(Duration::from_millis(20));
    }
    node
}

fn stop_cleanly(sandbox: &Sandbox, mut node: Running) {
    sandbox.run(&["stop"]).expect(0);
    assert_eq!(node.wait(), Some(0));
    for suffix in ["-wal", "-shm"] {
        assert!(!beside(&sandbox.path(), suffix).exists(), "{suffix} is left after a clean stop");
    }
}

fn books(sandbox: &Sandbox) -> Value {
    sandbox.run(&["audit", "--deep", "--json"]).expect(0).json()
}

/// All bodies in a store, its log included.
fn bodies(path: &Path) -> Vec<(i64, i64, i64, Vec<u8>)> {
    let db = Connection::open(path).unwrap();
    db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    let mut query = db.prepare("SELECT queue, first, own, data FROM parcels ORDER BY 1, 2, 3").unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// What the books say of messages, without the counts of refusals.
fn counts(books: &Value) -> Vec<u64> {
    let states = ["pushed", "ready", "delayed", "in_flight", "done", "failed", "removed"];
    states.iter().map(|state| books[*state].as_u64().unwrap()).collect()
}

#[test]
fn twenty_backups_and_restores_of_stopped_and_killed_fleets() {
    let sandbox = Sandbox::new();
    let path = sandbox.path();
    let backup = sandbox.dir.path().join("backup.db");
    for round in 0..20 {
        let (clean, by_hand) = (round % 2 == 0, round % 4 >= 2);
        let mut node = start(&sandbox);
        // Of a fleet at work: checked on its own below.
        let live = sandbox.dir.path().join("live.db");
        sandbox.run(&["backup", "live.db", "--force"]).expect(0);
        if clean {
            stop_cleanly(&sandbox, node);
        } else {
            node.kill();
        }
        // By hand: the file alone after a clean stop, the file and its log after a kill.
        if by_hand {
            fs::copy(&path, &backup).unwrap();
            if !clean {
                fs::copy(beside(&path, "-wal"), beside(&backup, "-wal")).unwrap();
            }
        } else {
            sandbox.run(&["backup", "backup.db", "--force"]).expect(0);
        }
        let (before, bodies_before) = (books(&sandbox), bodies(&path));
        // It goes on, and is killed with its log in use.
        let mut node = start(&sandbox);
        node.kill();
        assert_ne!(counts(&books(&sandbox)), counts(&before));
        let mut node = start(&sandbox);
        node.kill();
        if by_hand {
            fs::copy(&backup, &path).unwrap();
            if !clean {
                fs::rename(beside(&backup, "-wal"), beside(&path, "-wal")).unwrap();
            }
        } else {
            sandbox.run(&["restore", "backup.db"]).expect(0);
            assert!(!beside(&path, "-wal").exists());
        }
        let after = books(&sandbox);
        assert_eq!((&after["balanced"], counts(&after)), (&true.into(), counts(&before)), "round {round}");
        assert!(bodies(&path) == bodies_before, "round {round}: other bodies");
        // The backup of the fleet at work is whole as well.
        let store = format!("sqlite:{}", live.display());
        let audit = sandbox.run(&["audit", "--deep", "--json", "--store", &store]).expect(0).json();
        assert!(audit["balanced"] == true && audit["pushed"].as_u64().unwrap() > 0, "{audit}");
        for suffix in [".replaced-1", ".replaced-1-wal", ".replaced-1-shm", "-wal.aside-1"] {
            fs::remove_file(beside(&path, suffix)).ok();
        }
    }
    let log = sandbox.log();
    assert!(!log.contains("damaged") && !log.contains("malformed"), "{log}");
}

#[test]
fn a_live_fleet_is_backed_up_and_not_restored() {
    let sandbox = Sandbox::new();
    let node = start(&sandbox);
    let made = sandbox.run(&["backup", "b.db", "--json"]).expect(0).json();
    assert_eq!(made["bytes"].as_u64().unwrap(), fs::metadata(sandbox.dir.path().join("b.db")).unwrap().len());
    let refused = sandbox.run(&["backup", "b.db"]).expect(1);
    assert!(refused.one_line().contains("--force"), "{}", refused.err);
    let refused = sandbox.run(&["restore", "b.db"]).expect(1);
    let pid = format!("process {} (baton", node.pid());
    assert!(refused.one_line().contains(&pid) && refused.err.contains("baton stop"), "{}", refused.err);
    stop_cleanly(&sandbox, node);
    let restored = sandbox.run(&["restore", "b.db", "--json"]).expect(0).json();
    assert!(Path::new(restored["kept"].as_str().unwrap()).exists(), "{restored}");
    assert_eq!(books(&sandbox)["balanced"], true);
    // Into a place where there is none yet.
    let ran = sandbox.run(&["restore", "b.db", "--store", "sqlite:place.db"]).expect(0);
    assert!(ran.out.contains("restored from b.db") && !ran.out.contains("kept"), "{}", ran.out);
}

#[test]
fn a_store_whose_file_is_gone_is_not_restored_while_nodes_wait_for_it() {
    let sandbox = Sandbox::new();
    let node = start(&sandbox);
    sandbox.run(&["backup", "b.db"]).expect(0);
    let away = sandbox.path().with_extension("away");
    fs::rename(sandbox.path(), &away).unwrap();
    let refused = sandbox.run(&["restore", "b.db"]).expect(1);
    assert!(refused.one_line().contains("processes that wait for its file"), "{}", refused.err);
    fs::rename(&away, sandbox.path()).unwrap();
    stop_cleanly(&sandbox, node);
    sandbox.run(&["restore", "b.db"]).expect(0);
}

#[test]
fn other_stores_are_backed_up_by_their_own_means() {
    let sandbox = Sandbox::new();
    for (arguments, hint) in [
        (["backup", "b.db", "--rport", "1"], "BGSAVE"),
        (["restore", "b.db", "--rport", "1"], "BGSAVE"),
        (["backup", "b.db", "--store", "memory:"], "memory"),
    ] {
        assert!(sandbox.run(&arguments).expect(2).one_line().contains(hint));
    }
    for arguments in [["backup", "b.db"], ["restore", "b.db"]] {
        assert!(sandbox.run(&arguments).expect(5).one_line().contains("no "), "{arguments:?}");
        assert!(!sandbox.dir.path().join("b.db").exists());
    }
}

#[test]
fn a_backup_takes_the_place_of_nothing_but_a_regular_file_that_is_not_the_stores() {
    let sandbox = Sandbox::new();
    let folder = sandbox.dir.path();
    let mut node = sandbox.start(&["node", "--handler", "noop", "--queue", "other"]);
    until("it has joined", || sandbox.nodes(None).len() == 1);
    sandbox.run(&["push", "messages", "1", "2"]).expect(0);
    let pipe = std::process::Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap();
    assert!(pipe.success());
    sandbox.write("target", "kept");
    std::os::unix::fs::symlink("target", folder.join("link")).unwrap();
    std::os::unix::fs::symlink("baton.db-wal", folder.join("to-log")).unwrap();
    fs::hard_link(beside(&sandbox.path(), "-wal"), folder.join("log-again")).unwrap();
    fs::hard_link(sandbox.path(), folder.join("again.db")).unwrap();
    fs::create_dir(folder.join("folder")).unwrap();
    let kept: Vec<_> = ["-wal", "-shm", "-lock", "-gate", "-door", "-log"].map(|it| format!("baton.db{it}")).into();
    let number = |name: &str| std::os::unix::fs::MetadataExt::ino(&fs::symlink_metadata(folder.join(name)).unwrap());
    let before: Vec<u64> = kept.iter().map(|name| number(name)).collect();
    let own = "belongs to the store itself; name another file";
    let more = ["baton.db-wake", "baton.db-reserve", "baton.db-journal", "to-log", "log-again"];
    let mut cases: Vec<(&str, &str)> = kept.iter().map(String::as_str).chain(more).map(|name| (name, own)).collect();
    cases.extend([("again.db", "is the store itself"), ("link", "is a link to target; name a file")]);
    cases.extend(["pipe", "folder"].map(|name| (name, "is not a regular file; name another")));
    for (name, why) in cases {
        let ran = sandbox.run(&["backup", name, "--force"]).expect(5);
        assert!(ran.one_line().contains(why), "{name}: {}", ran.err);
    }
    assert_eq!(kept.iter().map(|name| number(name)).collect::<Vec<_>>(), before);
    assert_eq!(fs::read_to_string(folder.join("target")).unwrap(), "kept");
    sandbox.run(&["backup", "target", "--force"]).expect(0);
    node.signal("-TERM");
    assert_eq!(node.wait(), Some(0));
    assert_eq!(sandbox.pushed(), 2);
}

#[test]
fn what_is_wrong_with_a_backup_is_said_of_the_backup() {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "messages", "1"]).expect(0);
    sandbox.write("junk.db", "x".repeat(5000));
    sandbox.write("file", "");
    for (arguments, named) in [
        (&["backup", "file/x.db"][..], "file"),
        (&["backup", "--force", "baton.db"], "baton.db is the store itself; name another file"),
        (&["restore", "nothere.db"], "no backup at "),
        (&["restore", "junk.db"], "junk.db is not a Baton store; "),
    ] {
        let ran = sandbox.run(arguments).expect(5);
        let line = ran.one_line();
        assert!(line.contains(named), "{line}");
        assert!(!line.contains("the store cannot be used") && !line.contains("--store"), "{line}");
    }
    assert_eq!(sandbox.pushed(), 1);
}
