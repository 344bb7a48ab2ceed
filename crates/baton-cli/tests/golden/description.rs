//! The keys of baton.toml, as the code that reads it names them, with what each takes and its default.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{collections::BTreeMap, fmt::Write as _};

use baton::{QueuePolicy, builtin::Demo};
use baton_testkit::golden;

use crate::sandbox::{Ran, Sandbox};

/// A key that no reader knows, and that is like no other.
const UNKNOWN: &str = "zzzzzzzzzzzz";
/// A text that is no number, time, size or name.
const NO_VALUE: &str = "~ ~";

/// A table of the file.
struct Table {
    /// As it is shown.
    name: &'static str,
    /// Its header in a file, and what mistakes say behind a key of it.
    header: &'static str,
    of: &'static str,
}

const TABLES: [Table; 3] = [
    Table { name: "", header: "", of: "" },
    Table { name: "queues.NAME.", header: "[queues.one]\n", of: " of queue one" },
    Table { name: "sources.NAME.", header: "[sources.one]\n", of: " of source one" },
];

/// The mistakes in a file with this text, without their places.
fn mistakes(sandbox: &Sandbox, text: &str) -> Vec<String> {
    sandbox.write("baton.toml", text);
    let ran = Ran::of(sandbox.command(&["config", "--check"]).env_remove("BATON_STORE").output().unwrap());
    let causes = ran.err.lines().filter_map(|line| Some(line.strip_prefix("baton: baton.toml:")?.split_once(": ")?.1));
    causes.map(str::to_owned).collect()
}

/// The keys of a table: what a mistake names for one that is not known.
fn keys(sandbox: &Sandbox, table: &Table) -> Vec<String> {
    let found = mistakes(sandbox, &format!("{}{UNKNOWN} = 1\n", table.header));
    let named = found.iter().find_map(|it| it.split_once("; the keys are ").filter(|(it, _)| it.contains(UNKNOWN)));
    let mut keys: Vec<String> = named.unwrap().1.split(", ").map(str::to_owned).collect();
    keys.sort();
    keys.dedup();
    keys
}

/// What a mistake says of this key, if its value is this one.
fn said(sandbox: &Sandbox, table: &Table, key: &str, value: &str) -> Option<String> {
    let found = mistakes(sandbox, &format!("{}{key} = {value}\n", table.header));
    let begin = format!("{key}{}: ", table.of);
    found.iter().find_map(|it| it.strip_prefix(&begin)).map(|it| it.replace(NO_VALUE, "VALUE"))
}

/// What a key takes: its type, and what is said of a value that has the type and nothing else.
fn takes(sandbox: &Sandbox, table: &Table, key: &str) -> String {
    let Some(expected) = said(sandbox, table, key, "[]") else { return "a table each".to_owned() };
    let kind = expected.split(" is expected").next().unwrap_or_default().to_owned();
    let value = match kind.as_str() {
        "true or false" => return kind,
        "a number" => "-1".to_owned(),
        _ => format!("{NO_VALUE:?}"),
    };
    match said(sandbox, table, key, &value) {
        Some(refused) => format!("{kind}; {}", refused.trim_end_matches("; correct the file")),
        None => format!("{kind}; any"),
    }
}

/// Fields and their values, of a value's debug form.
fn fields(shown: &str) -> BTreeMap<String, String> {
    let lines = shown.lines().filter_map(|line| line.trim().trim_end_matches(',').split_once(": "));
    lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The defaults of all keys that have one.
fn defaults(sandbox: &Sandbox) -> BTreeMap<String, String> {
    sandbox.write("baton.toml", "");
    let ran = Ran::of(sandbox.command(&["config", "--json"]).env_remove("BATON_STORE").output().unwrap()).expect(0);
    let (in_force, home) = (ran.json(), sandbox.dir.path().display().to_string());
    let settings = in_force.as_object().unwrap().iter().filter(|(_, it)| it["from"] == "default");
    let mut all: BTreeMap<String, String> =
        settings.map(|(key, it)| (key.clone(), it["value"].to_string().replace(&home, "~"))).collect();
    let policy = fields(&format!("{:#?}", QueuePolicy::default()));
    all.extend(policy.into_iter().map(|(field, value)| (format!("queues.NAME.{field}"), value)));
    // Ranges are shown on one line only by the short form.
    let demo = format!("{:?}", Demo::default());
    let demo = demo.trim_start_matches("Demo { ").trim_end_matches(" }").replace(", ", ",\n");
    all.extend(fields(&demo).into_iter().map(|(field, value)| (format!("queues.NAME.demo_{field}"), value)));
    all
}

#[test]
fn golden_keys_of_the_description_file() {
    let sandbox = Sandbox::new();
    let (defaults, mut all) = (defaults(&sandbox), String::new());
    for table in TABLES {
        for key in keys(&sandbox, &table) {
            let path = format!("{}{key}", table.name);
            let default = defaults.get(&path).map(|it| format!("; default {it}")).unwrap_or_default();
            writeln!(all, "{path}: {}{default}", takes(&sandbox, &table, &key)).unwrap();
        }
    }
    golden::assert_file("baton_toml.txt", &all);
}
