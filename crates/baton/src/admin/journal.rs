//! What a node did, for whoever checks a fleet afterwards: a line a push, a line a run of messages.
//!
//! ```text
//! push <epoch> <from cursor, - at the start> <to cursor> <first id> <count>
//! run <first id> <len> <first position>
//! ```
//!
//! Runs are written before their outcome is reported, pushes after they were acknowledged, each time as whole lines
//! appended at once: a kill -9 never loses a run that counts. The position is the number of a tick, 0 in other bodies.

use std::{
    fmt::Write as _,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{Event, message::Range};

/// Lines that wait for others to go with them.
const FLUSH_BYTES: usize = 64 << 10;

/// An open journal, to be told by an [`Observer`](crate::Observer).
pub struct Journal {
    lines: Mutex<Lines>,
    /// Hears that it cannot be written: without its journal a run proves nothing.
    failed: Box<dyn Fn(&io::Error) + Send + Sync>,
}

struct Lines {
    file: File,
    text: String,
    run: Option<Pushed>,
}

/// Messages with consecutive ids and positions.
#[derive(Clone, Copy)]
struct Pushed {
    first: u64,
    len: u64,
    position: u64,
}

impl Pushed {
    /// Adds messages that follow on; whether they did.
    fn grow(&mut self, next: Self) -> bool {
        let follows = next.first == self.first + self.len
            && match (self.position, next.position) {
                (0, 0) => true,
                (0, _) | (_, 0) => false,
                (position, next) => next == position + self.len,
            };
        self.len += if follows { next.len } else { 0 };
        follows
    }
}

impl Journal {
    /// Opens a journal to append to; `failed` hears if later on it cannot be written.
    ///
    /// # Errors
    /// That the file cannot be written.
    pub fn open(path: &Path, failed: impl Fn(&io::Error) + Send + Sync + 'static) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let lines = Mutex::new(Lines { file, text: String::new(), run: None });
        Ok(Self { lines, failed: Box::new(failed) })
    }

    /// Messages have run.
    pub fn ran(&self, range: Range, first_body: &[u8]) {
        let next = Pushed { first: range.first, len: u64::from(range.len), position: position(first_body) };
        let mut lines = self.lines();
        if !lines.run.as_mut().is_some_and(|run| run.grow(next)) {
            lines.close_run();
            lines.run = Some(next);
        }
        if lines.text.len() > FLUSH_BYTES {
            self.write(&mut lines);
        }
    }

    /// Something happened; of this, pushes that brought messages are written.
    pub fn on_event(&self, event: &Event) {
        if let Event::Pushed { epoch, from, to, count: count @ 1.., first, duplicate: false, .. } = event {
            let (from, first) = (if from.is_empty() { "-" } else { from }, first.unwrap_or(0));
            let mut lines = self.lines();
            writeln!(lines.text, "push {epoch} {from} {to} {first} {count}").ok();
            self.write(&mut lines);
        }
    }

    /// Writes everything.
    pub fn flush(&self) {
        self.write(&mut self.lines());
    }

    fn write(&self, lines: &mut Lines) {
        lines.close_run();
        if let Err(error) = lines.file.write_all(lines.text.as_bytes()) {
            (self.failed)(&error);
        }
        lines.text.clear();
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    fn close_run(&mut self) {
        if let Some(Pushed { first, len, position }) = self.run.take() {
            writeln!(self.text, "run {first} {len} {position}").ok();
        }
    }
}

/// The number in `{"tick":N}`.
fn position(body: &[u8]) -> u64 {
    let number = body.strip_prefix(b"{\"tick\":").and_then(|rest| rest.strip_suffix(b"}"));
    number.and_then(|digits| std::str::from_utf8(digits).ok()).and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_join_while_ids_and_positions_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let journal = Journal::open(&path, |error| panic!("{error}")).unwrap();
        let ran = |id: u64, body: &str| journal.ran(Range { first: id, len: 1 }, body.as_bytes());
        ran(1, "{\"tick\":1}");
        ran(2, "{\"tick\":2}");
        ran(3, "{\"tick\":4}");
        ran(4, "\"x\"");
        ran(5, "{\"other\":6}");
        ran(9, "{\"tick\":9}");
        assert!(std::fs::read(&path).unwrap().is_empty());
        journal.flush();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "run 1 2 1\nrun 3 1 4\nrun 4 2 0\nrun 9 1 9\n");
    }
}
