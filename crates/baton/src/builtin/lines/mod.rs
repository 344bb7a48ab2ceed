//! A source of lines: of a file, of a named pipe, of standard input, or of what a command prints.
//!
//! Each line becomes a JSON string without its line end (`\n` or `\r\n`); with [`Lines::json`] each line is a JSON value as
//! it stands. Blank lines make no message, but count as lines.
//!
//! | origin | is read | a successor |
//! |---|---|---|
//! | a file | to its end as it is then; a last line without a line end counts | seeks to the cursor: lines read, the byte behind them, and a digest by which the file is recognised; fails for good if it is another file |
//! | a file that is [followed](Lines::follow) | for ever, finished lines only; also when another file takes its name | the same, if the file begins as it did; else it begins at the start |
//! | a named pipe, or standard input | until its last writer has closed it | fails for good: what the former had read and not pushed is lost |
//! | a command | to its end; a last line without a line end counts if the command then ends well | runs it again and passes over the lines that were given; fails for good if they are others by then |
//!
//! Three things end the stream for good, with an error that names the cause: a line that cannot be a message, a file other
//! than the one read before, and a command that fails.

mod command;
mod cutter;
mod file;
mod followed;
mod naming;
mod pipe;
mod printed;
mod rotated;
#[cfg(test)]
mod tests;

use std::{
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
};

use self::{
    command::Command,
    cutter::{Cursor, Cutter, Form, Input},
    file::{NamedFile, Opened, unreadable},
    followed::Followed,
    pipe::NamedPipe,
};
use super::foreign;
use crate::{BoxFuture, Source, SourceError, Stream};

/// A message for each line of a file or of a command's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    origin: Origin,
    form: Form,
    count: Option<u64>,
    follow: bool,
}

/// How far a file of lines was read; see [`Lines::read_so_far`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadSoFar {
    /// Lines that were read, blank ones counted.
    pub lines: u64,
    /// Whether there are more.
    pub has_more: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    Path(PathBuf),
    Stdin,
    Command(String),
}

impl Lines {
    /// The lines of a regular file, which must have the same content at this path on every node that offers it; or of
    /// a named pipe.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { origin: Origin::Path(path.into()), form: Form::Text, count: None, follow: false }
    }

    /// The lines of this process's standard input: nothing else may read it.
    #[must_use]
    pub const fn stdin() -> Self {
        Self { origin: Origin::Stdin, form: Form::Text, count: None, follow: false }
    }

    /// The lines that a shell command, run by `sh`, prints. It must print the same lines in the same order each time. It
    /// runs in a process group of its own, which is killed with the stream.
    pub fn command(command: impl Into<String>) -> Self {
        Self { origin: Origin::Command(command.into()), form: Form::Text, count: None, follow: false }
    }

    /// Whether each line is a JSON value itself.
    #[must_use]
    pub const fn json(mut self, json: bool) -> Self {
        self.form = if json { Form::Json } else { Form::Text };
        self
    }

    /// Ends after this line; blank lines count.
    #[must_use]
    pub const fn count(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }

    /// Whether to wait for more lines at the end of the file, as `tail -F` does. Only files can be followed.
    #[must_use]
    pub const fn follow(mut self, follow: bool) -> Self {
        self.follow = follow;
        self
    }

    async fn open_at(&self, cursor: &str) -> Result<Box<dyn Stream>, SourceError> {
        let start = Cursor::parse(cursor)?;
        let (input, at) = match &self.origin {
            Origin::Path(path) => self.open_path(path, cursor, start).await?,
            Origin::Stdin => (Input::Pipe(NamedPipe::stdin(cursor)?), Cursor::default()),
            Origin::Command(line) => (Input::Command(Command::start(line)?), Cursor::default()),
        };
        Ok(Box::new(Cutter::new(input, self.form, at, start, self.count.unwrap_or(u64::MAX))))
    }

    async fn open_path(&self, path: &Path, cursor: &str, start: Cursor) -> Result<(Input, Cursor), SourceError> {
        let name = path.display();
        // Checked before it is opened: opening a pipe as a file waits for its writer.
        let about = tokio::fs::metadata(path).await;
        if self.follow {
            if about.is_ok_and(|about| !about.is_file()) {
                return Err(SourceError::for_good(format_args!("{name} is no regular file, so it cannot be followed")));
            }
            // The cursor of a followed file always has a digest.
            if start.offset > 0 && start.head.is_none() {
                return Err(foreign(cursor));
            }
            let (followed, start) = Followed::open(path, start).await?;
            return Ok((Input::Followed(followed), start));
        }
        let about = about.map_err(|error| unreadable(&name, &error))?;
        if about.file_type().is_fifo() {
            return Ok((Input::Pipe(NamedPipe::open(path, cursor)?), Cursor::default()));
        }
        if !about.is_file() {
            return Err(SourceError::for_good(format_args!("{name} is neither a regular file nor a named pipe")));
        }
        let Opened { file, at, .. } = NamedFile::open(path, start).await?;
        Ok((Input::File(file), at))
    }

    /// How far a file was read by a cursor, and whether more has come since; nothing for other origins, and for a file
    /// that is followed.
    ///
    /// # Errors
    /// The file cannot be read, or is not the one that was read.
    pub async fn read_so_far(&self, cursor: &str) -> Result<Option<ReadSoFar>, SourceError> {
        let Origin::Path(path) = &self.origin else { return Ok(None) };
        let is_file = tokio::fs::metadata(path).await.is_ok_and(|about| about.is_file());
        if self.follow || !is_file {
            return Ok(None);
        }
        let Opened { at, left, .. } = NamedFile::open(path, Cursor::parse(cursor)?).await?;
        let may_go_on = self.count.is_none_or(|count| at.lines < count);
        Ok(Some(ReadSoFar { lines: at.lines, has_more: left > 0 && may_go_on }))
    }
}

impl Source for Lines {
    fn definition(&self) -> String {
        let form = match self.form {
            Form::Text => "text",
            Form::Json => "json",
        };
        match &self.origin {
            Origin::Path(path) if self.follow => format!("lines {form} followed {}", path.display()),
            Origin::Path(path) => format!("lines {form} file {}", path.display()),
            Origin::Stdin => format!("lines {form} stdin"),
            Origin::Command(command) => format!("lines {form} command {command}"),
        }
    }

    fn open<'a>(&'a self, cursor: &'a str) -> BoxFuture<'a, Result<Box<dyn Stream>, SourceError>> {
        Box::pin(self.open_at(cursor))
    }
}
