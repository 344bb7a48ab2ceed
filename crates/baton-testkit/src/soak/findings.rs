//! What a soak found that must not be; a run without findings has passed.

use std::sync::{Arc, Mutex};

/// How many findings of a kind are kept: one broken promise is told by every look at it.
const KEPT_OF_A_KIND: usize = 3;

/// The findings of a run; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Findings(Arc<Mutex<Vec<String>>>);

impl Findings {
    /// Notes something that must not be; findings that differ only in what follows their first number are of a kind.
    pub fn note(&self, finding: impl Into<String>) {
        let finding = finding.into();
        let kind = |text: &str| text.split(|c: char| c.is_ascii_digit()).next().unwrap_or_default().to_owned();
        let mut findings = self.0.lock().expect("no panic while noting");
        let alike = findings.iter().filter(|known| kind(known) == kind(&finding)).count();
        if alike < KEPT_OF_A_KIND && !findings.contains(&finding) {
            findings.push(finding);
        }
    }

    /// Notes it unless it is as it must be.
    pub fn demand(&self, good: bool, finding: impl FnOnce() -> String) {
        if !good {
            self.note(finding());
        }
    }

    /// All of them, in the order they were made.
    #[must_use]
    pub fn all(&self) -> Vec<String> {
        self.0.lock().expect("no panic while noting").clone()
    }
}
