//! `baton config`: what is in force, and where each value came from.

use std::{fmt::Display, path::Path, time::Duration};

use baton::{
    settings::document::{Document, Mistake},
    store::StoreUrl,
};
use serde::Serialize;

use crate::{
    exit::{Exit, Failure},
    node::Description,
    output::{Output, plural, remark, tame},
    settings::{Globals, Origin, Setting, Settings},
};

/// Print the settings in force and the origin of each, or check the file that describes the fleet
///
/// A setting is looked for in these places, in this order: the flag; the environment (BATON_STORE, BATON_FLEET,
/// BATON_WAIT, BATON_MAX_KEYS, BATON_KEY_LIFETIME, BATON_MAX_RESULTS); the fleet's file; the user's file; the default.
/// Passwords are not shown.
///
/// The fleet's file is named by --config or BATON_CONFIG, else it is baton.toml in the present folder. The user's file is
/// baton/config.toml in the user's configuration folder. A relative path in a file begins at the folder of that file; a
/// command runs where baton was started.
///
/// The fleet's file also describes queues and sources. `baton up` runs all of them, `baton node` all or those that it
/// names. The user's file has settings only.
///
/// --max-keys and --key-lifetime are about idempotency keys: how many may exist at once, and how long each is kept. They
/// do not concern the name under which `baton push` resumes a long import, which does not expire.
///
/// Results of handlers are kept for an hour. Together they take at most --max-results bytes; then the oldest are removed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton config
  baton config --check
  baton --config etc/baton.toml config --check
  baton --rport 6380 config --json

A file that describes a fleet, here with all keys of each kind:
  store = \"redis://127.0.0.1:6379/0\"
  fleet = \"baton\"
  wait = \"10s\"
  max_keys = 10_000_000
  key_lifetime = \"7d\"
  max_results = \"1GiB\"
  recipes = false           # true adds /subsetSum, /totalSales, …

  [gateway]
  listen = \"127.0.0.1:8000\"
  open_queues = false       # true: take messages for queues not described

  [queues.fetch]
  exec = \"python3 fetch.py\" # or exec_once = \"COMMAND\", or handler
  concurrency = 8
  retries = 3
  backoff = \"500ms\"
  timeout = \"30s\"
  max_memory_per_child = \"512MiB\" # of exec and exec_once
  output_timeout = \"10s\"    # of exec
  max_messages_per_child = 1000 # of exec
  idle_timeout = \"5m\"       # of exec
  warm = 2                  # of exec
  # exec_once takes allow_dash = true: a body may begin with -;
  # handler = \"noop\", \"subset-sum\" or \"demo\" (which takes
  # demo_delay = \"0..50ms\" and demo_fail = 0.1), or handler = \"none\"
  # if other programs work for the queue

  [sources.urls]
  queue = \"fetch\"
  lines = \"urls.txt\"        # or lines_from, interval or cron
  follow = false            # of lines
  json_lines = false        # of lines and lines_from
  count = 1000
  # lines_from = \"COMMAND\", interval = \"1s\",
  # or cron = \"0 3 * * *\" (in UTC), which takes catch_up = \"skip\",
  # \"once\" or \"all\"
")]
pub(crate) struct Config {
    /// Check both files: each mistake is printed with its line and column, and the exit code is 2
    ///
    /// Warnings name programs, files of lines and a folder of the store that are missing on this machine, and words that
    /// only a shell understands.
    #[arg(long)]
    check: bool,
    /// Print one JSON object: {"store","fleet","wait","max_keys","key_lifetime","max_results","files"}, each
    /// {"value","from"}, with "file" if a file sets it; "files" is a list of {"path","read"}. Times are in seconds, sizes in
    /// bytes
    #[arg(long, conflicts_with = "check")]
    json: bool,
}

#[derive(Serialize)]
struct Shown<T> {
    value: T,
    from: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

impl<T> Shown<T> {
    fn of<S>(settings: &Settings, setting: &Setting<S>, show: impl Fn(&S) -> T) -> Self {
        let (from, path) = match setting.from {
            Origin::Said => ("flag", None),
            Origin::Environment => ("environment", None),
            Origin::FleetFile => ("file", settings.fleet_file.as_ref().map(|file| file.path())),
            Origin::UserFile => ("file", settings.user_file.as_deref()),
            Origin::Default => ("default", None),
        };
        Self { value: show(&setting.value), from, file: path.map(shown) }
    }

    /// The file, or what else it came from.
    fn place(&self) -> &str {
        self.file.as_deref().unwrap_or(self.from)
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
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
    files: Vec<ShownFile>,
}

#[derive(Serialize)]
struct ShownFile {
    path: String,
    read: bool,
}

impl Config {
    /// Whether nothing is to be shown.
    pub(crate) const fn only_checks(&self) -> bool {
        self.check
    }

    pub(crate) fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let fleet_file = settings.fleet_file.iter().map(|file| ShownFile { path: shown(file.path()), read: true });
        let user_file = settings.user_file.iter();
        let user_file = user_file.map(|path| ShownFile { path: shown(path), read: settings.user_file_read });
        let in_force = InForce {
            store: Shown::of(settings, &settings.store, ToString::to_string),
            fleet: Shown::of(settings, &settings.fleet, ToString::to_string),
            wait: Shown::of(settings, &settings.wait, Duration::as_secs_f64),
            max_keys: Shown::of(settings, &settings.max_keys, |keys| *keys),
            key_lifetime: Shown::of(settings, &settings.key_lifetime, Duration::as_secs_f64),
            max_results: Shown::of(settings, &settings.max_results, |bytes| *bytes),
            files: fleet_file.chain(user_file).collect(),
        };
        Output::print(self.json, &in_force, |output| {
            let row =
                |name: &str, value: &dyn Display, from: &str| vec![name.to_owned(), value.to_string(), from.to_owned()];
            let InForce { store, fleet, wait, max_keys, key_lifetime, max_results, files } = &in_force;
            let mut rows = vec![
                row("store", &store.value, store.place()),
                row("fleet", &fleet.value, fleet.place()),
                row("wait", &format!("{} s", wait.value), wait.place()),
                row("max_keys", &max_keys.value, max_keys.place()),
                row("key_lifetime", &format!("{} s", key_lifetime.value), key_lifetime.place()),
                row("max_results", &max_results.value, max_results.place()),
            ];
            rows.extend(files.iter().map(|it| row("file", &it.path, if it.read { "read" } else { "not there" })));
            output.table(&["setting", "value", "from"], &rows)
        })
    }
}

/// These mistakes and those of what the fleet's file describes, each once.
fn with_described(mut mistakes: Vec<Mistake>, file: &Path) -> Vec<Mistake> {
    let described = Document::at(file).and_then(|document| Description::read(&document).err()).unwrap_or_default();
    let same = |one: &Mistake, two: &Mistake| (&one.path, one.line, one.column) == (&two.path, two.line, two.column);
    let further: Vec<_> = described.into_iter().filter(|it| !mistakes.iter().any(|known| same(known, it))).collect();
    mistakes.extend(further);
    mistakes.sort_by(|one, two| (&one.path, one.line, one.column).cmp(&(&two.path, two.line, two.column)));
    mistakes
}

/// That no store can be made where it is to be on this machine, if that is so. The folder of the default one is made.
fn without_folder(settings: &Settings) -> Option<String> {
    let (StoreUrl::Sqlite(path), false) = (&settings.store.value, settings.store.from == Origin::Default) else {
        return None;
    };
    let path = std::path::absolute(path).ok()?;
    let folder = path.parent().filter(|folder| !folder.exists())?.display();
    Some(format!("there is no folder {folder} for the store {}", path.file_name()?.display()))
}

/// Checks the files and what they describe; each mistake is a line of its own.
pub(crate) fn check(globals: Globals) -> Result<Exit, Failure> {
    let file = globals.fleet_file();
    let checked = match globals.read()? {
        Ok(settings) => Description::of(&settings).map(|described| (described, settings)),
        // What is wrong with the settings does not hide what is wrong with queues and sources.
        Err(mistakes) => Err(with_described(mistakes, &file)),
    };
    let mistakes = match checked {
        Ok((described, settings)) => {
            let doubts = described.doubts().into_iter();
            let doubts = without_folder(&settings).into_iter().chain(doubts);
            doubts.for_each(|it| remark(&tame(&format!("warning: {it}"))));
            let (queues, sources) = described.size();
            let (some_queues, some_sources) = (plural(queues), plural(sources));
            let mut output = Output::new();
            output.line(&match &settings.fleet_file {
                Some(file) => {
                    format!("{}: {queues} queue{some_queues}, {sources} source{some_sources}", shown(file.path()))
                }
                None => "there is no baton.toml here, and --config names no file".to_owned(),
            })?;
            output.flush()?;
            return Ok(Exit::Ok);
        }
        Err(mistakes) => mistakes,
    };
    mistakes.iter().for_each(|mistake| remark(&tame(&mistake.to_string())));
    Ok(Exit::Usage)
}
