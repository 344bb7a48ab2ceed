//! How a run ends: the exit codes, and failures as one line with a way on.

use std::{fmt, process::ExitCode};

use baton::{
    Name, PushError,
    admin::{AdminError, Unknown},
    settings::document::meant,
    store::{InvalidUrl, Refusal, StoreError, StoreUrl, session::SubmitError},
};

use crate::output::tame;

/// What the exit code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All went well.
    Ok = 0,
    /// It did not work; a bad body too.
    Failed = 1,
    /// The command line, a setting or a number in it is not usable.
    Usage = 2,
    /// It ended as it should, and messages failed in it.
    MessagesFailed = 3,
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
    pub(crate) cause: String,
    next: String,
}

impl Failure {
    pub(crate) fn new(cause: impl Into<String>, next: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, cause: cause.into(), next: next.into() }
    }

    pub(crate) fn usage(cause: impl Into<String>, next: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, ..Self::new(cause, next) }
    }

    /// The same failure, with what it is about.
    pub(crate) fn of(self, what: &str) -> Self {
        Self { cause: format!("{what}: {}", self.cause), ..self }
    }

    /// The same failure with another exit code.
    pub(crate) fn with(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }

    /// A text of the library that ends with its own next step, behind its last colon or semicolon.
    pub(crate) fn advised(exit: Exit, text: &str) -> Self {
        let mark = [": ", "; "].into_iter().filter_map(|mark| text.rfind(mark)).max();
        let parts = mark.and_then(|at| Some((text.get(..at)?, text.get(at + 2..)?)));
        let (cause, next) = parts.unwrap_or((text, "see `baton --help`"));
        Self { exit, ..Self::new(cause, next) }
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
                return Self::advised(Exit::Store, &format!("the store cannot be used: {why}"));
            }
            StoreError::Damaged(_) => (Exit::Store, format!("{url}: {error}"), "see `baton restore --help`"),
            StoreError::NoRoom(why) => {
                return Self::advised(Exit::Failed, &format!("the store takes nothing new: {why}"));
            }
            StoreError::Refused(Refusal::NewerFormat { .. }) => {
                return Self::advised(Exit::Store, &format!("{url}: {error}"));
            }
            StoreError::Refused(Refusal::OlderFormat { found, known }) => (
                Exit::Store,
                format!("{url}: the store has format {found}, this program needs format {known}"),
                "stop the fleet and run `baton migrate`",
            ),
            StoreError::Refused(Refusal::Definition { source_name }) => (
                Exit::Failed,
                format!("source {source_name} is known with another definition"),
                "give this one another name, or start it over with `--rewind`",
            ),
            StoreError::Refused(Refusal::Destroying) => {
                (Exit::Failed, "this fleet is being destroyed".to_owned(), "run `baton destroy` again to finish")
            }
            StoreError::Refused(Refusal::DefinitionInUse { .. } | Refusal::Offered { .. }) => {
                return Self::advised(Exit::Failed, &error.to_string());
            }
            _ => (Exit::Failed, format!("the store at {url} refused: {error}"), "run this again"),
        };
        Self { exit, ..Self::new(cause, next) }
    }

    /// Why an operation was not carried out, and what to do about it.
    pub(crate) fn of_operation(error: &AdminError, url: &StoreUrl) -> Self {
        let next = match error {
            AdminError::Store(error) => return Self::of_store(error, url),
            AdminError::Node(_) => return Self::usage(error.to_string(), "see `baton node --help`"),
            AdminError::Unknown(unknown) => return Self::new(error.to_string(), near(unknown)),
            AdminError::Offered { .. } => "stop it first",
            AdminError::Running { .. } => "stop it, then rewind",
            AdminError::RemovalRunning { .. } => "wait for it to end",
            AdminError::OfWhichQueue { .. } => "name one, as in `baton errors QUEUE`",
            AdminError::NodesAlive { .. } => "stop the fleet first, with `baton stop`",
            AdminError::QueueInUse { .. } => "stop the nodes first, with `baton stop`",
            AdminError::InFlight { .. } => "wait until they have ended, then run this again",
            AdminError::InUse { .. } => "stop it with the release it is of, then run this again",
            _ => "run this again",
        };
        Self::new(error.to_string(), next)
    }

    /// Why a single message was not stored.
    pub(crate) fn of_single(error: PushError, url: &StoreUrl) -> Self {
        match error {
            PushError::Store(error) => Self::of_store(&error, url),
            PushError::Full(_) => Self::new(error.to_string(), "start a node that works for it"),
            PushError::Interrupted(SubmitError { error: store, maybe_stored: true }) => {
                let unknown = format!("{store}; whether the message was stored is not known");
                let exit = Self::of_store(&store, url).exit;
                Self::new(unknown, "run it again, with the same --once if it must not run twice").with(exit)
            }
            PushError::Interrupted(SubmitError { error, .. }) => Self::of_store(&error, url),
            error @ PushError::Conflict(_) => Self::advised(Exit::Failed, &error.to_string()),
            error => Self::new(error.to_string(), "run it again later"),
        }
    }

    /// A failure of a copy from or to a store: what cannot be used may be the copy, and the text names the file.
    pub(crate) fn of_copy(error: &StoreError, url: &StoreUrl) -> Self {
        match error {
            StoreError::Unfit(why) => Self::advised(Exit::Store, why),
            StoreError::NoRoom(why) => Self::advised(Exit::Failed, why),
            other => Self::of_store(other, url),
        }
    }
}

/// The next step for a name that the fleet does not have.
pub(crate) fn near(unknown: &Unknown) -> String {
    let near = meant(unknown.name.as_str(), unknown.known.iter().map(Name::as_str));
    near.map_or_else(|| "name one that is there".to_owned(), |near| format!("did you mean {near}?"))
}

impl From<baton_bench::Failure> for Failure {
    fn from(failure: baton_bench::Failure) -> Self {
        match failure {
            baton_bench::Failure::Failed { cause, next } => Self::new(cause, next),
            baton_bench::Failure::Usage { cause, next } => Self::usage(cause, next),
            baton_bench::Failure::Unbalanced(cause) => {
                Self { exit: Exit::Unbalanced, ..Self::new(cause, "report this") }
            }
            baton_bench::Failure::Store { error, url } => Self::of_operation(&error, &url),
        }
    }
}

impl From<InvalidUrl> for Failure {
    fn from(error: InvalidUrl) -> Self {
        Self::advised(Exit::Usage, &error.to_string())
    }
}

/// One line, whatever the parts hold: texts from files and servers must not break it or steer a terminal.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flat: String = self.cause.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let words: Vec<&str> = flat.split_whitespace().collect();
        write!(f, "{}; {}", tame(&words.join(" ")), self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line_with_one_thing_to_do() {
        let url: StoreUrl = "sqlite:x.db".parse().unwrap();
        let line = |error: StoreError| Failure::of_store(&error, &url).to_string();
        assert_eq!(
            line(StoreError::Unfit("/x.db: is a directory: choose another path".to_owned())),
            "the store cannot be used: /x.db: is a directory; choose another path"
        );
        assert_eq!(
            line(StoreError::NoRoom("its disk is full: free some room".to_owned())),
            "the store takes nothing new: its disk is full; free some room"
        );
        assert_eq!(Failure::advised(Exit::Failed, "so it is").to_string(), "so it is; see `baton --help`");
    }
}
