//! Where a fleet is: what the caller says before the environment before a file before the default.
//!
//! Every program that takes part in a fleet of this machine's user finds the same one: the variables `BATON_STORE`,
//! `BATON_FLEET`, `BATON_WAIT`, `BATON_MAX_KEYS`, `BATON_KEY_LIFETIME`, `BATON_MAX_RESULTS` and `BATON_CONFIG`, and the keys `store`, `fleet`,
//! `wait`, `max_keys`, `key_lifetime` and `max_results` of `baton/config.json` in the user's configuration folder.

mod file;
pub mod quantity;

use std::{
    ffi::OsString,
    fmt, fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use self::file::File;
use crate::{
    DEFAULT_FLEET,
    message::Name,
    store::{InvalidUrl, KEY_TTL_MS, MAX_KEYS, MAX_RESULTS, StoreUrl},
};

const STORE: &str = "BATON_STORE";
const FLEET: &str = "BATON_FLEET";
const WAIT: &str = "BATON_WAIT";
const KEYS: &str = "BATON_MAX_KEYS";
const KEY_LIFETIME: &str = "BATON_KEY_LIFETIME";
const RESULTS: &str = "BATON_MAX_RESULTS";
/// The variable that names the settings file.
pub const CONFIG: &str = "BATON_CONFIG";

/// What the caller says; it goes before everything else.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// The store.
    pub store: Option<StoreUrl>,
    /// The fleet's name.
    pub fleet: Option<Name>,
    /// How long a store that is not up is waited for.
    pub wait: Option<Duration>,
    /// Idempotency keys that may live at once.
    pub max_keys: Option<u64>,
    /// How long an idempotency key lives.
    pub key_lifetime: Option<Duration>,
    /// Bytes that the results kept may take.
    pub max_results: Option<u64>,
    /// The settings file, which must then be there.
    pub file: Option<PathBuf>,
}

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The caller.
    Said,
    /// A variable.
    Environment,
    /// The settings file.
    File,
    /// Nobody said anything.
    Default,
}

/// A value and where it came from.
#[derive(Debug, Clone)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub from: Origin,
}

/// Everything in force.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The store.
    pub store: Setting<StoreUrl>,
    /// The fleet's name.
    pub fleet: Setting<Name>,
    /// How long a store that is not up is waited for.
    pub wait: Setting<Duration>,
    /// Idempotency keys that may live at once.
    pub max_keys: Setting<u64>,
    /// How long an idempotency key lives.
    pub key_lifetime: Setting<Duration>,
    /// Bytes that the results kept may take.
    pub max_results: Setting<u64>,
    /// Where the file is or would be; none without a home.
    pub file: Option<PathBuf>,
    /// Whether it was read.
    pub file_read: bool,
}

/// Where a setting was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundIn {
    /// In this variable.
    Variable(&'static str),
    /// In this file.
    File(PathBuf),
}

impl fmt::Display for FoundIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => f.write_str(name),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// Why the settings cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file cannot be read, or is no settings file.
    #[error("the settings file {} is not usable: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A value is none.
    #[error("{found_in}: {why}")]
    Value {
        /// Where it was found.
        found_in: FoundIn,
        /// What is wrong with it.
        why: String,
    },
    /// A variable is no text.
    #[error("{0} is not UTF-8 text")]
    NotText(&'static str),
    /// A store's address is none.
    #[error("{found_in}: {error}")]
    Url {
        /// Where it was found.
        found_in: FoundIn,
        /// What is wrong with it.
        error: InvalidUrl,
    },
    /// Nobody names a store, and there is no home folder for one.
    #[error("there is no home folder for the default store")]
    NoHome,
}

impl Settings {
    /// Puts what is said, the environment, the file and the defaults together.
    ///
    /// # Errors
    /// [`SettingsError`] if something that would be in force is not usable, or the file is not.
    pub fn resolve(said: Said) -> Result<Self, SettingsError> {
        let named = match said.file {
            Some(path) => Some(path),
            None => variable(CONFIG)?.map(PathBuf::from),
        };
        let (path, required) = match named {
            Some(path) => (Some(path), true),
            None => (folder("XDG_CONFIG_HOME", ".config").map(|home| home.join("baton/config.json")), false),
        };
        let file = path.as_deref().map(|path| File::read(path, required)).transpose()?.flatten();
        let file_read = file.is_some();
        let File { store, fleet, wait, max_keys, key_lifetime, max_results } = file.unwrap_or_default();
        let in_file = || FoundIn::File(path.clone().unwrap_or_default());
        let url =
            |text: String, found_in: FoundIn| text.parse().map_err(|error| SettingsError::Url { found_in, error });
        let name = |text: String, found_in: FoundIn| {
            Name::new(&text).map_err(|error| SettingsError::Value { found_in, why: error.to_string() })
        };
        let time = |text: String, found_in: FoundIn| {
            quantity::seconds(&text).map_err(|why| SettingsError::Value { found_in, why })
        };
        let count = |text: String, found_in: FoundIn| {
            quantity::count(&text).map_err(|why| SettingsError::Value { found_in, why })
        };
        let life = |text: String, found_in: FoundIn| {
            quantity::lifetime(&text).map_err(|why| SettingsError::Value { found_in, why })
        };
        let size = |text: String, found_in: FoundIn| {
            quantity::bytes(&text).map_err(|why| SettingsError::Value { found_in, why })
        };
        let day = || Ok(Duration::from_millis(KEY_TTL_MS));
        Ok(Self {
            store: first(said.store, STORE, store, in_file(), url, default_store)?,
            fleet: first(said.fleet, FLEET, fleet, in_file(), name, || name(DEFAULT_FLEET.to_owned(), in_file()))?,
            wait: first(said.wait, WAIT, wait, in_file(), time, || Ok(Duration::from_secs(10)))?,
            max_keys: first(said.max_keys, KEYS, max_keys, in_file(), count, || Ok(MAX_KEYS))?,
            key_lifetime: first(said.key_lifetime, KEY_LIFETIME, key_lifetime, in_file(), life, day)?,
            max_results: first(said.max_results, RESULTS, max_results, in_file(), size, || Ok(MAX_RESULTS))?,
            file: path,
            file_read,
        })
    }

    /// Makes the folder of the default store, its owner's alone, if that is the store in force and it is missing; the
    /// folder of any other must be there.
    ///
    /// # Errors
    /// That of making it.
    pub fn prepare(&self) -> io::Result<()> {
        match (&self.store.value, self.store.from) {
            (StoreUrl::Sqlite(path), Origin::Default) => path.parent().map_or(Ok(()), make_folder),
            _ => Ok(()),
        }
    }

    /// What is in force as variables say it to another process, password and all: that has no place in a list of
    /// processes.
    #[must_use]
    pub fn variables(&self) -> Vec<(&'static str, OsString)> {
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
        let lifetime = format!("{}ms", self.key_lifetime.value.as_millis());
        let variables = [
            (STORE, address),
            (FLEET, self.fleet.value.to_string().into()),
            (WAIT, wait.into()),
            (KEYS, self.max_keys.value.to_string().into()),
            (KEY_LIFETIME, lifetime.into()),
            (RESULTS, self.max_results.value.to_string().into()),
        ];
        variables.into_iter().chain(file).collect()
    }
}

/// The first that is there: what is said, the variable, the file's, the default.
fn first<T>(
    said: Option<T>, name: &'static str, in_file: Option<String>, file: FoundIn,
    read: impl Fn(String, FoundIn) -> Result<T, SettingsError>, default: impl FnOnce() -> Result<T, SettingsError>,
) -> Result<Setting<T>, SettingsError> {
    let (value, from) = match (said, variable(name)?, in_file) {
        (Some(value), ..) => (value, Origin::Said),
        (_, Some(text), _) => (read(text, FoundIn::Variable(name))?, Origin::Environment),
        (.., Some(text)) => (read(text, file)?, Origin::File),
        _ => (default()?, Origin::Default),
    };
    Ok(Setting { value, from })
}

/// A variable that is set; empty counts as not set.
fn variable(name: &'static str) -> Result<Option<String>, SettingsError> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(_) => Err(SettingsError::NotText(name)),
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

/// Bodies are their owner's: a folder made for them is nobody else's.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn default_store() -> Result<StoreUrl, SettingsError> {
    let folder = folder("XDG_STATE_HOME", ".local/state").ok_or(SettingsError::NoHome)?;
    Ok(StoreUrl::Sqlite(folder.join("baton/baton.db")))
}
