//! What is written: figures to stdout, one-line remarks to stderr.
//!
//! A reader that went away (`| head`) is no failure: from then on nothing is written, and the run ends with the
//! code it would have had.

use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write as _};

pub(crate) use baton::admin::wording::{cut, moment, plural, span, tame, tame_json};
use clap::builder::StyledStr;
use serde::Serialize;

use crate::exit::{Exit, Failure};

/// A colour, used on terminals only.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ink {
    Red = 31,
    Green = 32,
    Faint = 2,
}

/// Standard output.
pub(crate) struct Output {
    to: BufWriter<StdoutLock<'static>>,
    colours: bool,
    closed: bool,
}

impl Output {
    pub(crate) fn new() -> Self {
        let stdout = io::stdout();
        Self { colours: colours(&stdout), to: BufWriter::with_capacity(64 << 10, stdout.lock()), closed: false }
    }

    /// Prints one result, as JSON or as `show` does it.
    pub(crate) fn print(
        json: bool, value: &impl Serialize, show: impl FnOnce(&mut Self) -> Result<(), Failure>,
    ) -> Result<Exit, Failure> {
        let mut output = Self::new();
        if json {
            output.json(value)?
        } else {
            show(&mut output)?
        }
        output.flush()?;
        Ok(Exit::Ok)
    }

    /// Whether there is any standard output. One that was closed by whoever started this process (`>&-`) has the null device
    /// in its place, open for reading too, which nobody has who throws something away on purpose (`>/dev/null`).
    pub(crate) fn is_there() -> bool {
        let stdout = io::stdout();
        let is_null = || Some(rustix::fs::fstat(&stdout).ok()?.st_rdev == rustix::fs::stat("/dev/null").ok()?.st_rdev);
        let reads = || rustix::fs::fcntl_getfl(&stdout).is_ok_and(|flags| flags.contains(rustix::fs::OFlags::RDWR));
        !(is_null() == Some(true) && reads())
    }

    /// Whether the reader has gone.
    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn paint(&self, ink: Ink, text: &str) -> String {
        if self.colours { format!("\x1b[{}m{text}\x1b[0m", ink as u8) } else { text.to_owned() }
    }

    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.guard(|to| writeln!(to, "{text}"))
    }

    /// A text with its styles, which are left out where colours are.
    pub(crate) fn styled(&mut self, text: &StyledStr) -> Result<(), Failure> {
        let text = if self.colours { text.ansi().to_string() } else { text.to_string() };
        self.guard(|to| to.write_all(text.as_bytes()))
    }

    /// Rows as aligned columns, without anything that steers a terminal.
    pub(crate) fn table(&mut self, head: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| tame(cell)).collect()).collect();
        table(head, &rows).iter().try_for_each(|line| self.line(line))
    }

    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        self.guard(|to| {
            let json = serde_json::to_string(value)?;
            writeln!(to, "{}", tame_json(&json))
        })
    }

    /// Hands everything written so far over; only then may it be counted as seen.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.guard(|to| to.flush())
    }

    fn guard(
        &mut self, write: impl FnOnce(&mut BufWriter<StdoutLock<'static>>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        if self.closed {
            return Ok(());
        }
        match write(&mut self.to) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            Err(error) => {
                self.closed = true;
                Err(Failure::new(format!("cannot write to standard output: {error}"), "give it a place with room"))
            }
            Ok(()) => Ok(()),
        }
    }
}

/// Whether this is a terminal with colours that somebody wants.
pub(crate) fn colours(to: &impl io::IsTerminal) -> bool {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty())
        || std::env::var_os("TERM").is_some_and(|it| it == "dumb");
    to.is_terminal() && !plain
}

/// A remark for the person at the terminal, one line; one that cannot be written is not worth failing for.
pub(crate) fn remark(text: &str) {
    io::stderr().lock().write_all(format!("baton: {}\n", tame(text)).as_bytes()).ok();
}

/// Rows as aligned columns: the first to the left, numbers to the right.
fn table(head: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let width = |column: usize, head: &str| {
        cells(column).map(|cell| cell.chars().count()).chain([head.chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = head.iter().enumerate().map(|(column, head)| width(column, head)).collect();
    let is_number = |cell: &str| cell.chars().all(|c| c.is_ascii_digit() || "-.".contains(c)) && !cell.is_empty();
    let right: Vec<bool> = (0..head.len()).map(|column| cells(column).all(|cell| is_number(cell))).collect();
    let lay = |row: Vec<&str>| {
        let cells = row.iter().zip(widths.iter().zip(&right));
        let laid = cells.map(|(cell, (width, right))| match right {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        laid.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let body = rows.iter().map(|row| lay(row.iter().map(String::as_str).collect()));
    std::iter::once(lay(head.to_vec())).chain(body).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_a_table_are_aligned() {
        let rows = [vec!["a".to_owned(), "5".to_owned()], vec!["long".to_owned(), "1234".to_owned()]];
        assert_eq!(table(&["queue", "n"], &rows), ["queue     n", "a         5", "long   1234"]);
    }
}
