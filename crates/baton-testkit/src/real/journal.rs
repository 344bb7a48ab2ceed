//! What the processes of a drawn fleet write down, and what can be read from all of it together.
//!
//! Each life of a node has a file of its own, to which every line is written at once, as it happens: a killed process
//! leaves out nothing, and at most cuts its last line, which is passed over.
//!
//! ```text
//! begin <queue> <id> <attempt> <unique>    a handler begins
//! end <queue> <id> <attempt>               it has come to its end, whatever that is; its report follows
//! stray <what>                             it is no message of its queue
//! open <source>                            a source is opened
//! over                                     the session is over
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use baton::{Event, Message, Observer};

use crate::sim::{
    body::Body,
    witness::{Life, Witness, belongs},
    work::Begun,
};

/// The file in the folder that says that the fleet winds down.
pub(super) const WINDING_DOWN: &str = "winding-down";

/// The journal of one life of a node.
pub(super) struct Journal {
    file: File,
    winding_down: PathBuf,
    of: Life,
    opens: AtomicU64,
}

impl Journal {
    pub(super) fn open(folder: &Path, of: Life) -> io::Result<Self> {
        let path = folder.join(format!("node-{}-{}.journal", of.node, of.life));
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file, winding_down: folder.join(WINDING_DOWN), of, opens: AtomicU64::new(0) })
    }

    fn write(&self, line: impl Display) {
        if let Err(error) = (&self.file).write_all(format!("{line}\n").as_bytes()) {
            // Without its journal the run proves nothing.
            eprintln!("cannot write the journal: {error}");
            std::process::exit(1);
        }
    }
}

impl Witness for Journal {
    fn begins(&self, begun: &Begun, message: &Message, key: &str, _takes_ms: u64) {
        let Begun { queue, id, attempt, .. } = begun;
        if !belongs(message, key, *queue) {
            let text = String::from_utf8_lossy(&message.body).into_owned();
            self.write(format_args!("stray the handler of q{queue} got {text} as {key}"));
        }
        let body = serde_json::from_slice::<Body>(&message.body);
        self.write(format_args!("begin {queue} {id} {attempt} {}", body.map_or(0, |body| body.unique)));
    }

    fn runs(&self, begun: &Begun) {
        let Begun { queue, id, attempt, .. } = begun;
        self.write(format_args!("end {queue} {id} {attempt}"));
    }

    fn ends(&self, _begun: &Begun) {}

    fn opened(&self, source: usize, _of: Life) -> u64 {
        self.write(format_args!("open {source}"));
        let nth = self.opens.fetch_add(1, Ordering::Relaxed);
        (u64::from(self.of.life) << 32) + ((self.of.node as u64) << 16) + nth
    }

    fn source_failed(&self, _source: usize, _of: Life, _how: &'static str) {}

    fn closed(&self, _source: usize, _of: Life) {}

    fn winds_down(&self) -> bool {
        self.winding_down.exists()
    }
}

impl Observer for Journal {
    fn on_event(&self, event: &Event) {
        if !event.is_routine() {
            println!("{event}");
        }
        if matches!(event, Event::SessionOver { .. }) {
            self.write("over");
        }
    }
}

/// An attempt: queue, id, number.
pub(super) type Attempt = (usize, u64, u32);

/// What all journals of a run say.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Who began an attempt.
    pub(super) begun: BTreeMap<Attempt, Vec<usize>>,
    /// Attempts that came to their end.
    pub(super) ended: BTreeSet<Attempt>,
    /// What messages say of themselves, by queue and id.
    pub(super) uniques: BTreeMap<(usize, u64), BTreeSet<u64>>,
    /// Messages that handlers of other queues saw.
    pub(super) strays: Vec<String>,
    /// Sources that were opened.
    pub(super) opened: BTreeSet<usize>,
    /// Nodes that lost a session.
    pub(super) over: BTreeSet<usize>,
    /// Journals.
    pub(super) lives: u64,
    /// Lines that were read.
    pub(super) lines: u64,
}

impl Account {
    /// Reads all journals in a folder.
    pub(super) fn read(folder: &Path) -> io::Result<Self> {
        let mut account = Self::default();
        for path in crate::soak::launch::journals(folder)? {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let node = stem.split('-').nth(1).and_then(|node| node.parse().ok()).unwrap_or(usize::MAX);
            let text = std::fs::read_to_string(&path)?;
            account.lives += 1;
            for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
                account.add(node, line);
            }
        }
        Ok(account)
    }

    pub(super) fn add(&mut self, node: usize, line: &str) {
        self.lines += 1;
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        let numbers: Vec<u64> = rest.split(' ').map_while(|word| word.parse().ok()).collect();
        match (kind, &*numbers) {
            ("begin", &[queue, id, attempt, unique]) => {
                self.begun.entry((queue as usize, id, attempt as u32)).or_default().push(node);
                self.uniques.entry((queue as usize, id)).or_default().insert(unique);
            }
            ("end", &[queue, id, attempt]) => {
                self.ended.insert((queue as usize, id, attempt as u32));
            }
            ("open", &[source]) => {
                self.opened.insert(source as usize);
            }
            ("over", _) => {
                self.over.insert(node);
            }
            _ => self.strays.push(line.to_owned()),
        }
    }
}
