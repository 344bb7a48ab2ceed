//! A source of lines: of a file, or of what a command prints.
//!
//! Each line becomes a JSON string without its line end (`\n` or `\r\n`), an empty line an empty string; or, with
//! [`Lines::json`], each line is a JSON value as it stands and blank lines are passed over. A last line without a
//! line end counts as a line.
//!
//! The cursor is the number of lines read, for a file also the byte behind them, so that a successor seeks there. A
//! command is run again by a successor, and as many lines passed over: it must print the same lines each time. What
//! it printed without a line end is taken only if it then ends well, because a broken-off line is not a line.
//!
//! A line that cannot be a message, a file that cannot be read or is not the one read before, and a command that
//! fails end the stream with an error that names the line and the cause.

mod command;
mod cutter;
mod file;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use self::{
    command::Command,
    cutter::{Cutter, Form, Input, Place},
};
use crate::{BoxFuture, Source, SourceError, Stream};

/// A message for each line of a file or of a command's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    origin: Origin,
    form: Form,
    count: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    File(PathBuf),
    Command(String),
}

impl Lines {
    /// The lines of a regular file, which must have the same content at this path on every node that offers it.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { origin: Origin::File(path.into()), form: Form::Text, count: None }
    }

    /// The lines that a shell command prints. It runs in a process group of its own, which is killed with the stream.
    pub fn command(command: impl Into<String>) -> Self {
        Self { origin: Origin::Command(command.into()), form: Form::Text, count: None }
    }

    /// Whether each line is a JSON value itself.
    #[must_use]
    pub const fn json(mut self, json: bool) -> Self {
        self.form = if json { Form::Json } else { Form::Text };
        self
    }

    /// Ends behind this line, blank ones counted.
    #[must_use]
    pub const fn count(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }

    async fn open_at(&self, cursor: &str) -> Result<Box<dyn Stream>, SourceError> {
        let place = Place::parse(cursor)?;
        let (input, at) = match &self.origin {
            Origin::File(path) => (Input::File(file::open(path, place).await?), place),
            Origin::Command(line) => (Input::Command(Command::start(line)?), Place::default()),
        };
        Ok(Box::new(Cutter::new(input, self.form, at, place.lines, self.count.unwrap_or(u64::MAX))))
    }
}

impl Source for Lines {
    fn definition(&self) -> String {
        let form = match self.form {
            Form::Text => "text",
            Form::Json => "json",
        };
        match &self.origin {
            Origin::File(path) => format!("lines {form} file {}", path.display()),
            Origin::Command(command) => format!("lines {form} command {command}"),
        }
    }

    fn open<'a>(&'a self, cursor: &'a str) -> BoxFuture<'a, Result<Box<dyn Stream>, SourceError>> {
        Box::pin(self.open_at(cursor))
    }
}
