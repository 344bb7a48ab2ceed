//! What a session is woken with.

use std::{fmt, str::FromStr};

use crate::message::{InvalidMessage, Name};

/// An entry of a wake-up list. As text the name of the queue, or `!` and the number of the follow: no name begins so.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WakeUp {
    /// There may be messages in this queue.
    Queue(Name),
    /// There is more to read for who follows a call under this number, or something ended that a signal of this number waits
    /// for; 0 is for all signals.
    Follow(u64),
}

impl fmt::Display for WakeUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue(name) => fmt::Display::fmt(name, f),
            Self::Follow(number) => write!(f, "!{number}"),
        }
    }
}

impl FromStr for WakeUp {
    type Err = InvalidMessage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix('!').map(str::parse) {
            Some(Ok(number)) => Ok(Self::Follow(number)),
            _ => Name::new(text).map(Self::Queue),
        }
    }
}

/// The queues and the follows among these.
pub(super) fn sorted(wake_ups: impl IntoIterator<Item = WakeUp>) -> (Vec<Name>, Vec<u64>) {
    let (mut queues, mut follows) = (Vec::new(), Vec::new());
    for wake_up in wake_ups {
        match wake_up {
            WakeUp::Queue(name) => queues.push(name),
            WakeUp::Follow(number) => follows.push(number),
        }
    }
    (queues, follows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_told_apart() {
        for wake_up in [WakeUp::Queue(Name::new("a:1").unwrap()), WakeUp::Follow(7)] {
            assert_eq!(wake_up.to_string().parse::<WakeUp>().unwrap(), wake_up);
        }
        for bad in ["", "!", "!x", "! 1", "a b"] {
            assert!(bad.parse::<WakeUp>().is_err(), "{bad}");
        }
    }
}
