//! The JSON that commands print.

use std::{collections::BTreeMap, fs};

use baton_testkit::golden;

use crate::{
    fleet::{BROKEN, SmallFleet, WORKED, values},
    shape::Shape,
};

/// A command, the name of its file, and its arguments. They run in this order on one fleet.
const RUNS: &[(&str, &[&str])] = &[
    ("push", &["push", "other", "1", "--json"]),
    ("call", &["call", WORKED, "{}"]),
    ("status", &["status", "--json"]),
    ("source-list", &["source", "list", "--json"]),
    ("audit", &["audit", "--json"]),
    ("audit", &["audit", "--deep", "--json"]),
    ("stats", &["stats", "--seconds", "1", "--json"]),
    ("errors", &["errors", "--json"]),
    ("errors-group", &["errors", "--group", "--json"]),
    ("pause", &["pause", "other", "--json"]),
    ("resume", &["resume", "other", "--json"]),
    ("config", &["config", "--json"]),
    ("migrate", &["migrate", "--json"]),
    ("backup", &["backup", "copy.db", "--json"]),
    ("restore", &["--store", "sqlite:restored.db", "restore", "copy.db", "--json"]),
    ("errors", &["errors", BROKEN, "--remove", "--json"]),
    ("stop", &["stop", "--json"]),
    ("purge", &["purge", "other", "--dry-run", "--json"]),
    ("purge", &["purge", "other", "--yes", "--json"]),
    ("purge", &["purge", "other", "--remove", "--yes", "--json"]),
    ("status-of-no-fleet", &["status", "--fleet", "none", "--json"]),
    ("source-remove", &["source", "remove", "beats", "--json"]),
    ("destroy", &["--store", "sqlite:restored.db", "destroy", "--yes", "--json"]),
    ("subset-sum", &["subset-sum", "--sum", "3", "[1,2]", "--json"]),
    ("sales-load", &["sales", "load", "--random", "3", "--json"]),
    ("sales-total", &["sales", "total", "--json"]),
    ("token-add", &["token", "add", "reader", "--json"]),
    ("token-list", &["token", "list", "--json"]),
    ("token-revoke", &["token", "revoke", "reader", "--json"]),
    ("token-open", &["token", "open", "--json"]),
    ("bench", &["bench", "--messages", "100", "--rounds", "1", "--only", "push", "--json"]),
];

/// The commands whose help names the flag --json.
fn commands_with_json() -> Vec<String> {
    let files = fs::read_dir(golden::folder().join("help")).into_iter().flatten().flatten();
    let with_json = files.filter_map(|file| {
        let name = file.file_name().to_str()?.strip_prefix("baton-")?.strip_suffix(".txt")?.to_owned();
        fs::read_to_string(file.path()).ok()?.contains("\n      --json\n").then_some(name)
    });
    with_json.collect()
}

#[test]
fn golden_json_of_every_command() {
    let fleet = SmallFleet::start();
    // A message that failed after another attempt has the error of both.
    fleet.sandbox.run(&["push", "retried", "1"]).expect(0);
    let retried =
        ["node", "--queue", "retried", "--exec-once", "false", "--retries", "1", "--backoff", "1ms", "--until-done"];
    fleet.run(&retried).expect(3);
    let mut shapes: BTreeMap<String, Shape> = BTreeMap::new();
    for (name, arguments) in RUNS {
        let ran = fleet.run(arguments).expect(i32::from(name.ends_with("-of-no-fleet")));
        let found = values(&ran.out);
        assert!(!found.is_empty(), "{arguments:?}: {}", ran.out);
        let shape = shapes.entry(format!("{name}.txt")).or_default();
        found.iter().for_each(|value| shape.add(value));
    }
    let handed = fleet.lines("exec.lines").iter().flat_map(|line| values(line)).collect::<Vec<_>>();
    shapes.insert("message-for-exec.txt".to_owned(), Shape::of(handed));
    for command in commands_with_json() {
        assert!(shapes.contains_key(&format!("{command}.txt")), "RUNS lacks `{command} --json`");
    }
    golden::assert_folder("json", &shapes.iter().map(|(name, shape)| (name.clone(), shape.lines())).collect());
}
