//! SQLite's errors in the words of the store: what may be repeated, what may not, and what a person can do.

use rusqlite::{Error, ErrorCode, ffi};

use crate::store::StoreError;

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        let Some(failure) = error.sqlite_error() else {
            // Not SQLite but the reading of a row failed: a value of another kind than the schema allows.
            return Self::Damaged(error.to_string());
        };
        match failure.code {
            ErrorCode::DiskFull => no_room(&error),
            ErrorCode::SystemIoFailure if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE => no_room(&error),
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
                Self::Damaged(format!("{error}: stop the fleet and bring a backup back"))
            }
            ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch => Self::Damaged(error.to_string()),
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => {
                Self::Unfit(format!("the store cannot be written ({error}): check its permissions"))
            }
            ErrorCode::CannotOpen => {
                Self::Unfit(format!("the store cannot be opened ({error}): check the permissions of it and its folder"))
            }
            _ => Self::Unreachable(format!("the store did not answer: {error}")),
        }
    }
}

fn no_room(error: &Error) -> StoreError {
    StoreError::NoRoom(format!("the disk of the store is full ({error}): free some room"))
}

/// Whether another connection holds what was asked for: wait and ask again.
pub(super) fn is_busy(error: &Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
