//! `baton config`: what is in force, and where each value came from.

use std::{fmt::Display, path::PathBuf, time::Duration};

use serde::Serialize;

use crate::{
    exit::{Exit, Failure},
    output::Output,
    settings::{Origin, Setting, Settings},
};

/// Print the settings in force and where each came from
///
/// A flag goes before the environment (BATON_STORE, BATON_FLEET, BATON_WAIT, BATON_MAX_KEYS,
/// BATON_KEY_LIFETIME, BATON_MAX_RESULTS, BATON_CONFIG), that before the settings file, that before the default. Passwords are not shown.
///
/// How many keys may live at once (--max-keys) and how long each does (--key-lifetime) concern messages that programs
/// push once under a key (`push_once`). The key of `baton push --key` is another thing, and does not expire.
///
/// Results that handlers leave are kept for an hour, and take --max-results bytes in all: then the oldest go.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton config
  baton --rport 6380 config --json

The settings file: {\"store\": \"redis://127.0.0.1:6379/0\", \"fleet\": \"baton\", \"wait\": 10,
\"max_keys\": 10000000, \"key_lifetime\": \"7d\", \"max_results\": \"1GiB\"}")]
pub(crate) struct Config {
    /// Print one JSON object: {"store","fleet","wait","max_keys","key_lifetime","max_results","file"}, each
    /// {"value","from"} but the last, {"path","read"}; times are in seconds, sizes in bytes
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Shown<T> {
    value: T,
    from: &'static str,
}

impl<T> Shown<T> {
    fn of<S>(setting: &Setting<S>, show: impl Fn(&S) -> T) -> Self {
        Self { value: show(&setting.value), from: word(setting.from) }
    }
}

#[derive(Serialize)]
struct InForce {
    store: Shown<String>,
    fleet: Shown<String>,
    /// Seconds.
    wait: Shown<f64>,
    max_keys: Shown<u64>,
    /// Seconds.
    key_lifetime: Shown<f64>,
    /// Bytes.
    max_results: Shown<u64>,
    file: ShownFile,
}

#[derive(Serialize)]
struct ShownFile {
    path: Option<PathBuf>,
    read: bool,
}

const fn word(origin: Origin) -> &'static str {
    match origin {
        Origin::Said => "flag",
        Origin::Environment => "environment",
        Origin::File => "file",
        Origin::Default => "default",
    }
}

impl Config {
    pub(crate) fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let shown = InForce {
            store: Shown::of(&settings.store, ToString::to_string),
            fleet: Shown::of(&settings.fleet, ToString::to_string),
            wait: Shown::of(&settings.wait, Duration::as_secs_f64),
            max_keys: Shown::of(&settings.max_keys, |keys| *keys),
            key_lifetime: Shown::of(&settings.key_lifetime, Duration::as_secs_f64),
            max_results: Shown::of(&settings.max_results, |bytes| *bytes),
            file: ShownFile { path: settings.file.clone(), read: settings.file_read },
        };
        Output::print(self.json, &shown, |output| {
            let row = |name: &str, value: &dyn Display, from: &dyn Display| {
                vec![name.to_owned(), value.to_string(), from.to_string()]
            };
            let path = shown.file.path.as_ref().map_or_else(|| "none".to_owned(), |path| path.display().to_string());
            let rows = [
                row("store", &shown.store.value, &shown.store.from),
                row("fleet", &shown.fleet.value, &shown.fleet.from),
                row("wait", &format!("{} s", shown.wait.value), &shown.wait.from),
                row("max_keys", &shown.max_keys.value, &shown.max_keys.from),
                row("key_lifetime", &format!("{} s", shown.key_lifetime.value), &shown.key_lifetime.from),
                row("max_results", &shown.max_results.value, &shown.max_results.from),
                row("file", &path, &if shown.file.read { "read" } else { "not there" }),
            ];
            output.table(&["setting", "value", "from"], &rows)
        })
    }
}
