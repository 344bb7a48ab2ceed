//! How much of an SQLite file is in use, counting what is still in its log.
//!
//! The first page of a file says how long a page is, how many there are and how many of them are free. Commits that
//! are not copied back yet lie in the log, and with them newer first pages. Nothing may write meanwhile.

use std::{
    ffi::OsString,
    fs,
    io::{ErrorKind, Read as _},
    path::Path,
};

/// Bytes of the file's first page that are its header, of the log's header, and of that of each frame in it.
const HEADERS: (usize, usize, usize) = (100, 32, 24);

/// Bytes of the pages in use.
pub(super) fn in_use(path: &Path) -> std::io::Result<u64> {
    let mut header = [0; HEADERS.0];
    fs::File::open(path)?.read_exact(&mut header)?;
    let mut log = OsString::from(path);
    log.push("-wal");
    let log = match fs::read(log) {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        read => read?,
    };
    Ok(count(&header, &log))
}

fn count(header: &[u8], log: &[u8]) -> u64 {
    let page_bytes = match number(header, 16, 2) {
        // What two bytes cannot hold.
        1 => 65_536,
        bytes => bytes,
    };
    let (mut pages, mut free) = (number(header, 28, 4), number(header, 36, 4));
    let frame_bytes = HEADERS.2 + usize::try_from(page_bytes).unwrap_or(0);
    for frame in log.get(HEADERS.1..).unwrap_or_default().chunks_exact(frame_bytes) {
        // Frames behind those of this round of the log are of an earlier one.
        if frame.get(8..16) != log.get(16..24) {
            break;
        }
        // A frame that ends a commit says how many pages there are after it.
        pages = Some(number(frame, 4, 4)).filter(|pages| *pages > 0).unwrap_or(pages);
        if number(frame, 0, 4) == 1 {
            free = number(frame, HEADERS.2 + 36, 4);
        }
    }
    pages.saturating_sub(free) * page_bytes
}

/// A big-endian number.
fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    bytes.iter().skip(at).take(len).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_in_the_log_count_and_free_ones_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pages.db");
        let db = rusqlite::Connection::open(&path).unwrap();
        db.pragma_update(None, "journal_mode", "wal").unwrap();
        let agree = |what: &str| {
            let pragma = |name| db.pragma_query_value(None, name, |row| row.get::<_, u32>(0)).unwrap();
            let used = (pragma("page_count") - pragma("freelist_count")) * pragma("page_size");
            assert_eq!(in_use(&path).unwrap(), u64::from(used), "{what}");
        };
        db.execute_batch("CREATE TABLE t (b BLOB); INSERT INTO t VALUES (zeroblob(500000))").unwrap();
        agree("in the log");
        db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        agree("copied back");
        db.execute_batch("DELETE FROM t").unwrap();
        agree("freed");
        db.execute_batch("PRAGMA wal_checkpoint(RESTART); INSERT INTO t VALUES (zeroblob(9000))").unwrap();
        agree("with frames of an earlier round behind it");
    }
}
