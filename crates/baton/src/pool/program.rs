//! The program of children.

use std::{
    ffi::{OsStr, OsString},
    fmt, fs,
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use tokio::process::Command;

use crate::process;

/// A program with its arguments. No shell reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    program: OsString,
    pub(crate) arguments: Vec<OsString>,
    /// Its path, if it was looked for.
    place: Option<PathBuf>,
}

/// The reason why a command line names no program that could be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidProgram {
    /// A quote has no end.
    #[error("a quote in {0:?} is not closed")]
    Quote(String),
    /// There is nothing.
    #[error("the command is empty")]
    Empty,
    /// There is no such program.
    #[error("there is no program {0:?}, neither by that path nor in the folders of PATH")]
    Missing(String),
    /// It cannot be run.
    #[error("{} cannot be run: {error}", path.display())]
    Unfit {
        /// Its path.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// There is no guardian that would end it if this process were killed.
    #[error("no child can be started: {0}")]
    Unguarded(io::Error),
}

impl Program {
    /// A program and its arguments.
    pub fn new(program: impl Into<OsString>, arguments: impl IntoIterator<Item: Into<OsString>>) -> Self {
        Self { program: program.into(), arguments: arguments.into_iter().map(Into::into).collect(), place: None }
    }

    /// Looks for the program in the folders of `PATH` now, so that each start need not. If it is in none of them, or no
    /// longer there, the next start looks again.
    pub(crate) fn located(mut self) -> Self {
        if !self.program.as_encoded_bytes().contains(&b'/') {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            let places = std::env::split_paths(&folders).map(|folder| folder.join(&self.program));
            self.place = places.filter(|place| place.is_absolute()).find(|place| matches!(fit(place), Some(Ok(()))));
        }
        self
    }

    /// Splits a line into words as a shell does: at blanks, with quotes and backslashes. Nothing else in it has a meaning.
    ///
    /// # Errors
    /// If a quote is not closed, or there is no word.
    pub fn parse(line: &str) -> Result<Self, InvalidProgram> {
        let words = shlex::split(line).ok_or_else(|| InvalidProgram::Quote(line.to_owned()))?;
        let mut words = words.into_iter();
        let program = words.next().filter(|word| !word.is_empty()).ok_or(InvalidProgram::Empty)?;
        Ok(Self::new(program, words))
    }

    /// Whether it is there and can be run, and there is a guardian for it (see
    /// [`guard_children`](super::guard_children)).
    ///
    /// # Errors
    /// [`InvalidProgram::Missing`], [`InvalidProgram::Unfit`] or [`InvalidProgram::Unguarded`].
    pub fn check(&self) -> Result<(), InvalidProgram> {
        process::check_guardian().map_err(InvalidProgram::Unguarded)?;
        let missing = || InvalidProgram::Missing(self.program.to_string_lossy().into_owned());
        if self.program.as_encoded_bytes().contains(&b'/') {
            return fit(Path::new(&self.program)).ok_or_else(missing)?;
        }
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&folders).filter_map(|folder| fit(&folder.join(&self.program)));
        // As in a shell, a file that cannot be run is skipped if there is another.
        found.reduce(|first, second| first.or(second)).ok_or_else(missing)?
    }

    /// Its name and its arguments.
    pub fn words(&self) -> impl Iterator<Item = &OsStr> {
        std::iter::once(&self.program).chain(&self.arguments).map(OsString::as_os_str)
    }

    /// The command that starts it.
    pub(crate) fn command(&self) -> Command {
        let mut command = match self.place.as_ref().filter(|place| place.exists()) {
            Some(place) => Command::new(place),
            None => Command::new(&self.program),
        };
        command.arg0(&self.program).args(&self.arguments);
        command
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.program.to_string_lossy())?;
        self.arguments.iter().try_for_each(|word| write!(f, " {}", word.to_string_lossy()))
    }
}

/// Whether a file can be run; none if there is no file.
fn fit(path: &Path) -> Option<Result<(), InvalidProgram>> {
    let unfit = |error| Some(Err(InvalidProgram::Unfit { path: path.to_owned(), error }));
    match fs::metadata(path) {
        Ok(found) if found.is_file() && found.permissions().mode() & 0o111 != 0 && is_plain_text(path) => {
            unfit(io::Error::new(io::ErrorKind::InvalidInput, "it is a text without a first line that begins with #!"))
        }
        Ok(found) if found.is_file() && found.permissions().mode() & 0o111 != 0 => Some(Ok(())),
        Ok(found) if found.is_file() => {
            unfit(io::Error::new(io::ErrorKind::PermissionDenied, "it may not be executed"))
        }
        Ok(_) => unfit(io::Error::new(io::ErrorKind::InvalidInput, "it is no file")),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => None,
        Err(error) => unfit(error),
    }
}

/// Whether it is a text without a `#!` line. A file that cannot be read may still be run.
fn is_plain_text(path: &Path) -> bool {
    let mut begins = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(256).read_to_end(&mut begins));
    read.is_ok()
        && !begins.starts_with(b"#!")
        && begins.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_into_words_without_a_shell() {
        let program = Program::parse(r#"python3 "a b.py" --x='$HOME' c\ d | {}"#).unwrap();
        assert_eq!(program, Program::new("python3", ["a b.py", "--x=$HOME", "c d", "|", "{}"]));
        assert!(matches!(Program::parse("echo 'a"), Err(InvalidProgram::Quote(_))));
        assert!(matches!(Program::parse("  "), Err(InvalidProgram::Empty)));
    }

    #[test]
    fn a_program_that_is_not_there_is_told_from_one_that_cannot_be_run() {
        assert!(Program::parse("sh -c true").unwrap().check().is_ok());
        assert!(Program::parse("/bin/sh").unwrap().check().is_ok());
        assert!(matches!(Program::parse("no-such-program x").unwrap().check(), Err(InvalidProgram::Missing(_))));
        assert!(matches!(Program::parse("/dev/null").unwrap().check(), Err(InvalidProgram::Unfit { .. })));
        assert!(matches!(Program::parse("./no/such").unwrap().check(), Err(InvalidProgram::Missing(_))));
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("report.sh");
        for (text, is_fit) in [("echo 1\n", false), ("#!/bin/sh\necho 1\n", true)] {
            fs::write(&script, text).unwrap();
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
            assert_eq!(Program::new(&script, [""; 0]).check().is_ok(), is_fit, "{text}");
        }
    }
}
