//! The journals that nodes keep in a soak, and what can be read from all of them together.
//!
//! # Format
//!
//! `baton node --journal FILE` appends text lines to a file of its own; each start of a node gets a new one. Lines
//! are written in whole batches with `O_APPEND`, so a kill -9 loses what was not yet written and at most cuts the
//! last line. A line without its newline at the end of a file is passed over, as is a line of an unknown kind.
//!
//! ```text
//! run <first id> <len> <first position>
//! push <epoch> <from cursor> <to cursor> <first id> <count>
//! ```
//!
//! * `run`: the handlers of these consecutive ids have run, whatever their outcome. Their bodies hold consecutive
//!   positions from `first position` on; where they do not, a new line begins. It is written **before** the settle
//!   is sent: so an id that is done is in some journal, whenever its node was killed. One id may be in several lines.
//! * `push`: the store acknowledged a batch. A cursor is the position behind it, `-` or nothing at the start. It is
//!   written after the answer, so a killed generator may leave out its last ones. A first id of 0 means that the
//!   answer to a repeated push no longer told it.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufRead as _, BufReader},
    path::Path,
};

/// One line of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// Handlers have run.
    Run {
        /// The first id.
        first: u64,
        /// How many ids.
        len: u64,
        /// The position in the body of the first.
        position: u64,
    },
    /// A batch was acknowledged.
    Push(PushLine),
}

/// A batch that was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PushLine {
    /// The epoch it was pushed in.
    pub epoch: u64,
    /// The position it began behind.
    pub from: u64,
    /// The position it ended with.
    pub to: u64,
    /// The id of its first message; 0 if that is not known.
    pub first: u64,
    /// How many messages.
    pub count: u64,
}

/// Reads a line; none for one that says nothing of use here.
#[must_use]
pub fn parse(line: &str) -> Option<Line> {
    let mut words = line.split(' ');
    let kind = words.next()?;
    let mut number = || match words.next() {
        Some("" | "-") => Some(0),
        Some(word) => word.parse::<u64>().ok(),
        None => None,
    };
    match kind {
        "run" => Some(Line::Run { first: number()?, len: number()?, position: number()? }),
        "push" => Some(Line::Push(PushLine {
            epoch: number()?,
            from: number()?,
            to: number()?,
            first: number()?,
            count: number()?,
        })),
        _ => None,
    }
}

/// What all journals of a run say.
#[derive(Debug, Default)]
pub struct Account {
    /// A bit an id: whether a handler of it has run.
    ran: Vec<u64>,
    /// Executions told of, repeats included.
    pub executions: u64,
    /// Ids that ran at least once.
    pub ids: u64,
    /// Lines that could not be read.
    pub unread: u64,
    /// Acknowledged batches, by the position they ended with.
    pub pushes: Vec<PushLine>,
    /// Which journal pushed in an epoch.
    pushers: BTreeMap<u64, usize>,
    journals: usize,
    /// What must not be.
    pub faults: Vec<String>,
}

impl Account {
    /// Adds one journal.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&mut self, file: &Path) -> io::Result<()> {
        self.journals += 1;
        let mut reader = BufReader::with_capacity(1 << 16, File::open(file)?);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            if line.pop_if(|end| *end == b'\n').is_some() {
                let parsed = std::str::from_utf8(&line).ok().and_then(parse);
                match parsed {
                    Some(line) => self.add(line),
                    None => self.unread += 1,
                }
            }
            line.clear();
        }
        Ok(())
    }

    /// Adds one line of the journal being read.
    pub fn add(&mut self, line: Line) {
        match line {
            Line::Run { first, len, position } => {
                if first == 0 || len > 1 << 32 {
                    self.unread += 1;
                } else {
                    self.ran(first, len, position);
                }
            }
            Line::Push(push) => {
                let pusher = *self.pushers.entry(push.epoch).or_insert(self.journals);
                if pusher != self.journals {
                    self.fault(format!("epoch {} was used by two processes", push.epoch));
                }
                let matches = push.to.checked_sub(push.from) == Some(push.count);
                if !matches || (push.first != 0 && push.first != push.from + 1) {
                    self.fault(format!("ids and positions part: {push:?}"));
                }
                self.pushes.push(push);
            }
        }
    }

    fn ran(&mut self, first: u64, len: u64, position: u64) {
        if first != position {
            self.fault(format!("id {first} had position {position} ({len} messages)"));
        }
        self.executions += len;
        for id in first..first + len {
            let (word, bit) = ((id / 64) as usize, 1 << (id % 64));
            if self.ran.len() <= word {
                self.ran.resize(word + 1, 0);
            }
            self.ids += u64::from(self.ran[word] & bit == 0);
            self.ran[word] |= bit;
        }
    }

    /// Whether a handler of this id has run.
    #[must_use]
    pub fn has_run(&self, id: u64) -> bool {
        self.ran.get((id / 64) as usize).is_some_and(|word| word & (1 << (id % 64)) != 0)
    }

    /// The highest id that ran; 0 if none did.
    #[must_use]
    pub fn highest(&self) -> u64 {
        let last = self.ran.iter().enumerate().rfind(|(_, word)| **word != 0);
        last.map_or(0, |(index, word)| index as u64 * 64 + 63 - u64::from(word.leading_zeros()))
    }

    /// Checks the batches against each other: positions without a repeat, epochs that never decrease along them.
    /// The positions that no journal tells of: those pushed by a generator just before it was killed.
    pub fn check_pushes(&mut self) -> u64 {
        self.pushes.sort_unstable_by_key(|push| push.from);
        let (mut behind, mut epoch, mut untold) = (0, 0, 0);
        let mut faults = Vec::new();
        for push in &self.pushes {
            if push.from < behind {
                faults.push(format!("position {} was pushed twice: {push:?}", push.from + 1));
            }
            if push.epoch < epoch {
                faults.push(format!("epoch {} after {epoch} at position {}", push.epoch, push.from + 1));
            }
            untold += push.from.saturating_sub(behind);
            (behind, epoch) = (behind.max(push.to), epoch.max(push.epoch));
        }
        faults.into_iter().for_each(|fault| self.fault(fault));
        untold
    }

    fn fault(&mut self, fault: String) {
        // One fault of a kind tends to come with a million others.
        if self.faults.len() < 20 {
            self.faults.push(fault);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn account(journals: &[&str]) -> Account {
        let mut account = Account::default();
        for text in journals {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            account.read(file.path()).unwrap();
        }
        account
    }

    #[test]
    fn journals_of_killed_nodes_are_read_as_far_as_they_go() {
        let one = "push 100  3 1 3\nrun 1 2 1\nnews of the day\nrun 3 1 3\nrun 1 1 1\nrun 90";
        let mut account = account(&[one, "push 200 5 6 6 1\npush 200 6 8 0 2\nrun 4 5 4\n"]);
        assert_eq!((account.ids, account.executions, account.unread), (8, 9, 1));
        assert_eq!((account.highest(), account.has_run(8), account.has_run(9)), (8, true, false));
        assert_eq!(account.check_pushes(), 2, "positions 4 and 5");
        assert_eq!(account.faults, Vec::<String>::new());
    }

    #[test]
    fn gaps_repeats_and_shared_epochs_are_found() {
        for (journals, fault) in [
            (&["run 5 3 6\n"][..], "id 5 had position 6"),
            (&["push 1 - 3 1 3\n", "push 1 3 4 4 1\n"][..], "used by two processes"),
            (&["push 1 - 3 1 3\n", "push 2 2 4 3 2\n"][..], "pushed twice"),
            (&["push 3 - 3 1 3\n", "push 2 3 4 4 1\n"][..], "epoch 2 after 3"),
            (&["push 1 - 3 2 3\n"][..], "ids and positions part"),
        ] {
            let mut account = account(journals);
            account.check_pushes();
            assert!(account.faults.iter().any(|found| found.contains(fault)), "{fault}: {:?}", account.faults);
        }
    }
}
