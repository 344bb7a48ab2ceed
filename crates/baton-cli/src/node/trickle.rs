//! Lines of which there may be a flood: so many a second are told, the rest is counted.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::Log;

/// Lines that are told in a second.
const LINES_A_SECOND: u32 = 50;

/// What was told in this second.
#[derive(Debug)]
pub(super) struct Trickle(Mutex<(Instant, u32)>);

impl Trickle {
    pub(super) fn new() -> Self {
        Self(Mutex::new((Instant::now(), 0)))
    }

    /// Tells a line about this, if there were not too many.
    pub(super) fn tell(&self, log: &Log, about: &str, line: &str) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.0.elapsed() >= Duration::from_secs(1) {
            let left_out = told.1.saturating_sub(LINES_A_SECOND);
            if left_out > 0 {
                log.line(&format!("{about}: {left_out} more lines"));
            }
            *told = (Instant::now(), 0);
        }
        told.1 += 1;
        if told.1 <= LINES_A_SECOND {
            log.line(line);
        }
    }
}
