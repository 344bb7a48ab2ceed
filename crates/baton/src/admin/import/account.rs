//! What an import that ended early had come to.

use std::fmt;

use serde::Serialize;

use crate::admin::wording::plural;

/// What is stored, what is not, and what is not known. Shown as part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Account {
    /// Lines surely stored.
    pub stored: u64,
    /// Lines that had been stored under the key before.
    pub duplicates: u64,
    /// The place of the last line stored.
    pub last: Option<String>,
    /// Places that may or may not be stored.
    pub unknown: Vec<String>,
    /// Places before the last line stored that are not; those behind it go without saying.
    pub missing: Vec<String>,
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.stored, &self.last) {
            (0, _) if !self.unknown.is_empty() => f.write_str("no line is surely stored")?,
            (0, _) => f.write_str("nothing was stored")?,
            (1, Some(last)) => write!(f, "1 line is stored ({last})")?,
            (count, Some(last)) => write!(f, "{count} lines are stored, the last is {last}")?,
            (count, None) => write!(f, "{count} line{} stored", plural(count))?,
        }
        if self.duplicates > 0 {
            write!(f, " beside the {} pushed before", self.duplicates)?;
        }
        if !self.unknown.is_empty() {
            write!(f, ", {} may or may not be stored", self.unknown.join(" and "))?;
        }
        if !self.missing.is_empty() {
            write!(f, ", {} are not", self.missing.join(" and "))?;
        }
        Ok(())
    }
}
