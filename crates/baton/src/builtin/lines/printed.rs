//! What a command has printed so far, as a digest: a successor tells by it whether the command prints the same again.

use sha2::{Digest as _, Sha256};

/// The lines up to some place.
#[derive(Debug, Clone, Default)]
pub(super) struct Printed(Sha256);

impl Printed {
    /// Whole lines further on. A last line without a line end counts as one that has it: more may come behind it later.
    pub(super) fn add(&mut self, lines: &[u8]) {
        self.0.update(lines);
        if lines.last().is_some_and(|byte| *byte != b'\n') {
            self.0.update(b"\n");
        }
    }

    /// What stands for them in a cursor.
    pub(super) fn digest(&self) -> u32 {
        let [a, b, c, d, ..]: [u8; 32] = self.0.clone().finalize().into();
        u32::from_be_bytes([a, b, c, d])
    }
}
