//! Where bodies come from, and how a place in the input is named to a person.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    os::fd::AsFd as _,
    path::Path,
    sync::Arc,
};

use super::SharedLabels;

/// One source of bodies.
pub(super) enum Input {
    /// An argument: one body.
    Body(Vec<u8>),
    /// Lines, a body each.
    Lines {
        from: Box<dyn Read + Send>,
        /// Bytes of a regular file; a pipe or a terminal has none, and gives its lines when it likes.
        size: Option<u64>,
    },
}

/// All input of an import in the order it was named.
#[derive(Default)]
pub struct Inputs {
    pub(super) list: Vec<Input>,
    labels: Vec<Label>,
}

/// A place in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) input: usize,
    /// 1, 2, 3 …, blank lines counted.
    pub(super) line: u64,
}

/// What the inputs are called.
#[derive(Debug)]
pub(super) struct Labels(Vec<Label>);

#[derive(Debug, Clone)]
enum Label {
    Argument(usize),
    Lines(String),
}

impl Inputs {
    /// No input yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one body, which is called by its number among the inputs: `argument 3`.
    pub fn body(&mut self, body: impl Into<Vec<u8>>) {
        self.labels.push(Label::Argument(self.list.len() + 1));
        self.list.push(Input::Body(body.into()));
    }

    /// Adds the lines of a file, a body each.
    ///
    /// # Errors
    /// That it cannot be opened, or is a folder.
    pub fn file(&mut self, path: &Path) -> io::Result<()> {
        let from = File::open(path)?;
        if from.metadata()?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        self.open(path.display().to_string(), from)
    }

    /// Adds the lines of standard input, without the small buffer the standard library puts before it.
    ///
    /// # Errors
    /// That there is none.
    pub fn standard_input(&mut self) -> io::Result<()> {
        self.open("standard input".to_owned(), File::from(io::stdin().as_fd().try_clone_to_owned()?))
    }

    /// Adds lines from anywhere under a name for people. They are read in a thread of their own.
    pub fn lines(&mut self, name: &str, from: impl Read + Send + 'static) {
        self.add(name.to_owned(), Box::new(from), None);
    }

    fn open(&mut self, name: String, from: File) -> io::Result<()> {
        let about = from.metadata()?;
        self.add(name, Box::new(from), about.is_file().then_some(about.len()));
        Ok(())
    }

    fn add(&mut self, name: String, from: Box<dyn Read + Send>, size: Option<u64>) {
        self.labels.push(Label::Lines(name));
        self.list.push(Input::Lines { from, size });
    }

    pub(super) fn labels(&self) -> SharedLabels {
        Arc::new(Labels(self.labels.clone()))
    }

    /// The bytes of all of it, if they are known.
    #[must_use]
    pub fn total_bytes(&self) -> Option<u64> {
        let sizes = self.list.iter().map(|input| match input {
            Input::Body(body) => Some(body.len() as u64),
            Input::Lines { size, .. } => *size,
        });
        sizes.sum()
    }
}

impl fmt::Debug for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Inputs").field(&self.labels).finish()
    }
}

impl Labels {
    /// One place.
    pub(super) fn at(&self, spot: Spot) -> String {
        match self.0.get(spot.input) {
            Some(Label::Argument(number)) => format!("argument {number}"),
            Some(Label::Lines(name)) => format!("line {} of {name}", spot.line),
            None => format!("line {}", spot.line),
        }
    }

    /// From one place to another.
    pub(super) fn between(&self, first: Spot, last: Spot) -> String {
        match (self.0.get(first.input), self.0.get(last.input)) {
            _ if first == last => self.at(first),
            (Some(Label::Lines(name)), _) if first.input == last.input => {
                format!("lines {} to {} of {name}", first.line, last.line)
            }
            (Some(Label::Argument(from)), Some(Label::Argument(to))) => format!("arguments {from} to {to}"),
            _ => format!("{} to {}", self.at(first), self.at(last)),
        }
    }

    /// The name of an input alone.
    pub(super) fn name(&self, input: usize) -> String {
        match self.0.get(input) {
            Some(Label::Lines(name)) => name.clone(),
            _ => self.at(Spot { input, line: 1 }),
        }
    }
}
