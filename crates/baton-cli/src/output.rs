//! What is written: figures to stdout, one-line remarks to stderr.
//!
//! A reader that went away (`| head`) is no failure: from then on nothing is written, and the run ends with the
//! code it would have had.

use std::{
    io::{self, BufWriter, ErrorKind, IsTerminal as _, StdoutLock, Write as _},
    time::Duration,
};

use serde::Serialize;

use crate::exit::Failure;

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
        let plain = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty())
            || std::env::var_os("TERM").is_some_and(|it| it == "dumb");
        let stdout = io::stdout();
        Self {
            colours: stdout.is_terminal() && !plain,
            to: BufWriter::with_capacity(64 << 10, stdout.lock()),
            closed: false,
        }
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

    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        self.guard(|to| {
            serde_json::to_writer(&mut *to, value)?;
            to.write_all(b"\n")
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

/// A remark for the person at the terminal; one that cannot be written is not worth failing for.
pub(crate) fn remark(text: &str) {
    writeln!(io::stderr().lock(), "baton: {text}").ok();
}

/// Rows as aligned columns: the first to the left, numbers to the right.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> Vec<String> {
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

/// A text from elsewhere without anything that steers a terminal.
pub(crate) fn tame(text: &str) -> String {
    let mut tamed = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { tamed.extend(c.escape_default()) } else { tamed.push(c) }
    }
    tamed
}

/// `s` unless it is one.
pub(crate) const fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// The names there are, for somebody who named another; nothing if there are none.
pub(crate) fn one_of(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match (names.is_empty(), more) {
        (true, _) => String::new(),
        (_, 0) => format!(" (there are: {shown})"),
        (_, more) => format!(" (there are: {shown} and {more} more)"),
    }
}

/// A duration in the unit that suits it.
pub(crate) fn span(time: Duration) -> String {
    match time.as_millis() {
        ms @ 0..1000 => format!("{ms} ms"),
        ms @ 1000..60_000 if ms % 1000 < 100 => format!("{} s", ms / 1000),
        ms @ 1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        ms @ 60_000..3_600_000 => format!("{} min", ms / 60_000),
        ms => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// Milliseconds since 1970 as a date and time in UTC.
pub(crate) fn moment(ms: u64) -> String {
    let (days, of_day) = (ms / 86_400_000, ms % 86_400_000);
    // Civil date from a day count, in eras of 400 years that begin on 1 March.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", of_day % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_utc() {
        assert_eq!(moment(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(moment(951_782_400_123), "2000-02-29T00:00:00.123Z");
        assert_eq!(moment(1_767_225_599_999), "2025-12-31T23:59:59.999Z");
    }

    #[test]
    fn columns_line_up_and_nothing_steers_the_terminal() {
        let rows = [vec!["a".to_owned(), "5".to_owned()], vec!["long".to_owned(), "1234".to_owned()]];
        assert_eq!(table(&["queue", "n"], &rows), ["queue     n", "a         5", "long   1234"]);
        assert_eq!(tame("a\u{1b}[31mé\n"), "a\\u{1b}[31mé\\n");
    }
}
