//! Who may read and who may operate: the bearer tokens of a fleet, in a file of this machine's user.
//!
//! A token belongs to a fleet, that is a store and a name (`place.rs`). The file has an entry for each fleet and needs no
//! store, so requests are judged also while the store is away. A fleet with an entry is closed to callers without a token
//! until it is opened on purpose; so the last revoked token, a flushed store or another address opens nothing.
//!
//! Each change writes a new file and renames it into place, under a lock. Only its owner may read the file (mode 600); a
//! file that others can read is refused. A token is 256 random bits and is shown once. The file holds its SHA-256, which is
//! compared in constant time.

mod disk;
mod file;
mod keeper;
mod place;

pub use file::{NewToken, TokenFile};
pub(crate) use keeper::{Access, Keeper, LOOK_AGAIN};

use std::{fmt, io, path::PathBuf};

use baton::Name;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use self::place::Known;

/// The beginning of every token, so that a lost one is recognised.
const PREFIX: &str = "baton_";

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// To look.
    Read,
    /// To look, and to change something.
    Operate,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Operate => "operate",
        })
    }
}

/// A token as the file holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Its name.
    pub name: String,
    /// What it allows.
    pub right: Right,
    /// When it was made, in milliseconds of the system's clock.
    pub added_ms: u64,
    sha256: String,
}

/// The tokens of a fleet, and whether callers need one.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Standing {
    /// The tokens.
    pub tokens: Vec<Token>,
    /// Whether callers need one.
    pub openness: Openness,
    /// Fleets whose tokens say nothing about this one.
    others: Vec<Known>,
}

/// Whether callers need a token.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Openness {
    /// Everybody on this machine may ask: the fleet never had a token.
    #[default]
    Open,
    /// Everybody on this machine may ask: somebody opened the gateway.
    Opened,
    /// Callers need a token.
    Closed,
    /// No caller gets in: the store may be the one of this fleet, which needs tokens.
    Unclear(String),
}

impl Openness {
    /// Whether callers need no token.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Open | Self::Opened)
    }
}

impl Standing {
    /// Whether no caller gets in, with or without a token.
    #[must_use]
    pub const fn is_shut(&self) -> bool {
        !self.openness.is_open() && self.tokens.is_empty()
    }
}

/// One sentence for people, without its full stop.
impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WAYS: &str = "`baton token add NAME` makes a token, `baton token open` opens the gateway";
        match (&self.openness, self.tokens.len()) {
            (Openness::Open | Openness::Opened, _) => {
                f.write_str("the gateway is open to everybody on this machine, without a token")
            }
            (_, 1) => f.write_str("the gateway asks for a token, and 1 is valid"),
            (_, 2..) => write!(f, "the gateway asks for a token, and {} are valid", self.tokens.len()),
            (Openness::Closed, _) => write!(f, "the gateway is closed, because no token is valid; {WAYS}"),
            (Openness::Unclear(place), _) => write!(
                f,
                "the gateway is closed, because its store may be that of {place}, moved or under another address, and that \
                 one asks for tokens; {WAYS}"
            ),
        }
    }
}

/// Why tokens cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A file that was named is not there.
    #[error("there is no file {} with tokens", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file, or a folder above it, is a link to a place where nothing is.
    #[error("{} is a symbolic link that leads nowhere", path.display())]
    Dangling {
        /// The link.
        path: PathBuf,
    },
    /// The file is a link, a pipe or a device.
    #[error("{} is {what}", path.display())]
    NotRegular {
        /// What was found there.
        path: PathBuf,
        /// Its kind.
        what: &'static str,
    },
    /// Another process holds the lock of the file.
    #[error("another process has locked {} for over 5 s", path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
    },
    /// The change is in force, but may not survive a power failure.
    #[error("{}: the change is made, but a power failure may undo it: {error}", path.display())]
    Unsynced {
        /// The file.
        path: PathBuf,
        /// Why the folder could not be written to disk.
        error: io::Error,
    },
    /// The file does not hold tokens.
    #[error("{} holds no tokens: {why}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Others may read the file.
    #[error("{} can be read by others", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// A token has this name already.
    #[error("there is a token {0} already")]
    Taken(Name),
    /// There is no token of this name.
    #[error("there is no token {0}")]
    Unknown(Name),
    /// The gateway cannot be opened while there are tokens.
    #[error("there are tokens: {0}")]
    Left(String),
    /// The system gave no random bytes.
    #[error("the system gives no random bytes")]
    NoChance,
}

fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
