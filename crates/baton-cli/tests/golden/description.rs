//! The keys of baton.toml, as the code that reads it names them, with what each takes and its default.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

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

static TABLES: [Table; 3] = [
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

/// The keys of all tables: what a mistake names for one that is not known.
fn keys(sandbox: &Sandbox) -> Vec<(&'static Table, String)> {
    let unknown = |table: &Table| format!("{}{UNKNOWN} = 1\n", table.header);
    let found = mistakes(sandbox, &TABLES.iter().map(unknown).collect::<String>());
    let mut keys = Vec::new();
    for table in &TABLES {
        let begin = format!("unknown key {UNKNOWN:?}{}; the keys are ", table.of);
        let named = found.iter().find_map(|it| it.strip_prefix(&begin)).unwrap();
        keys.extend(named.split(", ").map(str::to_owned).collect::<BTreeSet<_>>().into_iter().map(|key| (table, key)));
    }
    keys
}

/// What a mistake says of each of these keys, if its value is this one.
fn said<'a>(
    sandbox: &Sandbox, values: &'a [(&'static Table, String, String)],
) -> impl Iterator<Item = Option<String>> + use<'a> {
    // A key that has tables below it has no value besides.
    let is_table = |key: &str| TABLES.iter().any(|table| table.header.starts_with(&format!("[{key}.")));
    let mut text = String::new();
    for table in &TABLES {
        text += table.header;
        let its = values.iter().filter(|(of, key, _)| of.name == table.name && !is_table(key));
        its.for_each(|(_, key, value)| writeln!(text, "{key} = {value}").unwrap());
    }
    let found = mistakes(sandbox, &text);
    values.iter().map(move |(table, key, _)| {
        let begin = format!("{key}{}: ", table.of);
        found.iter().find_map(|it| it.strip_prefix(&begin)).map(|it| it.replace(NO_VALUE, "VALUE"))
    })
}

/// What each key takes: its type, and what is said of a value that has the type and nothing else.
fn taken(sandbox: &Sandbox, keys: &[(&'static Table, String)]) -> Vec<String> {
    let lists: Vec<_> = keys.iter().map(|(table, key)| (*table, key.clone(), "[]".to_owned())).collect();
    let expected = said(sandbox, &lists).map(|it| it.unwrap_or_default());
    let kinds: Vec<String> =
        expected.map(|it| it.split(" is expected").next().unwrap_or_default().to_owned()).collect();
    let value = |kind: &str| match kind {
        "true or false" => "true".to_owned(),
        "a number" => "-1".to_owned(),
        _ => format!("{NO_VALUE:?}"),
    };
    let odd = keys.iter().zip(&kinds).filter(|(_, kind)| !kind.is_empty());
    let odd: Vec<_> = odd.map(|((table, key), kind)| (*table, key.clone(), value(kind))).collect();
    let mut refused = said(sandbox, &odd);
    let taken = kinds.iter().map(|kind| {
        if kind.is_empty() {
            return "a table each".to_owned();
        }
        match (refused.next().flatten(), kind.as_str()) {
            (_, "true or false") => kind.clone(),
            (Some(refused), _) => format!("{kind}; {}", refused.trim_end_matches("; correct the file")),
            (None, _) => format!("{kind}; any"),
        }
    });
    taken.collect()
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
    let keys = keys(&sandbox);
    for ((table, key), takes) in keys.iter().zip(taken(&sandbox, &keys)) {
        let path = format!("{}{key}", table.name);
        let default = defaults.get(&path).map(|it| format!("; default {it}")).unwrap_or_default();
        writeln!(all, "{path}: {takes}{default}").unwrap();
    }
    golden::assert_file("baton_toml.txt", &all);
}
