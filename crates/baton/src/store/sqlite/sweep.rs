//! Room given back: rows of destroyed fleets are removed, and free pages leave the file, a little at a time.
//!
//! **Invariants.** A step is a transaction in its own turn, of at most [`PAGES`] pages and about [`WORK`]. While calls come,
//! or others write, there is one step a second; when nobody does, they follow each other with short rests. None is made
//! while a reader keeps the log from being emptied: it would only make it longer. The last process out makes one longer
//! step. Killed at any moment, the next process goes on.
//!
//! Pages are given back once a quarter of the file is free, and over [`MANY`] of them, until [`FEW`] are left; after a destruction all
//! of them are. Files made before they could be given back keep their size until nothing is left in them, or until they are
//! migrated. The log of a quiet fleet is emptied (see `idle_log`).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rusqlite::Connection;

use super::{
    Site,
    connection_thread::CurrentFile,
    file::OpenFile,
    idle_log::IdleLog,
    remains,
    reserve::Reserve,
    writer::{self, Caller},
};
use crate::store::{Answer, Removed, StoreError};

/// The most pages that leave the file in one step.
const PAGES: u32 = 1_024;
/// How long a step works at most, beside its commit.
const WORK: Duration = Duration::from_millis(5);
/// How long the last process out works at most.
const LAST_WORK: Duration = Duration::from_millis(300);
/// How long between two steps while there are calls, or nothing to do.
const BUSY_REST: Duration = Duration::from_secs(1);
/// How long between two steps otherwise.
const QUIET_REST: Duration = Duration::from_millis(10);
/// At how many free pages their number is worth a step.
const MANY: u32 = 1_024;
/// How many free pages are left in peace.
const FEW: u32 = 256;

/// Sees to the room in one process.
pub(super) struct Sweeper {
    due: Instant,
    /// Whether there were calls since the last step.
    called: bool,
    /// SQLite's count of what others had written at the last step.
    version: i64,
    /// Whether pages are on their way out: it goes on until few are left.
    at_it: bool,
    /// Whether the disk was full at the last step.
    full: bool,
    idle_log: IdleLog,
    /// Those who have destroyed and wait for the room.
    destroyed: Vec<(Caller, Option<Removed>)>,
}

/// What a step found.
enum SweepStep {
    /// There is more to do.
    More,
    /// There is nothing to do, or nothing can be done now.
    Nothing,
}

impl Sweeper {
    pub(super) fn new() -> Self {
        Self {
            due: Instant::now() + BUSY_REST,
            called: false,
            version: 0,
            at_it: false,
            full: false,
            idle_log: IdleLog::new(),
            destroyed: Vec::new(),
        }
    }

    /// When the next step is due.
    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// Notes calls, and makes a step if one is due.
    pub(super) fn after_calls(&mut self, current: &mut CurrentFile) {
        self.called = true;
        if Instant::now() >= self.due {
            self.step(current);
        }
    }

    /// Answers one who has destroyed when the room is free, with what it has removed.
    pub(super) fn answer_when_swept(&mut self, caller: Caller, removed: Option<Removed>) {
        self.destroyed.push((caller, removed));
        self.due = Instant::now();
    }

    /// Makes a step, and sets when the next is due.
    pub(super) fn step(&mut self, current: &mut CurrentFile) {
        let called = std::mem::take(&mut self.called);
        let former = self.version;
        // What fails is left for later: nothing depends on it.
        let found =
            if current.is_open() { self.sweep(current).unwrap_or(SweepStep::Nothing) } else { SweepStep::Nothing };
        let quiet = !called && former == self.version;
        let rest = match found {
            SweepStep::More if !self.destroyed.is_empty() => Duration::ZERO,
            SweepStep::More if quiet => QUIET_REST,
            _ => BUSY_REST,
        };
        self.due = Instant::now() + rest;
        if matches!(found, SweepStep::Nothing) {
            for (caller, removed) in self.destroyed.drain(..) {
                caller.send(Ok(Answer::Destroy(removed))).ok();
            }
        }
    }

    fn sweep(&mut self, current: &mut CurrentFile) -> Result<SweepStep, StoreError> {
        let site = Arc::clone(current.site());
        let file = current.file()?;
        let db = &file.db;
        if file.log_is_long() {
            // The reader in the way may be gone while nobody writes.
            let _turn = file.turn()?;
            file.checkpoint(&site);
        }
        self.version = db.pragma_query_value(None, "data_version", |row| row.get(0))?;
        let remains = remains::are_there(db)?;
        if !remains && !self.wants(file)? {
            return self.end(file, &site);
        }
        self.at_it = true;
        let waiting = site.wait();
        let turn = file.turn()?;
        if !file.log_is_short(&site) {
            return Ok(SweepStep::Nothing);
        }
        writer::begin(db)?;
        drop(waiting);
        let until = Instant::now() + WORK;
        let done = if remains { remains::remove(db, until) } else { give_back(db, PAGES, until) };
        let Err(error) = done.and_then(|()| db.execute_batch("COMMIT")) else {
            self.full = false;
            file.keep_log_short(&site);
            return Ok(SweepStep::More);
        };
        let stuck = !db.is_autocommit() && db.execute_batch("ROLLBACK").is_err();
        // On a full disk there is the room that the log takes up, and that which is kept for this; once.
        let full = matches!(error.into(), StoreError::NoRoom(_)) && !std::mem::replace(&mut self.full, true);
        if full {
            Reserve::of(file.path()).give_up();
            file.checkpoint(&site);
        }
        drop(turn);
        if stuck {
            current.close();
        }
        Ok(if full { SweepStep::More } else { SweepStep::Nothing })
    }

    /// Whether pages should leave the file.
    fn wants(&self, file: &OpenFile) -> Result<bool, StoreError> {
        let (free, db) = (free(&file.db)?, &file.db);
        let enough = if !self.destroyed.is_empty() {
            free > 0
        } else if self.at_it {
            free > FEW
        } else {
            is_much(db, free)?
        };
        Ok(enough && can_give_back(db)?)
    }

    /// Nothing is left to do: what was done is brought to the file itself.
    fn end(&mut self, file: &OpenFile, site: &Site) -> Result<SweepStep, StoreError> {
        if std::mem::take(&mut self.at_it) || !self.destroyed.is_empty() {
            let _turn = file.turn()?;
            if !can_give_back(&file.db)? {
                shrink(file)?;
            }
            file.checkpoint(site);
        }
        self.idle_log.look(file, site)?;
        Ok(SweepStep::Nothing)
    }
}

/// What the last one out does, alone, with the log emptied: a process that ends at once has had no time for it.
pub(super) fn last_step(db: &Connection) -> rusqlite::Result<()> {
    if !is_much(db, free(db)?)? || !can_give_back(db)? {
        return Ok(());
    }
    let transaction = db.unchecked_transaction()?;
    give_back(db, u32::MAX >> 1, Instant::now() + LAST_WORK)?;
    transaction.commit()
}

fn free(db: &Connection) -> rusqlite::Result<u32> {
    db.pragma_query_value(None, "freelist_count", |row| row.get(0))
}

/// Whether so many free pages are worth the work.
fn is_much(db: &Connection, free: u32) -> rusqlite::Result<bool> {
    Ok(free >= MANY && free >= db.pragma_query_value(None, "page_count", |row| row.get::<_, u32>(0))? / 4)
}

/// Whether the file was made so that pages can leave it.
fn can_give_back(db: &Connection) -> rusqlite::Result<bool> {
    Ok(db.pragma_query_value(None, "auto_vacuum", |row| row.get::<_, i32>(0))? != 0)
}

/// Lets so many free pages leave the end of the file, inside a transaction, until this moment; what lies there is moved to
/// the front.
fn give_back(db: &Connection, pages: u32, until: Instant) -> rusqlite::Result<()> {
    let mut statement = db.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
    let mut rows = statement.query([])?;
    // A row is a page.
    while rows.next()?.is_some() && Instant::now() < until {}
    Ok(())
}

/// Gives a file of former times its smallest size, in one's turn, if nothing is left in it: then there is nothing to move.
fn shrink(file: &OpenFile) -> Result<(), StoreError> {
    let fleets: i64 = file.db.query_row("SELECT count(*) FROM fleets", [], |row| row.get(0))?;
    if fleets == 0 {
        file.db.execute_batch("PRAGMA temp_store = MEMORY; VACUUM; PRAGMA temp_store = DEFAULT")?;
    }
    Ok(())
}
