//! The file of tokens.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use baton::Name;
use serde::{Deserialize, Serialize};

use super::{
    PREFIX, Right, Token, TokenError, digest,
    disk::{Staged, System, failed, lock, make_folder, open_to_read, refuse_link},
    hex,
};

/// More bytes than any file of tokens has.
const MAX_BYTES: u64 = 4 << 20;

/// A file of tokens, which need not be there yet.
#[derive(Debug, Clone)]
pub struct TokenFile {
    path: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    tokens: Vec<Token>,
}

/// What a file is told apart by from what it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp(u64, u64, i64, i64, u32);

impl TokenFile {
    /// The file at this path.
    #[must_use]
    pub const fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// The one in the state folder of this machine's user; nothing without a home.
    #[must_use]
    pub fn of_user() -> Option<Self> {
        baton::settings::state_folder().map(|folder| Self::at(folder.join("tokens.json")))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The tokens; none if there is no file.
    ///
    /// # Errors
    /// [`TokenError`] if the file cannot be used.
    pub fn read(&self) -> Result<Vec<Token>, TokenError> {
        let Some(file) = open_to_read(&self.path)? else { return Ok(Vec::new()) };
        let metadata = file.metadata().map_err(|error| failed(&self.path, error))?;
        if metadata.mode() & 0o077 != 0 {
            return Err(TokenError::Exposed { path: self.path.clone() });
        }
        let content = |why: String| TokenError::Content { path: self.path.clone(), why };
        if metadata.len() > MAX_BYTES {
            return Err(content("it is too long".to_owned()));
        }
        let text = io::read_to_string(file.take(MAX_BYTES)).map_err(|error| failed(&self.path, error))?;
        let read: Content = serde_json::from_str(&text).map_err(|error| content(error.to_string()))?;
        Ok(read.tokens)
    }

    /// Makes a token; its secret, which is kept nowhere. To show the secret first, see [`TokenFile::prepare`].
    ///
    /// # Errors
    /// [`TokenError::Taken`] if the name is used; the file's failure.
    pub fn add(&self, name: &Name, right: Right) -> Result<String, TokenError> {
        let new = self.prepare(name, right)?;
        let secret = new.secret().to_owned();
        new.activate()?;
        Ok(secret)
    }

    /// Makes a token that is not in force until [`NewToken::activate`]: its secret can be shown before, so that none is in
    /// force that nobody has seen. Others who change the tokens wait meanwhile.
    ///
    /// # Errors
    /// [`TokenError::Taken`] if the name is used; the file's failure.
    pub fn prepare(&self, name: &Name, right: Right) -> Result<NewToken, TokenError> {
        let mut chance = [0; 32];
        getrandom::fill(&mut chance).map_err(|_| TokenError::NoChance)?;
        let secret = format!("{PREFIX}{}", hex(&chance));
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let added_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let token = Token { name: name.to_string(), right, added_ms, sha256: hex(&digest(&secret)) };
        let change = self.change(|tokens| {
            if tokens.iter().any(|it| it.name == token.name) {
                return Err(TokenError::Taken(name.clone()));
            }
            tokens.push(token);
            Ok(())
        })?;
        Ok(NewToken { secret, change })
    }

    /// Takes a token away; a running gateway refuses it within a second. How many are left: without any, a running gateway
    /// lets nobody in, and one that is started then everybody on this machine.
    ///
    /// # Errors
    /// [`TokenError::Unknown`] if there is none of this name; the file's failure.
    pub fn revoke(&self, name: &Name) -> Result<usize, TokenError> {
        let mut left = 0;
        self.change(|tokens| {
            let before = tokens.len();
            tokens.retain(|it| it.name != name.as_str());
            left = tokens.len();
            if left == before { Err(TokenError::Unknown(name.clone())) } else { Ok(()) }
        })?
        .make()?;
        Ok(left)
    }

    /// What the file is at this moment; nothing if it is not there.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        let it = fs::metadata(&self.path).ok()?;
        Some(Stamp(it.ino(), it.len(), it.mtime(), it.mtime_nsec(), it.mode()))
    }

    /// Prepares a change of the tokens, under a lock that all take who change them.
    fn change(&self, change: impl FnOnce(&mut Vec<Token>) -> Result<(), TokenError>) -> Result<Change, TokenError> {
        make_folder(&System, &self.path).map_err(|error| failed(&self.path, error))?;
        let lock = lock(&self.path)?;
        refuse_link(&self.path)?;
        let mut tokens = self.read()?;
        change(&mut tokens)?;
        let text = serde_json::to_string_pretty(&Content { tokens });
        let text = text.map_err(|error| failed(&self.path, error.into()))? + "\n";
        let staged = Staged::new(&System, &self.path, text.as_bytes())?;
        Ok(Change { staged, _lock: lock })
    }
}

/// A change that is not made yet.
#[derive(Debug)]
struct Change {
    staged: Staged,
    _lock: File,
}

impl Change {
    fn make(self) -> Result<(), TokenError> {
        self.staged.publish(&System)
    }
}

/// A token that is not in force yet.
pub struct NewToken {
    secret: String,
    change: Change,
}

impl NewToken {
    /// What its bearer presents.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// Puts it in force.
    ///
    /// # Errors
    /// The file's failure. The token is in force after [`TokenError::Unsynced`], and after no other.
    pub fn activate(self) -> Result<(), TokenError> {
        self.change.make()
    }
}

/// Without its secret.
impl fmt::Debug for NewToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewToken").field("change", &self.change).finish_non_exhaustive()
    }
}
