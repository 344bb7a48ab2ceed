//! Where bodies come from, and how a place in the input is named to a person.

use std::{ffi::OsString, fs::File, io, os::fd::AsFd as _, path::PathBuf, sync::Arc};

use super::{SharedLabels, reader};
use crate::exit::Failure;

/// One source of bodies.
#[derive(Debug)]
pub(super) enum Input {
    /// An argument: one body.
    Body(Vec<u8>),
    /// Lines, a body each.
    Lines {
        from: File,
        /// Bytes of a regular file; a pipe or a terminal has none, and gives its lines when it likes.
        size: Option<u64>,
    },
}

/// All input of a push in the order it was named.
#[derive(Debug)]
pub(crate) struct Inputs {
    pub(super) list: Vec<Input>,
    labels: SharedLabels,
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

#[derive(Debug)]
enum Label {
    Argument(u64),
    Lines(String),
}

impl Inputs {
    /// Opens everything and checks the arguments, before anything is sent.
    pub(crate) fn open(bodies: Vec<OsString>, files: Vec<PathBuf>, max_body: usize) -> Result<Self, Failure> {
        if bodies.is_empty() && files.is_empty() {
            return Err(Failure::usage(
                "there is nothing to push",
                "give JSON bodies, - for standard input, or --file PATH",
            ));
        }
        if bodies.iter().filter(|body| *body == "-").count() > 1 {
            return Err(Failure::usage("standard input is named twice", "give - once"));
        }
        let (mut list, mut labels) = (Vec::new(), Vec::new());
        for (number, body) in (1..).zip(bodies) {
            if body == "-" {
                labels.push(Label::Lines("standard input".to_owned()));
                list.push(standard_input().map_err(|error| unreadable("standard input", &error))?);
                continue;
            }
            let body = body.into_encoded_bytes();
            if let Err(why) = reader::check(body.trim_ascii(), max_body) {
                return Err(Failure::new(format!("argument {number} {why}"), "nothing was pushed"));
            }
            labels.push(Label::Argument(number));
            list.push(Input::Body(body));
        }
        for path in files {
            let name = path.display().to_string();
            let opened = File::open(&path).and_then(|file| {
                let about = file.metadata()?;
                if about.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { Ok((file, about)) }
            });
            let (from, about) = opened.map_err(|error| unreadable(&name, &error))?;
            labels.push(Label::Lines(name));
            list.push(Input::Lines { from, size: about.is_file().then_some(about.len()) });
        }
        Ok(Self { list, labels: Arc::new(Labels(labels)) })
    }

    pub(super) fn labels(&self) -> SharedLabels {
        self.labels.clone()
    }

    /// The bytes of all of it, if they are known.
    pub(super) fn total_bytes(&self) -> Option<u64> {
        let sizes = self.list.iter().map(|input| match input {
            Input::Body(body) => Some(body.len() as u64),
            Input::Lines { size, .. } => *size,
        });
        sizes.sum()
    }
}

/// Standard input without the small buffer the standard library puts before it.
fn standard_input() -> io::Result<Input> {
    let from = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let about = from.metadata()?;
    Ok(Input::Lines { from, size: about.is_file().then_some(about.len()) })
}

fn unreadable(name: &str, error: &io::Error) -> Failure {
    Failure::new(format!("cannot read {name}: {error}"), "nothing was pushed")
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
