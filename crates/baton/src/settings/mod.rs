//! Where a fleet is: what the caller says before the environment before the fleet's file before the user's file before the
//! default.
//!
//! Every program that takes part in a fleet of this machine's user finds the same one: the variables `BATON_STORE`,
//! `BATON_FLEET`, `BATON_WAIT`, `BATON_MAX_KEYS`, `BATON_KEY_LIFETIME`, `BATON_MAX_RESULTS` and `BATON_CONFIG`, and the keys `store`, `fleet`,
//! `wait`, `max_keys`, `key_lifetime` and `max_results` of two TOML files: that of the fleet, which `BATON_CONFIG` names, else
//! `baton.toml` in the present folder; and `baton/config.toml` in the user's configuration folder. A path in a file begins
//! at the folder of that file. The first also describes queues and sources for the command `baton`; a program leaves these
//! alone.

pub mod document;
mod file;
pub mod quantity;

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use self::{
    document::{Document, Mistake},
    file::File,
};
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
/// The variable that names the fleet's file.
pub const CONFIG: &str = "BATON_CONFIG";
/// What the fleet's file said when it was read, for worker processes: whatever becomes of it, they go by the same text.
const CONFIG_TEXT: &str = "BATON_CONFIG_TEXT";
/// The fleet's file if none is named.
const FLEET_FILE: &str = "baton.toml";

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
    /// The fleet's file, which must then be there.
    pub file: Option<PathBuf>,
}

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The caller.
    Said,
    /// A variable.
    Environment,
    /// The fleet's file.
    FleetFile,
    /// The user's file.
    UserFile,
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
    /// The fleet's file, if there is one.
    pub fleet_file: Option<Document>,
    /// Where the user's file is or would be; none without a home.
    pub user_file: Option<PathBuf>,
    /// Whether that was read.
    pub user_file_read: bool,
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
    /// A file is there that was once read, and no longer is.
    #[error("{} is no longer read, because settings are TOML", path.display())]
    Json {
        /// The file.
        path: PathBuf,
    },
    /// What is in a file is not as it must be: one mistake or more, in the order of the file.
    #[error("{}", .0.first().map(ToString::to_string).unwrap_or_default())]
    Mistakes(Vec<Mistake>),
    /// A variable's value is none.
    #[error("{variable}: {why}")]
    Value {
        /// The variable.
        variable: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A variable is no text.
    #[error("{0} is not UTF-8 text")]
    NotText(&'static str),
    /// A variable's store is none.
    #[error("{variable}: {error}")]
    Url {
        /// The variable.
        variable: &'static str,
        /// What is wrong with it.
        error: InvalidUrl,
    },
    /// Nobody names a store, and there is no home folder for one.
    #[error("there is no home folder for the default store")]
    NoHome,
}

impl Settings {
    /// Puts what is said, the environment, the files and the defaults together.
    ///
    /// # Errors
    /// [`SettingsError`] if a value that would be in force is not usable, or a file is not.
    pub fn resolve(said: Said) -> Result<Self, SettingsError> {
        let Files { fleet: fleet_file, user: user_file, user_read: user_file_read, in_fleet, in_user } =
            Files::read(said.file)?;
        let why = |variable, why: String| SettingsError::Value { variable, why };
        let url = |text: &str| text.parse().map_err(|error| SettingsError::Url { variable: STORE, error });
        let name = |text: &str| Name::new(text).map_err(|error| why(FLEET, error.to_string()));
        let time = |text: &str| quantity::seconds(text).map_err(|it| why(WAIT, it));
        let keys = |text: &str| quantity::count(text).map_err(|it| why(KEYS, it));
        let life = |text: &str| quantity::lifetime(text).map_err(|it| why(KEY_LIFETIME, it));
        let size = |text: &str| quantity::bytes(text).map_err(|it| why(RESULTS, it));
        let day = || Ok(Duration::from_millis(KEY_TTL_MS));
        let (one, two) = (in_fleet, in_user);
        Ok(Self {
            store: first(said.store, (STORE, url), [one.store, two.store], default_store)?,
            fleet: first(said.fleet, (FLEET, name), [one.fleet, two.fleet], || name(DEFAULT_FLEET))?,
            wait: first(said.wait, (WAIT, time), [one.wait, two.wait], || Ok(Duration::from_secs(10)))?,
            max_keys: first(said.max_keys, (KEYS, keys), [one.max_keys, two.max_keys], || Ok(MAX_KEYS))?,
            key_lifetime: first(said.key_lifetime, (KEY_LIFETIME, life), [one.key_lifetime, two.key_lifetime], day)?,
            max_results: first(said.max_results, (RESULTS, size), [one.max_results, two.max_results], || {
                Ok(MAX_RESULTS)
            })?,
            fleet_file,
            user_file,
            user_file_read,
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
    /// processes. The fleet's file goes along as it was read, so that the other goes by the same text; the user's file is
    /// no longer asked.
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
        let file = self.fleet_file.as_ref();
        let (path, text) = file.map_or((Path::new(""), ""), |file| (file.path(), file.text()));
        let wait = self.wait.value.as_secs_f64().to_string();
        let lifetime = format!("{}ms", self.key_lifetime.value.as_millis());
        let variables = [
            (STORE, address),
            (FLEET, self.fleet.value.to_string().into()),
            (WAIT, wait.into()),
            (KEYS, self.max_keys.value.to_string().into()),
            (KEY_LIFETIME, lifetime.into()),
            (RESULTS, self.max_results.value.to_string().into()),
            (CONFIG, path.into()),
            (CONFIG_TEXT, text.into()),
        ];
        variables.into()
    }
}

/// What the two files say.
struct Files {
    fleet: Option<Document>,
    user: Option<PathBuf>,
    user_read: bool,
    in_fleet: File,
    in_user: File,
}

impl Files {
    fn read(named: Option<PathBuf>) -> Result<Self, SettingsError> {
        let named = match named {
            Some(path) => Some(path),
            None => variable(CONFIG)?.map(PathBuf::from),
        };
        let (path, required) = named.map_or_else(|| (PathBuf::from(FLEET_FILE), false), |path| (path, true));
        let handed_over = std::env::var(CONFIG_TEXT).ok();
        let user = folder("XDG_CONFIG_HOME", ".config").map(|home| home.join("baton/config.toml"));
        let user = user.filter(|_| handed_over.is_none());
        let fleet = match handed_over {
            Some(text) => Some(Document::new(path, text)).filter(|_| required),
            None => Document::load(&path, required)?,
        };
        let in_user = match &user {
            Some(path) => Document::load(path, false)?,
            None => None,
        };
        // It may name a store: going on without it would be another fleet.
        let former = user.as_ref().map(|path| path.with_extension("json"));
        if let Some(path) = former.filter(|path| in_user.is_none() && path.exists()) {
            return Err(SettingsError::Json { path });
        }
        Ok(Self {
            in_fleet: fleet.as_ref().map(File::of_fleet).transpose()?.unwrap_or_default(),
            user_read: in_user.is_some(),
            in_user: in_user.as_ref().map(File::of_user).transpose()?.unwrap_or_default(),
            fleet,
            user,
        })
    }
}

/// The first that is there: what is said, the variable, the files', the default.
fn first<T>(
    said: Option<T>, (name, read): (&'static str, impl Fn(&str) -> Result<T, SettingsError>), files: [Option<T>; 2],
    default: impl FnOnce() -> Result<T, SettingsError>,
) -> Result<Setting<T>, SettingsError> {
    let (value, from) = match (said, variable(name)?, files) {
        (Some(value), ..) => (value, Origin::Said),
        (_, Some(text), _) => (read(&text)?, Origin::Environment),
        (.., [Some(value), _]) => (value, Origin::FleetFile),
        (.., [_, Some(value)]) => (value, Origin::UserFile),
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
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Where what belongs to this machine's user is kept, the default store among it; nothing without a home. It may not be
/// there yet.
#[must_use]
pub fn state_folder() -> Option<PathBuf> {
    folder("XDG_STATE_HOME", ".local/state").map(|folder| folder.join("baton"))
}

fn default_store() -> Result<StoreUrl, SettingsError> {
    let folder = state_folder().ok_or(SettingsError::NoHome)?;
    Ok(StoreUrl::Sqlite(folder.join("baton.db")))
}
