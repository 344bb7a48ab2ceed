//! The fleet that tokens belong to: a fleet's name, and the store that holds it.
//!
//! One store has many addresses, so two addresses are compared by these rules. A store that may be a known one counts as
//! closed: a new address must not open a gateway that was closed.
//!
//! | the stores | they are |
//! |---|---|
//! | the same path without links, or the same file at another path | the same, also after the file was deleted or moved |
//! | two paths | two stores, as long as a file lies at the path that is known; else perhaps the same, moved, if the files have one name |
//! | the same host, port and database of Redis, whatever the user, the password or the name of the loopback address | the same, also after a flush |
//! | two databases of Redis, or two ports of one host that speak the same protocol | two stores |
//! | two hosts of Redis | perhaps the same |

use std::{
    fmt, fs,
    net::IpAddr,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf, absolute},
    time::UNIX_EPOCH,
};

use baton::{Name, store::StoreUrl};
use serde::{Deserialize, Serialize};

/// A fleet in its store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) fleet: Name,
    pub(super) store: Store,
}

/// A store's address in one form, without user and password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Store {
    Memory,
    Sqlite(String),
    Redis { host: String, port: u16, db: u32, tls: bool },
}

/// A file, wherever it lies: its inode, and when it was made, since inodes are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileId(u64, Option<u64>);

/// The fleet of some tokens, by all addresses and files that are known of its store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    pub(super) fleet: String,
    pub(super) stores: Vec<Store>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileId>,
}

/// How a fleet stands to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Same,
    Perhaps,
    Other,
}

impl Place {
    pub(super) fn new(store: &StoreUrl, fleet: &Name) -> Self {
        Self { fleet: fleet.clone(), store: Store::of(store) }
    }

    /// How this fleet stands to a known one, as the files are now.
    pub(super) fn relation(&self, known: &Known) -> Relation {
        if self.fleet.as_str() != known.fleet {
            return Relation::Other;
        }
        if known.stores.iter().any(|it| it.is_at(&self.store)) {
            return Relation::Same;
        }
        if let Store::Sqlite(path) = &self.store {
            let there: Vec<FileId> = known.stores.iter().filter_map(Store::file).collect();
            if FileId::at(path).is_some_and(|file| there.contains(&file) || known.files.contains(&file)) {
                return Relation::Same;
            }
            // A file that is moved to another disk gets another inode and mostly keeps its name.
            let is_namesake = known.stores.iter().any(|it| it.has_file_name_of(path));
            return if is_namesake && there.is_empty() { Relation::Perhaps } else { Relation::Other };
        }
        let perhaps = known.stores.iter().any(|it| it.is_perhaps(&self.store));
        if perhaps { Relation::Perhaps } else { Relation::Other }
    }
}

impl Known {
    pub(super) fn new(place: &Place) -> Self {
        let mut known = Self { fleet: place.fleet.to_string(), stores: Vec::new(), files: Vec::new() };
        known.add(place);
        known
    }

    /// Notes one more address, and the file that is there now.
    pub(super) fn add(&mut self, place: &Place) {
        if !self.stores.contains(&place.store) {
            self.stores.push(place.store.clone());
        }
        if let Some(file) = place.store.file().filter(|file| !self.files.contains(file)) {
            self.files.push(file);
        }
    }

    /// Takes over what is known of the same store.
    pub(super) fn merge(&mut self, mut other: Self) {
        other.stores.retain(|it| !self.stores.contains(it));
        other.files.retain(|it| !self.files.contains(it));
        self.stores.extend(other.stores);
        self.files.extend(other.files);
    }

    /// Whether both have an address in common.
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.fleet == other.fleet && self.stores.iter().any(|it| other.stores.contains(it))
    }

    /// Strikes out an address and the file that is there now; whether anything is left.
    pub(super) fn remove(&mut self, place: &Place) -> bool {
        let file = place.store.file();
        self.stores.retain(|it| !it.is_at(&place.store));
        self.files.retain(|it| Some(*it) != file);
        !self.stores.is_empty() || !self.files.is_empty()
    }
}

impl Store {
    fn of(url: &StoreUrl) -> Self {
        match url {
            StoreUrl::Sqlite(path) => Self::Sqlite(without_links(path).to_string_lossy().into_owned()),
            StoreUrl::Redis(url) => {
                let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
                let db = url.path().trim_start_matches('/').parse().unwrap_or_default();
                let (port, tls) = (url.port().unwrap_or(6379), url.scheme() == "rediss");
                Self::Redis { host: one_name(host), port, db, tls }
            }
            _ => Self::Memory,
        }
    }

    /// Whether both addresses lead to the same place.
    fn is_at(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Redis { host, port, db, .. }, Self::Redis { host: host_2, port: port_2, db: db_2, .. }) => {
                (host, port, db) == (host_2, port_2, db_2)
            }
            _ => self == other,
        }
    }

    /// Whether two addresses that differ may lead to the same server.
    fn is_perhaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Redis { host, db, tls, .. }, Self::Redis { host: host_2, db: db_2, tls: tls_2, .. }) => {
                db == db_2 && (host, tls) != (host_2, tls_2)
            }
            _ => false,
        }
    }

    fn has_file_name_of(&self, path: &str) -> bool {
        matches!(self, Self::Sqlite(own) if Path::new(own).file_name() == Path::new(path).file_name())
    }

    fn file(&self) -> Option<FileId> {
        match self {
            Self::Sqlite(path) => FileId::at(path),
            _ => None,
        }
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory:"),
            Self::Sqlite(path) => write!(f, "sqlite:{path}"),
            Self::Redis { host, port, db, tls } => {
                write!(f, "{}://{host}:{port}/{db}", if *tls { "rediss" } else { "redis" })
            }
        }
    }
}

impl FileId {
    fn at(path: &str) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        let born = found.created().ok().and_then(|it| it.duration_since(UNIX_EPOCH).ok());
        Some(Self(found.ino(), born.and_then(|it| u64::try_from(it.as_nanos()).ok())))
    }
}

/// One name for all loopback addresses, and one form of every other address.
fn one_name(host: String) -> String {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().map(|it| it.to_canonical());
    match address {
        Ok(address) if address.is_loopback() => "localhost".to_owned(),
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        Ok(address) => address.to_string(),
        Err(_) => host.trim_end_matches('.').to_owned(),
    }
}

/// The absolute path of a file without links. The file may be missing; a folder above it may be, too.
fn without_links(path: &Path) -> PathBuf {
    let path = absolute(path).unwrap_or_else(|_| path.to_owned());
    let found = path.canonicalize().ok();
    let by_folder = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    found.or_else(by_folder).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn place(store: &str) -> Place {
        Place::new(&store.parse().unwrap(), &Name::new("shop").unwrap())
    }

    fn relation(known: &str, other: &str) -> Relation {
        place(other).relation(&Known::new(&place(known)))
    }

    #[test]
    fn a_server_is_the_same_by_any_name_of_this_host_and_any_password() {
        for (one, other) in [
            ("redis://localhost", "redis://127.0.0.1:6379/0"),
            ("redis://:old@LOCALHOST/0", "redis://user:new@[::1]"),
            ("redis://h:7/1", "rediss://H:7/1"),
            ("redis://10.0.0.5", "redis://[::ffff:10.0.0.5]"),
        ] {
            assert_eq!(relation(one, other), Relation::Same, "{one} {other}");
        }
        for (one, other) in [("redis://a", "redis://b"), ("redis://h:6379", "rediss://h:6380")] {
            assert_eq!(relation(one, other), Relation::Perhaps, "{one} {other}");
        }
        for (one, other) in [
            ("redis://h/1", "redis://h/2"),
            ("redis://h:1", "redis://h:2"),
            ("redis://h", "sqlite:h"),
            ("memory:", "sqlite:h"),
        ] {
            assert_eq!(relation(one, other), Relation::Other, "{one} {other}");
        }
        let text = serde_json::to_string(&Known::new(&place("redis://user:secret@h"))).unwrap();
        assert!(!text.contains("user") && !text.contains("secret"), "{text}");
    }

    #[test]
    fn a_file_is_the_same_by_links_by_its_path_and_after_a_move() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name);
        let at = |name: &str| place(&format!("sqlite:{}", path(name).display()));
        fs::write(path("a.db"), "a").unwrap();
        fs::write(path("b.db"), "b").unwrap();
        fs::create_dir(path("sub")).unwrap();
        symlink(path("a.db"), path("sub/link.db")).unwrap();
        fs::hard_link(path("a.db"), path("hard.db")).unwrap();
        let mut known = Known::new(&at("a.db"));
        for same in ["a.db", "sub/../a.db", "sub/link.db", "hard.db"] {
            assert_eq!(at(same).relation(&known), Relation::Same, "{same}");
        }
        for other in ["b.db", "new.db"] {
            assert_eq!(at(other).relation(&known), Relation::Other, "{other}");
        }
        fs::rename(path("a.db"), path("moved.db")).unwrap();
        assert_eq!(at("moved.db").relation(&known), Relation::Same);
        assert_eq!(at("a.db").relation(&known), Relation::Same, "a file that was deleted");
        assert_eq!(at("sub/a.db").relation(&known), Relation::Perhaps, "a move to another disk");
        for other in ["new.db", "b.db"] {
            assert_eq!(at(other).relation(&known), Relation::Other, "a store that has nothing to do with it: {other}");
        }
        // Another file takes the place: both belong to the same fleet then.
        fs::write(path("a.db"), "later").unwrap();
        known.add(&at("a.db"));
        for same in ["moved.db", "a.db"] {
            assert_eq!(at(same).relation(&known), Relation::Same, "{same}");
        }
        assert_eq!(at("b.db").relation(&known), Relation::Other);
        assert!(known.remove(&at("a.db")), "the file that was moved is left");
        assert_eq!(at("moved.db").relation(&known), Relation::Same);
        assert!(!known.remove(&at("moved.db")));
    }
}
