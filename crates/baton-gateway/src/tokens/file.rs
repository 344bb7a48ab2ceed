//! The file of tokens.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use baton::Name;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{PREFIX, Right, Token, TokenError, digest, hex};

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
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failed(error)),
        };
        let metadata = file.metadata().map_err(|error| self.failed(error))?;
        if metadata.mode() & 0o077 != 0 {
            return Err(TokenError::Exposed { path: self.path.clone() });
        }
        let content = |why: String| TokenError::Content { path: self.path.clone(), why };
        if metadata.len() > MAX_BYTES {
            return Err(content("it is too long".to_owned()));
        }
        let text = io::read_to_string(file).map_err(|error| self.failed(error))?;
        let read: Content = serde_json::from_str(&text).map_err(|error| content(error.to_string()))?;
        Ok(read.tokens)
    }

    /// Makes a token; what its bearer presents, which is kept nowhere.
    ///
    /// # Errors
    /// [`TokenError::Taken`] if the name is used; the file's failure.
    pub fn add(&self, name: &Name, right: Right) -> Result<String, TokenError> {
        let mut chance = [0; 32];
        getrandom::fill(&mut chance).map_err(|_| TokenError::NoChance)?;
        let secret = format!("{PREFIX}{}", hex(&chance));
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let added_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let token = Token { name: name.to_string(), right, added_ms, sha256: hex(&digest(&secret)) };
        self.change(|tokens| {
            if tokens.iter().any(|it| it.name == token.name) {
                return Err(TokenError::Taken(name.clone()));
            }
            tokens.push(token);
            Ok(())
        })?;
        Ok(secret)
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
        })?;
        Ok(left)
    }

    /// What the file is at this moment; nothing if it is not there.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        let it = fs::metadata(&self.path).ok()?;
        Some(Stamp(it.ino(), it.len(), it.mtime(), it.mtime_nsec(), it.mode()))
    }

    /// Changes the tokens under a lock that all who change them take.
    fn change(&self, change: impl FnOnce(&mut Vec<Token>) -> Result<(), TokenError>) -> Result<(), TokenError> {
        let failed = |error: io::Error| self.failed(error);
        if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        }
        let with_end = |end: &str| {
            let mut name = self.path.clone().into_os_string();
            name.push(end);
            PathBuf::from(name)
        };
        let own = |path: &Path| OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
        let lock = own(&with_end(".lock")).map_err(failed)?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        let mut tokens = self.read()?;
        change(&mut tokens)?;
        let next = with_end(".new");
        // One that a killed process left may belong to others by its mode.
        match fs::remove_file(&next) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let mut file = own(&next).map_err(failed)?;
        let text = serde_json::to_string_pretty(&Content { tokens }).map_err(|error| failed(error.into()))?;
        file.write_all(text.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(failed)?;
        file.sync_all().and_then(|()| fs::rename(&next, &self.path)).map_err(failed)
    }

    fn failed(&self, error: io::Error) -> TokenError {
        TokenError::File { path: self.path.clone(), error }
    }
}
