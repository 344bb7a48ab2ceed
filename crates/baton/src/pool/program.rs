//! What children run.

use std::{
    ffi::OsString,
    fmt, fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use tokio::process::Command;

/// A program with its arguments. No shell reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    program: OsString,
    pub(crate) arguments: Vec<OsString>,
}

/// Why a command line names no program that could be run.
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
        /// Where it is.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl Program {
    /// A program and its arguments.
    pub fn new(program: impl Into<OsString>, arguments: impl IntoIterator<Item: Into<OsString>>) -> Self {
        Self { program: program.into(), arguments: arguments.into_iter().map(Into::into).collect() }
    }

    /// A line that is split into words as a shell would: at blanks, but for quotes and backslashes. Nothing else has a
    /// meaning in it.
    ///
    /// # Errors
    /// If a quote is not closed, or there is no word.
    pub fn parse(line: &str) -> Result<Self, InvalidProgram> {
        let words = shlex::split(line).ok_or_else(|| InvalidProgram::Quote(line.to_owned()))?;
        let mut words = words.into_iter();
        let program = words.next().filter(|word| !word.is_empty()).ok_or(InvalidProgram::Empty)?;
        Ok(Self::new(program, words))
    }

    /// Whether it is there and can be run.
    ///
    /// # Errors
    /// [`InvalidProgram::Missing`] or [`InvalidProgram::Unfit`].
    pub fn check(&self) -> Result<(), InvalidProgram> {
        let missing = || InvalidProgram::Missing(self.program.to_string_lossy().into_owned());
        if self.program.as_encoded_bytes().contains(&b'/') {
            return fit(Path::new(&self.program)).ok_or_else(missing)?;
        }
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&folders).filter_map(|folder| fit(&folder.join(&self.program)));
        // As a shell does it: one that cannot be run is passed over if there is another.
        found.reduce(|first, second| first.or(second)).ok_or_else(missing)?
    }

    /// What starts it.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.program.to_string_lossy())?;
        self.arguments.iter().try_for_each(|word| write!(f, " {}", word.to_string_lossy()))
    }
}

/// Whether a file can be run; nothing if there is none.
fn fit(path: &Path) -> Option<Result<(), InvalidProgram>> {
    let unfit = |error| Some(Err(InvalidProgram::Unfit { path: path.to_owned(), error }));
    match fs::metadata(path) {
        Ok(found) if found.is_file() && found.permissions().mode() & 0o111 != 0 => Some(Ok(())),
        Ok(found) if found.is_file() => {
            unfit(io::Error::new(io::ErrorKind::PermissionDenied, "it may not be executed"))
        }
        Ok(_) => unfit(io::Error::new(io::ErrorKind::InvalidInput, "it is no file")),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => None,
        Err(error) => unfit(error),
    }
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
    }
}
