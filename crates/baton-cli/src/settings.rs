//! The flags that say where the fleet is; what they leave open the library finds out.

use std::{path::PathBuf, time::Duration};

pub(crate) use baton::settings::{CONFIG, Origin, Setting, Settings};
use baton::{
    Name,
    settings::{Said, SettingsError, document::Mistake, quantity},
    store::StoreUrl,
};

use crate::exit::{Exit, Failure};

/// The fleet's file where nobody names one.
const USUAL: &str = "baton.toml";

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
    // Both concern what programs push once under a key; no command does that.
    /// How many idempotency keys (of messages that programs push by `push_once`) may live at once [env: BATON_MAX_KEYS]
    /// [default: 1000000]
    #[arg(long, global = true, hide = true, value_name = "COUNT", value_parser = quantity::count)]
    max_keys: Option<u64>,
    /// How long an idempotency key lives, up to 366d [env: BATON_KEY_LIFETIME] [default: 24h]
    #[arg(long, global = true, hide = true, value_name = "TIME", value_parser = quantity::lifetime)]
    key_lifetime: Option<Duration>,
    /// How many bytes all results that are kept may take, and all calls that have ended as many; then the oldest go
    /// [env: BATON_MAX_RESULTS]
    /// [default: 256MiB]
    #[arg(long, global = true, hide = true, value_name = "BYTES", value_parser = quantity::bytes)]
    max_results: Option<u64>,
    /// The TOML file that describes the fleet: its store, queues and sources; see `baton config --help` [env: BATON_CONFIG]
    /// [default: baton.toml in the present folder, if it is there]
    #[arg(long, global = true, value_name = "PATH")]
    config: Option<PathBuf>,
}

impl Globals {
    /// Where the fleet's file is, or would be.
    pub(crate) fn fleet_file(&self) -> PathBuf {
        let named =
            self.config.clone().or_else(|| std::env::var_os(CONFIG).filter(|it| !it.is_empty()).map(PathBuf::from));
        named.unwrap_or_else(|| PathBuf::from(USUAL))
    }

    /// Puts flags, environment, files and defaults together.
    pub(crate) fn resolve(self) -> Result<Settings, Failure> {
        self.read()?.map_err(refused)
    }

    /// The same, with every mistake in the files.
    pub(crate) fn read(self) -> Result<Result<Settings, Vec<Mistake>>, Failure> {
        let redis = self.redis()?;
        if redis.is_some() && self.store.is_some() {
            return Err(Failure::usage(
                "--store and --rhost, --rport or --rdb both name the store",
                "give one of the two",
            ));
        }
        let named = self.store.map(|url| url.parse()).transpose()?;
        let Self { fleet, wait, max_keys, key_lifetime, max_results, config, .. } = self;
        let said = Said { store: redis.or(named), fleet, wait, max_keys, key_lifetime, max_results, file: config };
        let error = match Settings::resolve(said) {
            Ok(settings) => return Ok(Ok(settings)),
            Err(SettingsError::Mistakes(mistakes)) => return Ok(Err(mistakes)),
            Err(error) => error,
        };
        let next = match &error {
            SettingsError::Url { .. } => return Err(Failure::advised(Exit::Usage, &error.to_string())),
            SettingsError::NoHome => "name one with --store",
            SettingsError::NotText(_) | SettingsError::Value { .. } => "correct the variable, or unset it",
            SettingsError::Json { .. } => {
                "write each of its keys as a line into config.toml beside it, as fleet = \"baton\", and remove it"
            }
            _ => "correct the file, or name another with --config",
        };
        Err(Failure::usage(error.to_string(), next))
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

/// The first mistake of a file, and how to see the others.
pub(crate) fn refused(mistakes: Vec<Mistake>) -> Failure {
    let more = mistakes.len().saturating_sub(1);
    let first = mistakes.into_iter().next();
    let path = first.as_ref().map(|it| it.path.clone()).unwrap_or_default();
    let (cause, next) = first.map(|it| (it.placed(), it.next)).unwrap_or_default();
    // The usual files, and one that a variable names, are checked without a flag.
    let by_itself =
        path.as_os_str() == USUAL || path.ends_with("baton/config.toml") || std::env::var_os(CONFIG).is_some();
    let named = if by_itself { String::new() } else { format!("--config {} ", path.display()) };
    let next = if more > 0 { format!("{next} ({more} more: `baton {named}config --check`)") } else { next };
    Failure::usage(cause, next)
}
