//! Orders of a person: to pause or resume a queue, and to stop.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{
    message::{Name, SessionId},
    store::Facts,
};

/// An order of a person; repeating it changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Claims of the queue give nothing until it is resumed.
    Pause(Name),
    /// Claims of the queue go on.
    Resume(Name),
    /// Sessions up to this join number are asked to stop, or all joined so far.
    Stop(Stop, Option<u64>),
}

/// How a session is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Finish what runs, then leave.
    Graceful,
    /// Leave at once.
    Now,
}

impl Facts for Order {
    fn session(&self) -> Option<SessionId> {
        None
    }
}
