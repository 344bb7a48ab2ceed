//! The mode in which a queue is worked: inline, or by tasks.
//!
//! **Inline**, one task runs handfuls of messages one after the other: nothing is cheaper for handlers that are
//! ready at once, and nothing is worse for all others, since one core is used and a slow one holds the rest up. **By
//! tasks**, each message has a task of its own that holds up nobody. A queue begins inline, on trial: each of the
//! first messages is timed, and the first that is not quick ends it. Later the clock, which costs half a message, is read
//! once a stretch. Of messages that take next to nothing a handful is larger: coming for it costs as much as some of them.

use std::time::Duration;

/// A message that takes no longer is cheaper inline.
const QUICK: Duration = Duration::from_micros(50);
/// Messages between two readings of the clock.
pub(super) const STRETCH: u32 = 16;
/// Messages in a handful of those that take no longer than [`BRISK`] each.
const LARGE: u32 = 256;
const BRISK: Duration = Duration::from_nanos(400);
/// A stretch as long as this had a message in it that must not be inline.
const LONG: Duration = Duration::from_millis(10);
/// Slow stretches in a row that end the work inline.
const SLOW_STRETCHES: u32 = 2;
/// Quick messages in a row after which a queue is worked inline again.
const QUICK_IN_A_ROW: u32 = 1_000;

/// How the messages of a queue are run now.
#[derive(Debug, PartialEq)]
pub(super) enum Mode {
    /// One after the other, where they are taken.
    Inline {
        /// Messages timed one by one so far; a stretch's worth of them and the trial is over.
        timed: u32,
        /// What the stretch has so far.
        stretch: Stretch,
        /// Slow stretches in a row.
        slow: u32,
        /// Whether the last stretch was of messages that take next to nothing.
        brisk: bool,
    },
    /// Each in a task.
    ByTasks {
        /// Quick ones in a row.
        quick: u32,
    },
}

/// Messages run inline.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Stretch {
    pub(super) count: u32,
    /// Those among them that were not ready at once.
    pub(super) pending: u32,
    pub(super) took: Duration,
}

impl Default for Mode {
    fn default() -> Self {
        Self::Inline { timed: 0, stretch: Stretch::default(), slow: 0, brisk: false }
    }
}

impl Mode {
    /// How many messages to take at once where they are run inline.
    pub(super) const fn handful(&self) -> Option<u32> {
        match self {
            Self::Inline { timed: ..STRETCH, .. } => Some(1),
            Self::Inline { brisk: true, .. } => Some(LARGE),
            Self::Inline { .. } => Some(STRETCH),
            Self::ByTasks { .. } => None,
        }
    }

    /// Messages were run inline and timed; whether the queue is worked by tasks from now on.
    pub(super) fn ran_inline(&mut self, ran: Stretch) -> bool {
        let Self::Inline { timed, stretch, slow, brisk } = self else { return false };
        stretch.count += ran.count;
        stretch.pending += ran.pending;
        stretch.took += ran.took;
        let leave = if *timed < STRETCH {
            let Stretch { count, pending, took } = std::mem::take(stretch);
            *timed += count;
            pending > 0 || took > QUICK * count
        } else if stretch.count < STRETCH {
            stretch.took > LONG
        } else {
            let Stretch { count, pending, took } = std::mem::take(stretch);
            *slow = if took > QUICK * count { *slow + 1 } else { 0 };
            *brisk = took <= BRISK * count;
            *slow == SLOW_STRETCHES || took > LONG || pending > count / 2
        };
        if leave {
            self.leave_inline();
        }
        leave
    }

    /// From now on by tasks.
    pub(super) const fn leave_inline(&mut self) {
        *self = Self::ByTasks { quick: 0 };
    }

    /// A message was run in a task.
    pub(super) fn ran_in_a_task(&mut self, at_once: bool, took: Duration) {
        if let Self::ByTasks { quick } = self {
            *quick = if at_once && took <= QUICK { *quick + 1 } else { 0 };
            if *quick == QUICK_IN_A_ROW {
                *self = Self::Inline { timed: STRETCH, stretch: Stretch::default(), slow: 0, brisk: false };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(count: u32, pending: u32, micros: u64) -> Stretch {
        Stretch { count, pending, took: Duration::from_micros(micros) }
    }

    fn proven() -> Mode {
        let mut mode = Mode::default();
        for _ in 0..STRETCH {
            assert_eq!(mode.handful(), Some(1));
            assert!(!mode.ran_inline(ran(1, 0, 2)));
        }
        assert_eq!(mode.handful(), Some(STRETCH));
        mode
    }

    #[test]
    fn the_first_messages_are_on_trial() {
        for not_quick in [ran(1, 1, 0), ran(1, 0, 51)] {
            let mut mode = Mode::default();
            assert!(!mode.ran_inline(ran(1, 0, 50)));
            assert!(mode.ran_inline(not_quick));
            assert_eq!(mode.handful(), None);
        }
    }

    #[test]
    fn two_slow_stretches_in_a_row_a_long_one_or_many_that_wait_leave_inline() {
        let mut mode = proven();
        for _ in 0..3 {
            assert!(!mode.ran_inline(ran(16, 0, 801)));
            assert!(!mode.ran_inline(ran(16, 0, 800)), "one alone does not");
        }
        assert!(!mode.ran_inline(ran(16, 0, 801)));
        assert!(!mode.ran_inline(ran(10, 0, 700)), "the stretch is not over");
        assert!(mode.ran_inline(ran(6, 0, 700)));
        assert!(proven().ran_inline(ran(3, 0, 10_001)));
        assert!(!proven().ran_inline(ran(16, 8, 10)));
        assert!(proven().ran_inline(ran(16, 9, 10)));
    }

    #[test]
    fn a_handful_is_large_while_messages_take_next_to_nothing() {
        let mut mode = proven();
        assert!(!mode.ran_inline(Stretch { took: BRISK * 16, ..ran(16, 0, 0) }));
        assert_eq!(mode.handful(), Some(LARGE));
        assert!(!mode.ran_inline(Stretch { took: BRISK * 257, ..ran(LARGE, 0, 0) }));
        assert_eq!(mode.handful(), Some(STRETCH));
    }

    #[test]
    fn a_thousand_quick_messages_in_a_row_return_to_inline() {
        let mut mode = Mode::ByTasks { quick: 0 };
        for (at_once, micros) in [(false, 1), (true, 51)] {
            (0..999).for_each(|_| mode.ran_in_a_task(true, Duration::from_micros(50)));
            mode.ran_in_a_task(at_once, Duration::from_micros(micros));
            assert_eq!(mode, Mode::ByTasks { quick: 0 });
        }
        (0..1_000).for_each(|_| mode.ran_in_a_task(true, Duration::from_micros(50)));
        assert_eq!(mode.handful(), Some(STRETCH));
    }
}
