//! Stores of an older release: refused by one line, migrated by one command, also if that is killed.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod sandbox;

use std::{path::PathBuf, time::Duration};

use baton::store::FORMAT;
use baton_testkit::server::RedisServer;
use sandbox::Sandbox;
use serde_json::json;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../baton-testkit/fixtures").join(name)
}

fn in_a_file() -> Sandbox {
    let sandbox = Sandbox::new();
    std::fs::copy(fixture("format-1.sqlite"), sandbox.path()).unwrap();
    sandbox
}

#[test]
fn an_older_store_is_refused_with_what_to_do() {
    let server = RedisServer::start_from(&fixture("format-1.rdb"));
    for sandbox in [in_a_file(), Sandbox::on(&server)] {
        for command in [
            &["status"][..],
            &["push", "messages", "1"],
            &["errors"],
            &["audit", "--deep"],
            &["node", "-q", "--handler", "noop"],
            &["push", "messages", "--resume", "import", "10"],
        ] {
            let ran = sandbox.run(command).expect(5);
            let line = ran.one_line();
            assert!(line.contains(&format!("the store has format 1, this program needs format {FORMAT}")), "{line}");
            assert!(line.contains("; stop the fleet and run `baton migrate`"), "{line}");
        }
        let ran = sandbox.run(&["migrate"]).expect(0);
        assert!(ran.err.contains("watching for 1.2 s whether any of 3 sessions lives"), "{}", ran.err);
        assert!(
            ran.out.contains(&format!(
                "from format 1 to {FORMAT}: 3 silent sessions taken out, 7 messages back in their queues, 0 gone to the \
                 errors"
            )),
            "{}",
            ran.out
        );
        let again = sandbox.run(&["migrate", "--json"]).expect(0).json();
        assert_eq!((&again["migrated"], &again["from"], &again["to"]), (&json!(false), &json!(FORMAT), &json!(FORMAT)));
        let books = sandbox.run(&["audit", "--deep", "--json"]).expect(0).json();
        assert_eq!((&books["pushed"], &books["in_flight"], &books["failed"]), (&json!(71), &json!(0), &json!(1)));
    }
}

/// Several runs at once: each session is taken out by one of them, and only those who did something say so.
#[test]
fn of_several_migrations_at_once_each_tells_only_its_own_part() {
    let server = RedisServer::start_from(&fixture("format-1.rdb"));
    for sandbox in [in_a_file(), Sandbox::on(&server)] {
        let runs: Vec<_> = (0..3).map(|_| sandbox.command(&["migrate", "--json"]).spawn().unwrap()).collect();
        let ran: Vec<serde_json::Value> = runs
            .into_iter()
            .map(|run| run.wait_with_output().unwrap())
            .inspect(|ran| assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr)))
            .map(|ran| serde_json::from_slice(&ran.stdout).unwrap())
            .collect();
        let sum = |field: &str| ran.iter().map(|it| it[field].as_u64().unwrap()).sum::<u64>();
        assert_eq!((sum("sessions"), sum("back")), (3, 7), "{ran:?}");
        assert!(ran.iter().all(|it| it["migrated"] == (it["sessions"] != 0)), "{ran:?}");
    }
}

/// A copy can be made before, and after a restore it is of the old format again.
#[test]
fn a_backup_of_an_older_store_is_the_way_back() {
    let sandbox = in_a_file();
    sandbox.run(&["backup", "before.db"]).expect(0);
    sandbox.run(&["migrate"]).expect(0);
    sandbox.run(&["status"]).expect(0);
    sandbox.run(&["restore", "before.db"]).expect(0);
    sandbox.run(&["status"]).expect(5);
}

/// Killed with -9 at many moments around the conversion; in the end all is there.
#[test]
fn a_migration_survives_kills() {
    let server = RedisServer::start_from(&fixture("format-1.rdb"));
    for sandbox in [in_a_file(), Sandbox::on(&server)] {
        // It watches for 1.2 s; the conversion follows.
        for after_ms in (1_190..1_290).step_by(25) {
            let mut migration = sandbox.start(&["migrate"]);
            std::thread::sleep(Duration::from_millis(after_ms));
            migration.kill();
            let code = sandbox.run(&["status", "--wait", "0"]).code;
            assert!(matches!(code, Some(0 | 5)), "{code:?}");
        }
        sandbox.run(&["migrate"]).expect(0);
        let books = sandbox.run(&["audit", "--deep", "--json"]).expect(0).json();
        assert_eq!((&books["pushed"], &books["ready"], &books["delayed"]), (&json!(71), &json!(63), &json!(2)));
        assert_eq!((&books["done"], &books["failed"], &books["removed"]), (&json!(4), &json!(1), &json!(1)));
    }
}
