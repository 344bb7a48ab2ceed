//! The file of tokens: an entry for each fleet.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use baton::{Name, store::StoreUrl};
use serde::{Deserialize, Serialize};

use super::{
    Openness, PREFIX, Right, Standing, Token, TokenError, digest,
    disk::{Staged, System, failed, lock, make_folder, open_to_read, refuse_link},
    hex,
    place::{Known, Place, Relation},
};

/// More bytes than any file of tokens has.
const MAX_BYTES: u64 = 4 << 20;

/// The tokens of one fleet in a file, which need not be there yet.
#[derive(Debug, Clone)]
pub struct TokenFile {
    path: PathBuf,
    /// The fleet; nothing if the tokens hold for every gateway that goes by this file.
    place: Option<Place>,
}

/// All that is in a file.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    entries: Vec<Entry>,
}

/// The tokens of one fleet. A fleet with an entry is closed to callers without a token, unless it was opened.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<Known>,
    #[serde(default)]
    open: bool,
    tokens: Vec<Token>,
}

/// Tells versions of a file apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp(u64, u64, i64, i64, u32);

impl TokenFile {
    /// The tokens in the file at this path, for every fleet whose gateway goes by it. The file must be there, and without
    /// tokens it lets no caller in until [`TokenFile::open`].
    #[must_use]
    pub const fn at(path: PathBuf) -> Self {
        Self { path, place: None }
    }

    /// The tokens of one fleet, in the state folder of this machine's user; nothing without a home.
    #[must_use]
    pub fn of_fleet(store: &StoreUrl, fleet: &Name) -> Option<Self> {
        baton::settings::state_folder().map(|folder| Self::at(folder.join("tokens.json")).only(store, fleet))
    }

    /// The tokens of one fleet in the same file.
    #[must_use]
    pub fn only(self, store: &StoreUrl, fleet: &Name) -> Self {
        Self { place: Some(Place::new(store, fleet)), ..self }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The tokens, and whether callers need one.
    ///
    /// # Errors
    /// [`TokenError`] if the file cannot be used.
    pub fn read(&self) -> Result<Standing, TokenError> {
        self.read_unless(|_| false)
    }

    /// The same. A fleet that was found to be another one before, as `is_other` says, is not taken for this one.
    pub(super) fn read_unless(&self, mut is_other: impl FnMut(&Known) -> bool) -> Result<Standing, TokenError> {
        let mut standing = Standing::default();
        let (mut own, mut perhaps) = (Vec::new(), None);
        let content = match (self.content()?, &self.place) {
            (None, None) => return Err(TokenError::Missing { path: self.path.clone() }),
            (content, _) => content.unwrap_or_default(),
        };
        for entry in content.entries {
            match self.relation(&entry) {
                Relation::Same => own.push(entry),
                _ if entry.open || entry.of.as_ref().is_some_and(&mut is_other) => {}
                Relation::Perhaps => perhaps = perhaps.or_else(|| Some(entry.place())),
                Relation::Other => standing.others.extend(entry.of),
            }
        }
        standing.openness = match perhaps {
            _ if own.iter().any(|it| !it.open) => Openness::Closed,
            _ if !own.is_empty() => Openness::Opened,
            Some(place) => Openness::Unclear(place),
            // A file that was named is there to guard; one that says nothing guards against everybody.
            None if self.place.is_none() => Openness::Closed,
            None => Openness::Open,
        };
        standing.tokens = own.into_iter().flat_map(|it| it.tokens).collect();
        Ok(standing)
    }

    /// What is in the file; nothing if it is not there.
    fn content(&self) -> Result<Option<Content>, TokenError> {
        let Some(file) = open_to_read(&self.path)? else { return Ok(None) };
        let metadata = file.metadata().map_err(|error| failed(&self.path, error))?;
        if metadata.mode() & 0o077 != 0 {
            return Err(TokenError::Exposed { path: self.path.clone() });
        }
        let content = |why: String| TokenError::Content { path: self.path.clone(), why };
        if metadata.len() > MAX_BYTES {
            return Err(content("it is too long".to_owned()));
        }
        let text = io::read_to_string(file.take(MAX_BYTES)).map_err(|error| failed(&self.path, error))?;
        serde_json::from_str(&text).map(Some).map_err(|error| content(error.to_string()))
    }

    fn relation(&self, entry: &Entry) -> Relation {
        match (&self.place, &entry.of) {
            (None, None) => Relation::Same,
            (Some(place), Some(known)) => place.relation(known),
            _ => Relation::Perhaps,
        }
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

    /// Makes a token that is not in force until [`NewToken::activate`]. So its secret can be shown first, and no token is in
    /// force that no one has seen. Meanwhile, other changes of the file wait.
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
        let change = self.change(|entry| {
            if entry.tokens.iter().any(|it| it.name == token.name) {
                return Err(TokenError::Taken(name.clone()));
            }
            entry.tokens.push(token);
            entry.open = false;
            Ok(())
        })?;
        Ok(NewToken { secret, change })
    }

    /// Takes a token away; a running gateway refuses it within a second. Returns how many tokens are left. Without any, the
    /// gateway stays closed to everybody until [`TokenFile::open`].
    ///
    /// # Errors
    /// [`TokenError::Unknown`] if there is none of this name; the file's failure.
    pub fn revoke(&self, name: &Name) -> Result<usize, TokenError> {
        let mut left = 0;
        self.change(|entry| {
            let before = entry.tokens.len();
            entry.tokens.retain(|it| it.name != name.as_str());
            left = entry.tokens.len();
            if left == before { Err(TokenError::Unknown(name.clone())) } else { Ok(()) }
        })?
        .make()?;
        Ok(left)
    }

    /// Lets everybody on this machine in without a token, until the next token is made.
    ///
    /// # Errors
    /// [`TokenError::Left`] if there are tokens; the file's failure.
    pub fn open(&self) -> Result<(), TokenError> {
        self.change(|entry| {
            entry.open = true;
            let names = entry.tokens.iter().map(|it| it.name.as_str()).collect::<Vec<_>>();
            if names.is_empty() { Ok(()) } else { Err(TokenError::Left(names.join(", "))) }
        })?
        .make()
    }

    /// What the file is at this moment, or the link that leads nowhere; nothing if there is neither.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        let it = fs::metadata(&self.path).or_else(|_| fs::symlink_metadata(&self.path)).ok()?;
        Some(Stamp(it.ino(), it.len(), it.mtime(), it.mtime_nsec(), it.mode()))
    }

    /// Prepares a change of the fleet's entry, under a lock that every change takes.
    fn change(&self, change: impl FnOnce(&mut Entry) -> Result<(), TokenError>) -> Result<Change, TokenError> {
        make_folder(&System, &self.path).map_err(|error| failed(&self.path, error))?;
        let lock = lock(&self.path)?;
        refuse_link(&self.path)?;
        let mut content = self.content()?.unwrap_or_default();
        let mut entry = self.take(&mut content);
        change(&mut entry)?;
        if entry.open {
            content.entries.extend(self.split(&mut entry));
        }
        content.entries.push(entry);
        let text = serde_json::to_string_pretty(&content);
        let text = text.map_err(|error| failed(&self.path, error.into()))? + "\n";
        let staged = Staged::new(&System, &self.path, text.as_bytes())?;
        Ok(Change { staged, _lock: lock })
    }

    /// Takes all that is known of the fleet out of the file, as one entry.
    fn take(&self, content: &mut Content) -> Entry {
        let mut own = Entry { of: self.place.as_ref().map(Known::new), ..Entry::default() };
        for entry in content.entries.extract_if(.., |it| self.relation(it) == Relation::Same) {
            own.tokens.extend(entry.tokens);
            if let (Some(own), Some(known)) = (&mut own.of, entry.of) {
                own.merge(known);
            }
        }
        own
    }

    /// Leaves only the present address in an entry that is to be open. The others stay closed.
    fn split(&self, entry: &mut Entry) -> Option<Entry> {
        let place = self.place.as_ref()?;
        let mut rest = entry.of.replace(Known::new(place))?;
        rest.remove(place).then(|| Entry { of: Some(rest), ..Entry::default() })
    }
}

impl Entry {
    /// The first address of its fleet, to show it.
    fn place(&self) -> String {
        let first = self.of.as_ref().and_then(|it| Some(format!("fleet {} at {}", it.fleet, it.stores.first()?)));
        first.unwrap_or_else(|| "this file".to_owned())
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
