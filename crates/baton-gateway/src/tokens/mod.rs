//! Who may read and who may admin: bearer tokens, kept by their digests in a file of this machine's user.
//!
//! The file needs no store, so whoever comes is judged before there is one. It is written whole and renamed into place,
//! under a lock, and is its owner's alone (mode 600): one that others can read is refused. A token is 256 random bits and
//! shown once; what is kept is its SHA-256, which is compared in a time that does not depend on it.

mod disk;
mod file;
mod keeper;

pub use file::{NewToken, TokenFile};
pub(crate) use keeper::{Access, Keeper, LOOK_AGAIN};

use std::{io, path::PathBuf};

use baton::Name;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// What every token begins with, so that one that lies about is known for what it is.
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

/// A token as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// What people call it.
    pub name: String,
    /// What it allows.
    pub right: Right,
    /// When it was made, in milliseconds of the system's clock.
    pub added_ms: u64,
    sha256: String,
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
    /// A link, a pipe or a device lies where a file is wanted.
    #[error("{} is {what}", path.display())]
    NotRegular {
        /// What was found there.
        path: PathBuf,
        /// Its kind.
        what: &'static str,
    },
    /// Another process changes the tokens, and does not come to an end.
    #[error("another process has locked {} for over 5 s", path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
    },
    /// The change is in force, and it is not known whether it survives a power failure.
    #[error("{}: the change is made, but a power failure may undo it: {error}", path.display())]
    Unsynced {
        /// The file.
        path: PathBuf,
        /// Why the folder could not be written to disk.
        error: io::Error,
    },
    /// The file is no file of tokens.
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
    /// There is a token of this name.
    #[error("there is a token {0} already")]
    Taken(Name),
    /// There is no token of this name.
    #[error("there is no token {0}")]
    Unknown(Name),
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
