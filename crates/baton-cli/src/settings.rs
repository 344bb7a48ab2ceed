//! What is in force: flag before environment before file before default.

mod file;

use std::{ffi::OsString, fmt, path::PathBuf, time::Duration};

use baton::{
    DEFAULT_FLEET,
    message::Name,
    store::{InvalidUrl, StoreUrl},
};

use self::file::File;
use crate::{exit::Failure, quantity};

const STORE: &str = "BATON_STORE";
const FLEET: &str = "BATON_FLEET";
const WAIT: &str = "BATON_WAIT";
pub(crate) const CONFIG: &str = "BATON_CONFIG";

/// The flags every command takes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Store")]
pub(crate) struct Globals {
    /// The store: sqlite:PATH, redis://HOST:PORT/DB, rediss://… or memory: [env: BATON_STORE]
    // Taken as text: a parse error of clap would show a password.
    #[arg(long, global = true, value_name = "URL")]
    store: Option<String>,
    /// The fleet's name [env: BATON_FLEET] [default: baton]
    #[arg(long, global = true, value_name = "NAME")]
    fleet: Option<Name>,
    /// Use Redis on this host [default: 127.0.0.1]
    #[arg(long, global = true, value_name = "HOST")]
    rhost: Option<String>,
    /// Use Redis on this port [default: 6379]
    #[arg(long, global = true, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    rport: Option<u16>,
    /// Use this Redis database [default: 0]
    #[arg(long, global = true, value_name = "DB", value_parser = clap::value_parser!(u32).range(..=65_535))]
    rdb: Option<u32>,
    /// How long to wait for a store that is not up yet, or has no room; plain numbers are seconds [env: BATON_WAIT]
    /// [default: 10]
    #[arg(long, global = true, value_name = "SECONDS", value_parser = quantity::seconds)]
    wait: Option<Duration>,
    /// A JSON file with the keys store, fleet and wait [env: BATON_CONFIG] [default: baton/config.json in the user's
    /// configuration folder]
    #[arg(long, global = true, value_name = "PATH")]
    config: Option<PathBuf>,
}

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Origin {
    Flag,
    Environment,
    File,
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flag => "flag",
            Self::Environment => "environment",
            Self::File => "file",
            Self::Default => "default",
        })
    }
}

/// A value and where it came from.
#[derive(Debug)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) from: Origin,
}

/// Everything in force.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) store: Setting<StoreUrl>,
    pub(crate) fleet: Setting<Name>,
    pub(crate) wait: Setting<Duration>,
    /// Where the file is or would be; none without a home.
    pub(crate) file: Option<PathBuf>,
    pub(crate) file_read: bool,
}

impl Settings {
    /// What is in force as variables say it to another process, password and all: that has no place in a list of
    /// processes.
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let address = match &self.store.value {
            StoreUrl::Sqlite(path) => {
                let mut address = OsString::from("sqlite://");
                address.push(path);
                address
            }
            StoreUrl::Redis(url) => url.as_str().into(),
            other => other.to_string().into(),
        };
        let file = self.file.as_ref().filter(|_| self.file_read);
        let file = file.map(|path| (CONFIG, path.clone().into_os_string()));
        let wait = self.wait.value.as_secs_f64().to_string();
        let variables = [(STORE, address), (FLEET, self.fleet.value.to_string().into()), (WAIT, wait.into())];
        variables.into_iter().chain(file).collect()
    }
}

impl Globals {
    /// Puts flags, environment, file and defaults together.
    pub(crate) fn resolve(self) -> Result<Settings, Failure> {
        let redis = self.redis()?;
        if redis.is_some() && self.store.is_some() {
            return Err(Failure::usage(
                "--store and --rhost, --rport or --rdb both name the store",
                "give one of the two",
            ));
        }
        let named = match self.config {
            Some(path) => Some(path),
            None => variable(CONFIG)?.map(PathBuf::from),
        };
        let (path, required) = match named {
            Some(path) => (Some(path), true),
            None => (folder("XDG_CONFIG_HOME", ".config").map(|home| home.join("baton/config.json")), false),
        };
        let file = path.as_deref().map(|path| File::read(path, required)).transpose()?.flatten();
        let file_read = file.is_some();
        let file = file.unwrap_or_default();
        let path_shown = || path.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
        let in_file = |problem: String| Failure::usage(format!("{}: {problem}", path_shown()), "correct the file");
        let in_variable = |variable: &str, problem: String| {
            Failure::usage(format!("{variable}: {problem}"), "correct the variable, or unset it")
        };
        let store = match (redis, self.store, variable(STORE)?, file.store) {
            (Some(url), ..) => Setting { value: url, from: Origin::Flag },
            (_, Some(url), ..) => Setting { value: url.parse()?, from: Origin::Flag },
            (_, _, Some(url), _) => {
                let value = url.parse().map_err(|error: InvalidUrl| Failure::of_url(STORE, &error))?;
                Setting { value, from: Origin::Environment }
            }
            (.., Some(url)) => {
                let value = url.parse().map_err(|error: InvalidUrl| Failure::of_url(&path_shown(), &error))?;
                Setting { value, from: Origin::File }
            }
            _ => Setting { value: default_store()?, from: Origin::Default },
        };
        let name = |text: &str| Name::new(text).map_err(|error| error.to_string());
        let fleet = match (self.fleet, variable(FLEET)?, file.fleet) {
            (Some(value), ..) => Setting { value, from: Origin::Flag },
            (_, Some(text), _) => {
                Setting { value: name(&text).map_err(|why| in_variable(FLEET, why))?, from: Origin::Environment }
            }
            (.., Some(text)) => Setting { value: name(&text).map_err(in_file)?, from: Origin::File },
            _ => Setting { value: name(DEFAULT_FLEET).map_err(in_file)?, from: Origin::Default },
        };
        let wait = match (self.wait, variable(WAIT)?, file.wait) {
            (Some(value), ..) => Setting { value, from: Origin::Flag },
            (_, Some(text), _) => {
                let value = quantity::seconds(&text).map_err(|why| in_variable(WAIT, why))?;
                Setting { value, from: Origin::Environment }
            }
            (.., Some(text)) => Setting { value: quantity::seconds(&text).map_err(in_file)?, from: Origin::File },
            _ => Setting { value: Duration::from_secs(10), from: Origin::Default },
        };
        Ok(Settings { store, fleet, wait, file: path, file_read })
    }

    /// The seeds' way to name a Redis: any of the three selects it.
    fn redis(&self) -> Result<Option<StoreUrl>, Failure> {
        if self.rhost.is_none() && self.rport.is_none() && self.rdb.is_none() {
            return Ok(None);
        }
        let host = self.rhost.as_deref().unwrap_or("127.0.0.1");
        let odd = |c: char| c.is_whitespace() || c.is_control() || "/@?#\\".contains(c);
        if host.is_empty() || host.contains(odd) {
            return Err(Failure::usage(format!("--rhost {host:?} is not a host"), "give a name or an address"));
        }
        let bracketed =
            if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
        let (port, db) = (self.rport.unwrap_or(6379), self.rdb.unwrap_or(0));
        Ok(Some(format!("redis://{bracketed}:{port}/{db}").parse()?))
    }
}

/// A variable that is set; empty counts as not set.
fn variable(name: &str) -> Result<Option<String>, Failure> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(_) => Err(Failure::usage(format!("{name} is not UTF-8 text"), "correct the variable, or unset it")),
    }
}

/// A folder of the user: what the variable says if that is absolute, else the usual place at home.
fn folder(variable: &str, at_home: &str) -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    std::env::var_os(variable)
        .map(PathBuf::from)
        .filter(absolute)
        .or_else(|| std::env::var_os("HOME").map(PathBuf::from).filter(absolute).map(|home| home.join(at_home)))
}

fn default_store() -> Result<StoreUrl, Failure> {
    let folder = folder("XDG_STATE_HOME", ".local/state")
        .ok_or_else(|| Failure::usage("there is no home folder for the default store", "name one with --store"))?;
    Ok(StoreUrl::Sqlite(folder.join("baton/baton.db")))
}
