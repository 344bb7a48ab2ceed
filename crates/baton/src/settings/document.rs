//! A TOML file whose mistakes are told by line and column, with the name that was probably meant.
//!
//! A reader asks a [`Section`] for the keys it knows; what is then left over is a mistake, and so is every value that it
//! refuses. All mistakes of a file are found in one reading.

use std::{
    cell::RefCell,
    fmt,
    io::ErrorKind,
    ops::Range,
    path::{Path, PathBuf},
};

use toml::de::{DeTable, DeValue};

use super::SettingsError;

/// The most bytes such a file may have: it is handed to worker processes as a variable.
const LARGEST: usize = 100 << 10;

/// What to do about a mistake that has no better advice.
const CORRECT: &str = "correct the file";

/// A file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    path: PathBuf,
    text: String,
}

/// Something in a file that is not as it must be; shown as one line: place, cause and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1 on.
    pub line: usize,
    /// The character in the line, from 1 on.
    pub column: usize,
    /// What is wrong.
    pub cause: String,
    /// What to do about it.
    pub next: String,
}

impl Mistake {
    /// Where it is and what is wrong.
    #[must_use]
    pub fn placed(&self) -> String {
        format!("{}:{}:{}: {}", self.path.display(), self.line, self.column, self.cause)
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.placed(), self.next)
    }
}

impl Document {
    /// A text that came from this file.
    pub(super) const fn new(path: PathBuf, text: String) -> Self {
        Self { path, text }
    }

    /// A file as it is now; nothing if it cannot be read.
    #[must_use]
    pub fn at(path: &Path) -> Option<Self> {
        Self::load(path, false).ok().flatten()
    }

    /// Reads a file; nothing if it is missing and nobody asked for it.
    pub(super) fn load(path: &Path, required: bool) -> Result<Option<Self>, SettingsError> {
        let refuse = |why| SettingsError::File { path: path.to_owned(), why };
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound && !required => return Ok(None),
            Err(error) => return Err(refuse(error.to_string())),
        };
        if text.len() > LARGEST {
            return Err(refuse(format!("it has {} bytes, {LARGEST} at most", text.len())));
        }
        let text = String::from_utf8(text).map_err(|_| refuse("it is not UTF-8 text".to_owned()))?;
        Ok(Some(Self::new(path.to_owned(), text)))
    }

    /// The file it came from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A path as the file means it: relative ones begin at its folder.
    #[must_use]
    pub fn beside(&self, path: &Path) -> PathBuf {
        self.path.parent().map_or_else(|| path.to_owned(), |folder| folder.join(path))
    }

    /// Has the file read; if there are mistakes, all of them in the order of the file.
    ///
    /// # Errors
    /// The mistakes, of which there is at least one.
    pub fn read<T>(&self, read: impl FnOnce(&mut Section<'_>) -> T) -> Result<T, Vec<Mistake>> {
        if self.text.trim_start().starts_with('{') {
            let cause = "this is JSON, and settings are TOML".to_owned();
            let next = "write each of its keys as a line of its own, as fleet = \"baton\"".to_owned();
            return Err(vec![self.mistake(0, cause, next)]);
        }
        let table = DeTable::parse(&self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            vec![self.mistake(at, format!("this is not TOML: {}", error.message()), CORRECT.to_owned())]
        })?;
        let found = RefCell::new(Vec::new());
        let mut root = Section::new(self, String::new(), 0..0, table.get_ref(), &found);
        let read = read(&mut root);
        root.finish();
        let mut found = found.into_inner();
        found.sort_by_key(|mistake: &Mistake| (mistake.line, mistake.column));
        if found.is_empty() { Ok(read) } else { Err(found) }
    }

    fn mistake(&self, at: usize, cause: String, next: String) -> Mistake {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Mistake { path: self.path.clone(), line, column, cause, next }
    }
}

/// A table of a file, asked key by key.
pub struct Section<'a> {
    document: &'a Document,
    /// Where it is, as ` of queue resize`; nothing at the top.
    of: String,
    /// Its own place.
    at: Range<usize>,
    table: &'a DeTable<'a>,
    asked: Vec<&'static str>,
    found: &'a RefCell<Vec<Mistake>>,
}

impl<'a> Section<'a> {
    fn new(
        document: &'a Document, of: String, at: Range<usize>, table: &'a DeTable<'a>, found: &'a RefCell<Vec<Mistake>>,
    ) -> Self {
        Self { document, of, at, table, asked: Vec::new(), found }
    }

    /// The value of a key, which is text or a number, if it is there and is one.
    pub fn value<T, E: fmt::Display>(
        &mut self, key: &'static str, read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let (value, _) = self.look(key)?;
        let told = if let DeValue::String(text) = value { Some(text.to_string()) } else { digits(value) };
        self.taken(key, (value, told), "text or a number", read)
    }

    /// The value of a key, which is a number and not the text of one, if it is there and is one.
    pub fn number<T, E: fmt::Display>(
        &mut self, key: &'static str, read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let (value, _) = self.look(key)?;
        self.taken(key, (value, digits(value)), "a number", read)
    }

    fn taken<T, E: fmt::Display>(
        &self, key: &str, (value, told): (&DeValue<'_>, Option<String>), expected: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let read = match told {
            Some(text) => read(&text).map_err(|error| error.to_string()),
            None => Err(format!("{expected} is expected, not {}", named(value))),
        };
        read.map_err(|cause| self.refuse(key, &format!("{key}{}: {cause}", self.of), CORRECT)).ok()
    }

    /// The value of a key that is true or false; false if it is missing.
    pub fn switch(&mut self, key: &'static str) -> bool {
        match self.look(key) {
            None => false,
            Some((DeValue::Boolean(on), _)) => *on,
            Some((other, _)) => {
                let cause = format!("{key}{}: true or false is expected, not {}", self.of, named(other));
                self.refuse(key, &cause, CORRECT);
                false
            }
        }
    }

    /// Reads the one table under a key, such as `[gateway]`, if it is there.
    pub fn table<T>(&mut self, key: &'static str, read: impl FnOnce(&mut Section<'a>) -> T) -> Option<T> {
        let (value, at) = self.look(key)?;
        let DeValue::Table(table) = value else {
            self.refuse(key, &format!("{key} is no table"), &format!("write its keys under [{key}]"));
            return None;
        };
        let mut section = Section::new(self.document, format!(" of {key}"), at, table, self.found);
        let read = read(&mut section);
        section.finish();
        Some(read)
    }

    /// Reads each table under a key, such as `[queues.NAME]` under `queues`; `kind` is what one of them is called.
    pub fn each<T>(
        &mut self, key: &'static str, kind: &str, mut read: impl FnMut(&str, &mut Section<'a>) -> T,
    ) -> Vec<T> {
        let tables = match self.look(key) {
            None => return Vec::new(),
            Some((DeValue::Table(tables), _)) => tables,
            Some(_) => {
                self.refuse(key, &format!("{key} is no table"), &format!("describe each under [{key}.NAME]"));
                return Vec::new();
            }
        };
        let mut all = Vec::new();
        for (name, table) in tables {
            let (name, at) = (name.get_ref(), name.span());
            match table.get_ref() {
                DeValue::Table(table) => {
                    let mut section = Section::new(self.document, format!(" of {kind} {name}"), at, table, self.found);
                    all.push(read(name, &mut section));
                    section.finish();
                }
                _ => {
                    let next = format!("describe it under [{key}.{name}]");
                    self.note(at.start, format!("{kind} {name} is no table"), next);
                }
            }
        }
        all
    }

    /// Leaves a key to another reader.
    pub fn leave(&mut self, key: &'static str) {
        self.asked.push(key);
    }

    /// Whether the key is there.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Notes a mistake at the value of this key, or at the section itself if it has no such key.
    pub fn refuse(&self, key: &str, cause: &str, next: &str) {
        let at = self.table.get(key).map_or_else(|| self.at.start, |value| value.span().start);
        self.note(at, cause.to_owned(), next.to_owned());
    }

    fn look(&mut self, key: &'static str) -> Option<(&'a DeValue<'a>, Range<usize>)> {
        self.asked.push(key);
        let value = self.table.get(key)?;
        Some((value.get_ref(), value.span()))
    }

    fn note(&self, at: usize, cause: String, next: String) {
        self.found.borrow_mut().push(self.document.mistake(at, cause, next));
    }

    /// What nobody asked for is a mistake.
    fn finish(&self) {
        for key in self.table.keys() {
            let name = key.get_ref();
            if !self.asked.contains(&&**name) {
                let next = meant(name, self.asked.iter().copied()).map_or_else(
                    || format!("the keys are {}", self.asked.join(", ")),
                    |near| format!("did you mean {near}?"),
                );
                self.note(key.span().start, format!("unknown key {name:?}{}", self.of), next);
            }
        }
    }
}

/// The name among these that was probably meant, if one is near.
pub fn meant<'a>(name: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = among.into_iter().map(|it| (strsim::osa_distance(&name.to_lowercase(), it), it));
    let (distance, it) = near.min_by_key(|(distance, _)| *distance)?;
    (distance <= (name.chars().count() / 3).max(1)).then_some(it)
}

/// A number as flags would say it.
fn digits(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::Integer(number) => {
            let plain = i64::from_str_radix(number.as_str(), number.radix());
            Some(plain.map_or_else(|_| number.to_string(), |plain| plain.to_string()))
        }
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => None,
    }
}

fn named(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::quantity;

    fn mistakes(text: &str) -> Vec<String> {
        let document = Document::new(PathBuf::from("etc/baton.toml"), text.to_owned());
        let read = document.read(|root| {
            root.value("wait", quantity::seconds);
            root.each("queues", "queue", |_, queue| (queue.number("retries", str::parse::<u32>), queue.switch("quick")))
        });
        read.err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn all_mistakes_are_told_by_their_place() {
        assert_eq!(mistakes("wait = 2.5\n[queues.a]\nretries = 0x10\nquick = true\n[queues.b]\n"), [""; 0]);
        let text = "\"äö\" = 1\nwait = \"ten\"\n\n[queues.a]\n  retires = 5\n  quick = 1\n[queues]\nb = 7\n";
        let told = mistakes(text);
        assert_eq!(
            told.first().map(String::as_str),
            Some("etc/baton.toml:1:1: unknown key \"äö\"; the keys are wait, queues")
        );
        let rest: Vec<&str> = told.iter().skip(1).map(|it| it.trim_start_matches("etc/baton.toml:")).collect();
        assert_eq!(
            rest,
            [
                "2:8: wait: \"ten\" is no duration: write 0, 500ms, 2s or 1m; correct the file",
                "5:3: unknown key \"retires\" of queue a; did you mean retries?",
                "6:11: quick of queue a: true or false is expected, not a number; correct the file",
                "8:1: queue b is no table; describe it under [queues.b]",
            ]
        );
        assert_eq!(mistakes("wait = \"x\" y").len(), 1);
        let number = "etc/baton.toml:2:11: retries of queue a: a number is expected, not text; correct the file";
        assert_eq!(mistakes("[queues.a]\nretries = \"2\"\n"), [number]);
        assert!(mistakes(" {\"wait\":1}").concat().contains(":1:1: this is JSON"));
    }

    #[test]
    fn paths_begin_at_the_folder_of_the_file() {
        let document = |path: &str| Document::new(PathBuf::from(path), String::new());
        assert_eq!(document("etc/baton.toml").beside(Path::new("x")), Path::new("etc/x"));
        assert_eq!(document("baton.toml").beside(Path::new("x")), Path::new("x"));
        assert_eq!(document("etc/baton.toml").beside(Path::new("/x")), Path::new("/x"));
    }

    #[test]
    fn a_near_name_is_found() {
        assert_eq!(meant("retires", ["retries", "backoff"]), Some("retries"));
        assert_eq!(meant("Demo", ["demo", "noop"]), Some("demo"));
        assert_eq!(meant("fetch", ["demo", "noop"]), None);
    }
}
