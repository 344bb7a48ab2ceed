//! What a soak found that must not be; a run without findings has passed.

use std::sync::{Arc, Mutex};

/// How many findings are kept: one broken promise is told by every check that looks.
const KEPT: usize = 40;

/// The findings of a run; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Findings(Arc<Mutex<Vec<String>>>);

impl Findings {
    /// Notes something that must not be.
    pub fn note(&self, finding: impl Into<String>) {
        let mut findings = self.0.lock().expect("no panic while noting");
        if findings.len() < KEPT {
            findings.push(finding.into());
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
