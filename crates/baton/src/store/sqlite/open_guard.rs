//! The time that a connection is inside: how it goes in, and what the last one out does.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    Site, building,
    connection::probe,
    file::Purpose,
    location::{denied, is_missing, may_read, sidecar, unfit},
    log,
    one_name::Hold,
    presence_lock::PresenceLock,
    use_period,
};
use crate::store::StoreError;

/// How long one waits at the door for those inside to agree with the file, or to leave.
const AT_THE_DOOR: Duration = Duration::from_millis(200);

/// How long one that is just ending may hold the file after it has let go of the door: on a busy machine it may be held up
/// in between, and whoever is refused for it does not come back.
const WITH_THE_FILE: Duration = Duration::from_secs(2);

/// The time inside; at its end the last one out puts everything into the file.
#[derive(Debug)]
pub(super) struct OpenGuard {
    path: PathBuf,
    /// Goes before the door: whoever is alone there finds nobody else with the file.
    hold: Option<Hold>,
    door: Option<PresenceLock>,
    may_write: bool,
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        let last = self.may_write && self.door.as_ref().is_some_and(PresenceLock::is_alone);
        // What fails here is done by whoever opens the file next.
        if last && !is_missing(&self.path).unwrap_or(true) {
            use_period::end(&self.path).ok();
        }
    }
}

impl OpenGuard {
    /// Before the door of the store at `path`, if it has one or one can be made.
    pub(super) const fn before(path: PathBuf, door: Option<PresenceLock>) -> Self {
        Self { path, hold: None, door, may_write: false }
    }

    /// Where the store is, links followed.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Notes that the file can be written here, so that its log can be ended.
    pub(super) const fn may_write(&mut self, may: bool) {
        self.may_write = may;
    }

    /// Goes in: the first one makes what is missing and judges what lies beside the file. Whether the log there must
    /// not be used and could not be put aside.
    pub(super) fn enter(&mut self, create: bool, purpose: Purpose, site: &Site) -> Result<bool, StoreError> {
        let path = &self.path;
        let Some(door) = &self.door else {
            if is_missing(path)? {
                return Err(if create { no_door(path) } else { site.not_there(path) });
            }
            probe(path)?;
            return Ok(false);
        };
        let begun = Instant::now();
        let mut met = begun;
        loop {
            if door.is_alone() {
                if let Some((past_log, hold)) = self.first_in(create, purpose, site, begun)? {
                    self.hold = hold;
                    door.share().map_err(|error| no_locks(&error))?;
                    return Ok(past_log);
                }
                let_by(door)?;
                met = Instant::now();
                continue;
            }
            let missing = is_missing(path)?;
            if missing && !create {
                return Err(site.not_there(path));
            }
            if !missing {
                probe(path)?;
            }
            // Nobody stays inside with a file that the others do not use: they could never be alone to see to it.
            if !missing && log::agrees(path) {
                door.share().map_err(|error| no_locks(&error))?;
                if log::agrees(path) {
                    self.hold = Hold::beside(path)?;
                    return Ok(false);
                }
                door.release().map_err(|error| no_locks(&error))?;
            }
            if met.elapsed() > AT_THE_DOOR {
                let path = path.display();
                return Err(StoreError::Unreachable(if missing {
                    format!("{path} is gone while running processes have it open: bring it back, or stop them")
                } else {
                    format!(
                        "{path} is not the file that running processes have open, or has lost its log: it is left alone \
                         until they have let go"
                    )
                }));
            }
            std::thread::sleep(AT_THE_DOOR / 10);
        }
    }

    /// Makes what is missing and judges what lies beside the file, alone. Nothing while somebody else still has the file:
    /// one who is between the door and the file, on its way in or out, and may be waiting for the door.
    fn first_in(
        &self, create: bool, purpose: Purpose, site: &Site, begun: Instant,
    ) -> Result<Option<(bool, Option<Hold>)>, StoreError> {
        let path = &self.path;
        if is_missing(path)? {
            if !create {
                return Err(site.not_there(path));
            }
            building::build(path)?;
        }
        probe(path)?;
        let Some(hold) = try_hold(path, begun)? else { return Ok(None) };
        log::check_names(path)?;
        match log::examine(path) {
            Ok(found) => {
                if let Some(found) = found {
                    site.tell(&found);
                }
                Ok(Some((false, hold)))
            }
            Err(StoreError::Unfit(_)) if purpose == Purpose::Reads => Ok(Some((true, hold))),
            Err(error) => Err(error),
        }
    }
}

/// Refuses a name that the file at `path` was not used by so far, where it is in use or lacks its log.
///
/// # Errors
/// [`StoreError::Unfit`].
pub(super) fn check_unused(path: &Path) -> Result<(), StoreError> {
    if std::fs::symlink_metadata(sidecar(path, "-door")).is_err() {
        let _hold = hold_alone(path)?;
        log::check_names(path)?;
    }
    Ok(())
}

/// For one who is alone at the door: sees to it that nobody has the file open by another name. Nothing while somebody has it
/// who may be between the door and the file: then that one is let by ([`let_by`]) before this is asked again.
///
/// # Errors
/// [`StoreError::Unfit`] if somebody has had it since `begun`, for long.
pub(super) fn try_hold(path: &Path, begun: Instant) -> Result<Option<Option<Hold>>, StoreError> {
    match Hold::alone(path) {
        Err(StoreError::Unfit(_)) if begun.elapsed() < WITH_THE_FILE => Ok(None),
        held => held.map(Some),
    }
}

/// Gives up being alone at the door for a moment: one who has the file and waits for the door would wait for ever.
///
/// # Errors
/// [`StoreError::Unfit`] where the file system has no locks.
pub(super) fn let_by(door: &PresenceLock) -> Result<(), StoreError> {
    door.release().map_err(|error| no_locks(&error))?;
    std::thread::sleep(AT_THE_DOOR / 10);
    Ok(())
}

/// The same as [`try_hold`] where there is no door, waited for.
pub(super) fn hold_alone(path: &Path) -> Result<Option<Hold>, StoreError> {
    let begun = Instant::now();
    loop {
        match try_hold(path, begun)? {
            Some(hold) => return Ok(hold),
            None => std::thread::sleep(AT_THE_DOOR / 10),
        }
    }
}

/// Why there is no door to go in by: it is there and somebody else's, or the folder takes no new file.
pub(super) fn no_door(path: &Path) -> StoreError {
    let door = sidecar(path, "-door");
    match [path, &door].into_iter().find(|file| !may_read(file)) {
        Some(file) => denied(file),
        None => unfit(path, "is in a folder that cannot be written: check its permissions"),
    }
}

fn no_locks(error: &std::io::Error) -> StoreError {
    StoreError::Unfit(format!("the store's file system has no file locks: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        message::Name,
        store::{Clock, sqlite::holder},
    };

    #[test]
    fn one_who_has_the_file_and_waits_for_the_door_is_let_by() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        building::build(&path).unwrap();
        let door = || PresenceLock::of(&path).unwrap().unwrap();
        // The moment in which a first one gives up being alone there, to share it.
        let first = door();
        assert!(first.is_alone());
        let hold = Hold::alone(&path).unwrap();
        first.release().unwrap();
        let site = Site::new(path.clone(), Name::new("baton").unwrap(), Clock::system(), false);
        let mut second = OpenGuard::before(path.clone(), Some(door()));
        let entering = std::thread::spawn(move || second.enter(false, Purpose::Messages, &site).map(|_| second));
        let begun = Instant::now();
        while holder::inside(&path).is_none() && begun.elapsed() < WITH_THE_FILE / 2 {
            std::thread::yield_now();
        }
        first.share().unwrap();
        let second = entering.join().unwrap().unwrap();
        assert!(begun.elapsed() < WITH_THE_FILE && !first.is_alone());
        drop((second, hold));
    }
}
