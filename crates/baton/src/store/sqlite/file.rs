//! The store's file: found, checked, opened, and watched while it is open.
//!
//! An existing file is first looked at past its log and without being able to change it: one that is not a store is
//! left as it was (see `connection`). What lies beside it is judged by `log` before SQLite may see it. The file itself is never opened
//! but by SQLite, because closing such a handle would drop the locks that SQLite holds on it.
//!
//! Whoever only reads needs no right to write: it then opens what is there for reading, and where SQLite would have to
//! make its shared memory for that, it reads the file alone, which is whole when there is no log.

use std::{
    cell::Cell,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use rusqlite::{Connection, MAIN_DB, OpenFlags, config::DbConfig, wal::CheckpointMode};

use super::{
    Site, absence,
    connection::{PATIENCE, check_known, connect, connect_to_read, probe},
    held_log,
    location::{check_folder, io_error, is_missing, real_path, sidecar, unfit},
    lock::{Turn, Turnstile},
    log, mounts,
    note::{FileId, Note},
    open_guard::{OpenGuard, check_unused, no_door},
    presence_lock::PresenceLock,
    reserve::Reserve,
    use_period,
};
use crate::store::{StoreError, StoreEvent};

/// How often an open file is compared with what is at its path, in its content too.
pub(super) const WATCH: Duration = Duration::from_millis(500);
/// How long after a try to empty a long log it is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Messages: on disk before they are acknowledged.
    Messages,
    /// Beats: a lost one costs nothing, so none waits for the disk.
    Beats,
    /// Looking only.
    Reads,
}

impl Purpose {
    /// At how many pages the log is copied back. Beats do that only where nobody else does.
    const fn log_pages(self) -> usize {
        match self {
            Self::Messages => 2_000,
            Self::Beats => 6_000,
            Self::Reads => usize::MAX,
        }
    }
}

/// A checked file, open. Its parts go in this order: SQLite lets go of the file before this connection is out.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) db: Connection,
    purpose: Purpose,
    turnstile: Option<Turnstile>,
    identity: Option<FileId>,
    /// The period this connection writes in.
    note: Option<Note>,
    /// Pages in the log after the last commit here.
    log_pages: Arc<AtomicUsize>,
    /// How long the log was when readers last kept it from being copied back; 0 if they did not.
    held_at: Cell<usize>,
    /// When that was last tried.
    tried: Cell<Option<Instant>>,
    /// When the file's content was last seen to be the one opened.
    seen: Cell<Instant>,
    /// Read past the log: good for one look.
    bare: bool,
    stay: OpenGuard,
}

/// Whether another connection has the store at `path` open.
pub(super) fn is_open_elsewhere(path: &Path) -> bool {
    PresenceLock::existing(&real_path(path)).is_ok_and(|door| door.is_some_and(|door| !door.is_alone()))
}

impl OpenFile {
    /// Opens the store of `site`; makes it if it is missing and this process may still do so, in a folder that is there:
    /// a slip in a path makes none.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`] if there is no store (any more) or others use another file of that name,
    /// [`StoreError::Unfit`] for anything that is not a store or cannot be written, [`StoreError::Damaged`] for one
    /// that is broken, [`Refusal::NewerFormat`].
    pub(super) fn open(site: &Site, purpose: Purpose) -> Result<Self, StoreError> {
        match Self::try_open(site, purpose) {
            // A log and its index are made anew for a store that was closed.
            Err(StoreError::NoRoom(_)) if Reserve::of(&real_path(&site.path)).give_up() => {
                site.tell(&StoreEvent::ReserveUsed { path: site.path.clone() });
                Self::try_open(site, purpose)
            }
            opened => opened,
        }
    }

    fn try_open(site: &Site, purpose: Purpose) -> Result<Self, StoreError> {
        let create = site.may_create();
        let path = real_path(&site.path);
        if create {
            check_folder(&path)?;
        }
        if let Some(kind) = mounts::network_file_system(&path) {
            return Err(unfit(&path, &format!("is on a network file system ({kind}): put the store on a local disk")));
        }
        // Nothing is left beside what is refused.
        match is_missing(&path)? {
            true if !create => return Err(site.not_there(&path)),
            true => absence::remains(&path).map_or(Ok(()), |why| Err(StoreError::Unfit(why)))?,
            false => {
                probe(&path)?;
                check_unused(&path)?;
            }
        }
        let door = PresenceLock::of(&path).map_err(|error| io_error(&path, &error))?;
        if purpose != Purpose::Reads && door.is_none() {
            return Err(no_door(&path));
        }
        let mut stay = OpenGuard::before(path, door);
        let past_log = stay.enter(create, purpose, site)?;
        let path = stay.path();
        let (db, bare) = if purpose == Purpose::Reads {
            connect_to_read(path, past_log)?
        } else {
            (connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?, false)
        };
        let writable = !db.is_readonly(MAIN_DB)?;
        let (mut turnstile, mut note) = (None, None);
        let log_pages = Arc::default();
        if purpose != Purpose::Reads {
            if !writable {
                return Err(unfit(path, "cannot be written: check its permissions"));
            }
            let turns = Turnstile::open(path)?;
            note = Some(use_period::begin(&db, path, &turns)?);
            turnstile = Some(turns);
        }
        check_known(&db)?;
        let identity = FileId::of(path);
        stay.may_write(writable && !bare);
        let mut file = Self {
            db,
            purpose,
            turnstile,
            identity,
            note,
            log_pages,
            held_at: Cell::new(0),
            tried: Cell::new(None),
            seen: Cell::new(Instant::now()),
            bare,
            stay,
        };
        file.configure()?;
        site.opened(file.path(), identity);
        if purpose == Purpose::Reads {
            site.look_at_log(file.path());
        }
        Ok(file)
    }

    /// Waits for the turn to write.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] where the file system has no locks.
    pub(super) fn turn(&self) -> Result<Turn<'_>, StoreError> {
        match &self.turnstile {
            Some(turnstile) => turnstile.enter(),
            None => Err(StoreError::Unfit("this connection only reads".to_owned())),
        }
    }

    /// Where it is, links followed.
    pub(super) fn path(&self) -> &Path {
        self.stay.path()
    }

    /// Pages in the log after the last commit here.
    pub(super) fn log_pages(&self) -> usize {
        self.log_pages.load(Ordering::Relaxed)
    }

    /// Whether the file opened is still the one at its path; its content is looked at now and then.
    pub(super) fn is_current(&self) -> bool {
        if self.bare || FileId::of(self.path()) != self.identity {
            return false;
        }
        self.seen.get().elapsed() < WATCH || self.is_unchanged()
    }

    /// Whether the file at its path is in the period this connection writes in, with its own log beside it.
    pub(super) fn is_unchanged(&self) -> bool {
        let unchanged = match &self.note {
            Some(note) => log::is_of(self.path(), note),
            None => log::comes_to_agree(self.path()),
        };
        if unchanged {
            self.seen.set(Instant::now());
        }
        unchanged
    }

    /// Copies the log back if it has grown long; in one's turn, right after a commit.
    pub(super) fn keep_log_short(&self, site: &Site) {
        let (pages, held, each) = (self.log_pages(), self.held_at.get(), self.purpose.log_pages());
        // Where a reader was in the way, that is not tried again with every commit.
        let grown = if pages >= held { pages - held } else { pages };
        if grown >= each {
            self.checkpoint(site);
        }
    }

    /// Whether the log was too long to be ordinary, after the last commit here.
    pub(super) fn log_is_long(&self) -> bool {
        self.log_pages() >= held_log::LONG
    }

    /// Whether the log is short, after a try to make it so; in one's turn.
    pub(super) fn log_is_short(&self, site: &Site) -> bool {
        let short = || self.log_pages() < self.purpose.log_pages();
        if !short() {
            self.checkpoint(site);
        }
        short()
    }

    /// Copies the log back as far as readers let it, unless the file is no longer the one it belongs to. A long one is
    /// emptied, which tells for sure whether readers are in the way.
    pub(super) fn checkpoint(&self, site: &Site) {
        let (pages, long) = (self.log_pages(), self.log_is_long());
        if long && self.tried.get().is_some_and(|tried| tried.elapsed() < TRY_AGAIN) || !self.is_unchanged() {
            return;
        }
        self.tried.set(Some(Instant::now()));
        let copied = if long {
            self.empty_log()
        } else {
            // What is not copied now is copied later.
            let copied = self.db.wal_checkpoint_v2(Some(MAIN_DB), CheckpointMode::PASSIVE);
            copied.is_ok_and(|(pages, copied)| pages == copied)
        };
        if copied {
            // The next commit begins it anew.
            self.log_pages.store(0, Ordering::Relaxed);
            self.held_at.set(0);
            site.log_is_free();
        } else {
            self.held_at.set(pages);
            site.log_is_held(self.path(), pages);
        }
    }

    /// Gives back the room that the log takes up on the disk, unless the file is no longer the one it belongs to; whether
    /// there was any and readers may have let that happen. In one's turn.
    pub(super) fn give_log_up(&self, site: &Site) -> bool {
        if self.log_is_long() {
            self.checkpoint(site);
            return true;
        }
        let takes_room = std::fs::metadata(sidecar(self.path(), "-wal")).is_ok_and(|log| log.len() > 0);
        let emptied = takes_room && self.is_unchanged() && self.empty_log();
        if emptied {
            self.log_pages.store(0, Ordering::Relaxed);
            self.held_at.set(0);
            site.log_is_free();
        }
        emptied
    }

    /// Copies all of the log back and empties it, without waiting for readers; whether they let that happen.
    fn empty_log(&self) -> bool {
        let impatient = self.db.busy_timeout(Duration::ZERO);
        let emptied = impatient.and_then(|()| self.db.wal_checkpoint_v2(Some(MAIN_DB), CheckpointMode::TRUNCATE));
        // Cannot fail where it could just be set to something else.
        self.db.busy_timeout(PATIENCE).is_ok() && emptied.is_ok()
    }

    /// Saves what only a removed log still holds: it is open here, and the file is still the one it belongs to.
    pub(super) fn rescue(&self) {
        let Some(note) = &self.note else { return };
        let removed = FileId::of(&sidecar(self.path(), "-wal")) != note.log;
        if removed && FileId::of(self.path()) == self.identity && log::is_marked(self.path(), note) {
            self.db.wal_checkpoint_v2(Some(MAIN_DB), CheckpointMode::PASSIVE).ok();
        }
    }

    fn configure(&mut self) -> Result<(), StoreError> {
        let db = &mut self.db;
        db.set_prepared_statement_cache_capacity(128);
        // Without this a statement is compiled anew whenever a value is bound that its plan might depend on.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        db.pragma_update(None, "mmap_size", 0)?;
        db.pragma_update(None, "trusted_schema", false)?;
        db.pragma_update(None, "cache_size", -16_384)?;
        let synchronous = match self.purpose {
            Purpose::Messages => "FULL",
            Purpose::Beats => "NORMAL",
            Purpose::Reads => return Ok(db.pragma_update(None, "query_only", true)?),
        };
        db.pragma_update(None, "synchronous", synchronous)?;
        db.pragma_update_and_check(None, "journal_size_limit", 64 << 20, |_| Ok(()))?;
        // In place of SQLite's own copying back, which would not ask whose file it is.
        let pages = Arc::clone(&self.log_pages);
        db.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, found| {
            pages.store(usize::try_from(found).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(())
    }
}
