//! Files of a store that are moved, replaced and deleted while nodes have them open: said so, waited for, and nothing
//! that was acknowledged is deleted.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at what it did not expect")]

mod sandbox;

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use sandbox::{Running, Sandbox, until};

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

fn pushed(sandbox: &Sandbox) -> u64 {
    let books = sandbox.run(&["audit", "--json", "--wait", "0"]);
    if books.code == Some(0) { books.json()["pushed"].as_u64().unwrap() } else { 0 }
}

fn goes_on(sandbox: &Sandbox) {
    let before = pushed(sandbox);
    until("messages are pushed", || pushed(sandbox) > before + 20);
    assert_eq!(sandbox.run(&["audit", "--deep", "--json"]).expect(0).json()["balanced"], true);
}

fn start(sandbox: &Sandbox) -> Vec<Running> {
    let node = || sandbox.start(&["node", "--interval", "2ms", "--handler", "noop"]);
    let nodes = vec![node(), node()];
    until("both have joined", || sandbox.nodes(None).len() == 2);
    goes_on(sandbox);
    nodes
}

#[test]
fn a_file_moved_away_is_said_and_waited_for() {
    let sandbox = Sandbox::new();
    let mut nodes = start(&sandbox);
    for round in 1..=3 {
        let before = pushed(&sandbox);
        let away = sandbox.dir.path().join("away.db");
        fs::rename(sandbox.path(), &away).unwrap();
        until("both nodes say so", || sandbox.log().matches("is gone").count() >= 2 * round);
        assert!(!sandbox.path().exists(), "a node made a store of its own");
        // Nor does any command, whoever comes: the accident can still be undone.
        for command in [&["push", "messages", "1"][..], &["node", "--handler", "noop"], &["status"], &["audit"]] {
            let said = sandbox.run(command).expect(5).err;
            let told = ["-wal is still here; ", "; bring the file back"].into_iter().all(|part| said.contains(part));
            assert!(told && said.lines().count() == 1, "{command:?}: {said}");
        }
        assert!(!sandbox.path().exists() && !beside(&sandbox.path(), "-wal.aside-1").exists());
        fs::rename(&away, sandbox.path()).unwrap();
        until("both nodes are back", || sandbox.log().matches("is back").count() >= 2 * round);
        goes_on(&sandbox);
        assert!(pushed(&sandbox) > before);
    }
    // The source went on where it stood: every number once, none begun anew.
    assert!(!sandbox.log().contains("another file"), "{}", sandbox.log());
    assert_eq!(sandbox.log().matches("from the start").count(), 1, "{}", sandbox.log());
    sandbox.run(&["stop"]).expect(0);
    assert!(nodes.iter_mut().all(|node| node.wait() == Some(0)));
    assert!(!beside(&sandbox.path(), "-wal").exists());
}

#[test]
fn a_file_replaced_by_a_backup_is_gone_on_with_and_the_former_log_is_kept() {
    for by_rename in [true, false] {
        let sandbox = Sandbox::new();
        let mut nodes = start(&sandbox);
        let backup = sandbox.dir.path().join("backup.db");
        sandbox.run(&["backup", "backup.db"]).expect(0);
        let at_backup = sandbox.run(&["audit", "--json", "--store", "sqlite:backup.db"]).expect(0).json();
        goes_on(&sandbox);
        let acknowledged = pushed(&sandbox);
        let former = sandbox.dir.path().join("former.db");
        if by_rename {
            // A second name, so that the file itself can be looked at afterwards.
            fs::hard_link(sandbox.path(), &former).unwrap();
            fs::rename(&backup, sandbox.path()).unwrap();
        } else {
            fs::copy(&backup, sandbox.path()).unwrap();
        }
        let aside = beside(&sandbox.path(), "-wal.aside-1");
        until("the former log is put aside", || aside.exists());
        until("both have joined anew", || sandbox.nodes(None).len() == 2);
        goes_on(&sandbox);
        assert!(sandbox.log().contains("belongs to another file"), "{}", sandbox.log());
        assert!(!sandbox.log().contains("damaged"), "{}", sandbox.log());
        assert!(nodes.iter_mut().all(|node| !sandbox::is_gone(node.pid())));
        sandbox.run(&["stop"]).expect(0);
        let restored = sandbox.run(&["audit", "--deep", "--json"]).expect(0).json();
        assert!(restored["pushed"].as_u64() > at_backup["pushed"].as_u64());
        if by_rename {
            // With its log beside it again, the former file holds all that was acknowledged.
            fs::rename(&aside, beside(&former, "-wal")).unwrap();
            let books = sandbox.run(&["audit", "--deep", "--json", "--store", "sqlite:former.db"]).expect(0).json();
            assert!(books["pushed"].as_u64().unwrap() >= acknowledged, "{books} but {acknowledged} were acknowledged");
        }
    }
}

#[test]
fn a_deleted_file_is_not_made_anew_and_its_log_stays() {
    let sandbox = Sandbox::new();
    let nodes = start(&sandbox);
    fs::remove_file(sandbox.path()).unwrap();
    until("both nodes say so", || sandbox.log().matches("is gone").count() == 2);
    assert!(fs::metadata(beside(&sandbox.path(), "-wal")).unwrap().len() > 0 && !sandbox.path().exists());
    // They wait, and end when they are asked to, at once if that is said again; two signals at one time are one wish.
    for mut node in nodes {
        let at_once = sandbox.log().matches("stopping at once").count();
        until("it stops at once, or had nothing to finish", || {
            node.signal("-TERM");
            sandbox::is_gone(node.pid()) || sandbox.log().matches("stopping at once").count() > at_once
        });
        assert_eq!(node.wait(), Some(0));
    }
    assert!(fs::metadata(beside(&sandbox.path(), "-wal")).unwrap().len() > 0 && !sandbox.path().exists());
}

#[test]
fn a_deleted_log_is_saved_into_the_file() {
    let sandbox = Sandbox::new();
    let mut nodes = start(&sandbox);
    let acknowledged = pushed(&sandbox);
    fs::remove_file(beside(&sandbox.path(), "-wal")).unwrap();
    goes_on(&sandbox);
    assert!(pushed(&sandbox) >= acknowledged);
    sandbox.run(&["stop"]).expect(0);
    assert!(nodes.iter_mut().all(|node| node.wait() == Some(0)));
    assert!(sandbox.run(&["audit", "--deep", "--json"]).expect(0).json()["pushed"].as_u64().unwrap() >= acknowledged);
}

#[test]
fn a_missing_file_is_known_at_once_to_whoever_only_looks() {
    let sandbox = Sandbox::new();
    let begun = Instant::now();
    for command in [&["status"][..], &["audit"], &["errors"], &["stats"], &["stop"], &["destroy", "--yes"]] {
        let ran = sandbox.run(command).expect(5);
        assert!(ran.one_line().contains("no store at"), "{}", ran.err);
    }
    assert!(!sandbox.path().exists());
    fs::write(sandbox.path(), "").unwrap();
    sandbox.run(&["status"]).expect(5);
    assert!(begun.elapsed() < Duration::from_secs(9), "no wait of ten seconds");
}

#[test]
fn whoever_only_reads_needs_no_right_to_write() {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "messages", "1", "2", "3"]).expect(0);
    let folder = sandbox.dir.path().to_owned();
    let rights = |mode| fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
    let look = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        // Whoever may do everything looks as somebody else.
        if fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
            command.uid(65_534).gid(65_534);
        }
        command.output().unwrap()
    };
    for suffix in ["", "-door", "-lock", "-gate", "-reserve"] {
        fs::set_permissions(beside(&sandbox.path(), suffix), fs::Permissions::from_mode(0o444)).unwrap();
    }
    rights(0o555);
    for arguments in [&["status", "--json"][..], &["audit", "--deep", "--json"]] {
        let output = look(arguments);
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), err.as_str()), (Some(0), ""), "{arguments:?}");
    }
    let audit: serde_json::Value = serde_json::from_slice(&look(&["audit", "--json"]).stdout).unwrap();
    assert_eq!(audit.get("ready"), Some(&3.into()));
    // What must write says so.
    let output = look(&["push", "messages", "4", "--wait", "0"]);
    assert_eq!(output.status.code(), Some(5), "{}", String::from_utf8_lossy(&output.stderr));
    rights(0o755);
}

#[test]
fn a_file_of_somebody_else_is_said_to_be_that() {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "messages", "1"]).expect(0);
    if !fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
        return;
    }
    // The files are their owner's alone, the folder is everybody's.
    fs::set_permissions(sandbox.dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    for arguments in [&["push", "messages", "2"][..], &["status"], &["node", "--handler", "noop"]] {
        let output = sandbox.command(arguments).uid(65_534).gid(65_534).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(5), "{said}");
        assert!(said.contains(&format!("{} may not be read: permission denied", sandbox.path().display())), "{said}");
        assert!(!said.contains("immutable") && !said.contains("folder that cannot"), "{said}");
    }
}

#[test]
fn a_node_says_who_holds_the_lock() {
    let sandbox = Sandbox::new();
    let mut node = sandbox.start(&["node", "--interval", "50ms", "--handler", "noop"]);
    until("it has joined", || sandbox.nodes(None).len() == 1);
    let db = rusqlite::Connection::open(sandbox.path()).unwrap();
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    let holder = format!("process {} (", std::process::id());
    until("it says who", || sandbox.log().contains(&holder));
    db.execute_batch("ROLLBACK").unwrap();
    until("it says that it is over", || sandbox.log().contains("free again after"));
    node.signal("-TERM");
    assert_eq!(node.wait(), Some(0));
}

#[test]
fn a_link_to_a_file_that_was_moved_away_is_no_place_for_a_new_store() {
    let sandbox = Sandbox::new();
    let folder = sandbox.dir.path();
    fs::create_dir(folder.join("real")).unwrap();
    std::os::unix::fs::symlink("real/x.db", folder.join("link.db")).unwrap();
    let push = |store: &str| sandbox.run(&["push", "messages", "1", "--store", store]);
    push("sqlite:real/x.db").expect(0);
    push("sqlite:link.db").expect(0);
    let mut node = sandbox.start(&["node", "--store", "sqlite:link.db", "--queue", "other", "--handler", "noop"]);
    until("it has joined", || sandbox.log().contains("joined"));
    fs::rename(folder.join("real/x.db"), folder.join("real/away.db")).unwrap();
    until("the node says so", || sandbox.log().contains("is gone"));
    for store in ["sqlite:real/x.db", "sqlite:link.db"] {
        assert!(push(store).expect(5).one_line().contains("is gone"));
    }
    assert!(fs::symlink_metadata(folder.join("link.db")).unwrap().is_symlink() && !folder.join("real/x.db").exists());
    fs::rename(folder.join("real/away.db"), folder.join("real/x.db")).unwrap();
    until("the node is back", || sandbox.log().contains("is back"));
    push("sqlite:link.db").expect(0);
    node.signal("-TERM");
    assert_eq!(node.wait(), Some(0));
    // One whose folder is away is no place either.
    fs::rename(folder.join("real"), folder.join("moved")).unwrap();
    assert!(push("sqlite:link.db").expect(5).one_line().contains("there is no folder"));
    fs::rename(folder.join("moved"), folder.join("real")).unwrap();
    let books = sandbox.run(&["audit", "--deep", "--json", "--store", "sqlite:real/x.db"]).expect(0).json();
    assert_eq!((&books["pushed"], &books["balanced"]), (&3.into(), &true.into()));
}
