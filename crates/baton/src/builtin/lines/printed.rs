//! A digest of a command's output. By it a successor checks whether the command prints the same lines again.

use sha2::{Digest as _, Sha256};

/// The digest of all lines so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Printed(Sha256);

impl Printed {
    /// Adds whole lines. A last line without a line end counts as one with it: the command may print more the next time.
    pub(super) fn add(&mut self, lines: &[u8]) {
        self.0.update(lines);
        if lines.last().is_some_and(|byte| *byte != b'\n') {
            self.0.update(b"\n");
        }
    }

    /// The digest as a cursor holds it.
    pub(super) fn digest(&self) -> u32 {
        let [a, b, c, d, ..]: [u8; 32] = self.0.clone().finalize().into();
        u32::from_be_bytes([a, b, c, d])
    }
}
