//! How a run ends: the exit codes, and failures as one line with a way on.

use std::{fmt, process::ExitCode};

use baton::store::{InvalidUrl, Refusal, StoreError, StoreUrl};

/// What the exit code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All went well.
    Ok = 0,
    /// It did not work; a bad body too.
    Failed = 1,
    /// The command line, a setting or a number in it is not usable.
    Usage = 2,
    /// It ended as it should, with messages in the error registry.
    Dead = 3,
    /// The books do not balance.
    Unbalanced = 4,
    /// The store cannot be reached, or cannot be used.
    Store = 5,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a run failed and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    cause: String,
    next: String,
}

impl Failure {
    pub(crate) fn new(cause: impl Into<String>, next: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, cause: cause.into(), next: next.into() }
    }

    pub(crate) fn usage(cause: impl Into<String>, next: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, ..Self::new(cause, next) }
    }

    /// The same failure, with what had been done before it.
    pub(crate) fn after(self, done: &str, next: &str) -> Self {
        Self { cause: format!("{}; {done}", self.cause), next: format!("{}, then {next}", self.next), ..self }
    }

    /// A store's failure or refusal, said of the store it came from.
    pub(crate) fn of_store(error: &StoreError, url: &StoreUrl) -> Self {
        let (exit, cause, next) = match error {
            StoreError::Unreachable(why) => {
                (Exit::Store, format!("the store is not up: {why}"), "see `baton config` for the store in use")
            }
            StoreError::Unfit(why) => {
                (Exit::Store, format!("the store cannot be used: {why}"), "choose another with --store")
            }
            StoreError::Damaged(_) => (Exit::Store, format!("{url}: {error}"), "see `baton restore --help`"),
            StoreError::NoRoom(why) => (Exit::Failed, format!("the store has no room: {why}"), "make room there"),
            StoreError::Refused(Refusal::NewerFormat { .. }) => {
                (Exit::Store, format!("{url}: {error}"), "nothing was changed")
            }
            StoreError::Refused(
                Refusal::Definition { .. } | Refusal::DefinitionInUse { .. } | Refusal::Offered { .. },
            ) => (Exit::Failed, error.to_string(), "nothing was changed"),
            StoreError::Refused(Refusal::Purging) => (Exit::Failed, error.to_string(), "nothing was changed"),
            _ => (Exit::Failed, format!("the store at {url} refused: {error}"), "run this again"),
        };
        Self { exit, ..Self::new(cause, next) }
    }
}

impl From<InvalidUrl> for Failure {
    fn from(error: InvalidUrl) -> Self {
        Self::usage(error.to_string(), "see `baton --help`")
    }
}

/// One line, whatever the parts hold: texts from files and servers must not break it or steer a terminal.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flat: String = self.cause.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let words: Vec<&str> = flat.split_whitespace().collect();
        write!(f, "{}; {}", words.join(" "), self.next)
    }
}
