//! The time that a connection is inside: how it goes in, and what the last one out does.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    Site, building,
    door::Door,
    file::{Purpose, denied, is_missing, may_read, probe, sidecar, unfit},
    log,
};
use crate::store::StoreError;

/// How long one waits at the door for those inside to agree with the file, or to leave.
const AT_THE_DOOR: Duration = Duration::from_millis(200);

/// The time inside; at its end the last one out puts everything into the file.
#[derive(Debug)]
pub(super) struct Stay {
    pub(super) path: PathBuf,
    pub(super) door: Option<Door>,
    pub(super) may_write: bool,
}

impl Drop for Stay {
    fn drop(&mut self) {
        let last = self.may_write && self.door.as_ref().is_some_and(Door::is_alone);
        // What fails here is done by whoever opens the file next.
        if last && !is_missing(&self.path).unwrap_or(true) {
            log::end(&self.path).ok();
        }
    }
}

impl Stay {
    /// Goes in: the first one makes what is missing and judges what lies beside the file. Whether the log there must
    /// not be used and could not be put aside.
    pub(super) fn enter(&self, create: bool, purpose: Purpose, site: &Site) -> Result<bool, StoreError> {
        let path = &self.path;
        let Some(door) = &self.door else {
            if is_missing(path)? {
                return Err(if create { no_door(path) } else { site.not_there(path) });
            }
            probe(path)?;
            return Ok(false);
        };
        let deadline = Instant::now() + AT_THE_DOOR;
        loop {
            if door.is_alone() {
                let past_log = self.first_in(create, purpose, site)?;
                door.share().map_err(|error| no_locks(&error))?;
                return Ok(past_log);
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
                    return Ok(false);
                }
                door.release().map_err(|error| no_locks(&error))?;
            }
            if Instant::now() > deadline {
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

    /// Makes what is missing and judges what lies beside the file, alone.
    fn first_in(&self, create: bool, purpose: Purpose, site: &Site) -> Result<bool, StoreError> {
        let path = &self.path;
        if is_missing(path)? {
            if !create {
                return Err(site.not_there(path));
            }
            building::build(path)?;
        }
        probe(path)?;
        match log::examine(path) {
            Ok(found) => {
                if let Some(found) = found {
                    site.tell(&found);
                }
                Ok(false)
            }
            Err(StoreError::Unfit(_)) if purpose == Purpose::Reads => Ok(true),
            Err(error) => Err(error),
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
