//! The worker of one queue: claims ahead, runs handlers, reports what they came to.
//!
//! A [`Dispatcher`] on the I/O thread speaks with the store; *slots*, tasks of the node's own runtime, run handlers; a
//! *buffer* under a short lock lies between them.
//!
//! * At most [`QueuePolicy::concurrency`](super::QueuePolicy::concurrency) slots are at work, counted over all sessions
//!   of the node. What is claimed beyond that follows the measured pace, so that slow work is spread over the fleet and
//!   fast work never waits for a round trip.
//! * Handlers that are ready at once and quick are run inline by one slot, handfuls at a time, without a task, a
//!   lock or memory of their own. All others are tasks on every thread of the runtime: what burns CPU or blocks its
//!   thread holds up only itself. A queue goes from one mode to the other as its messages do.
//! * What is prefetched and not begun after 100 ms goes back, so that others can begin it; until a handler ends, only free
//!   permits are claimed for.
//! * With a concurrency of 1, messages are run in the order they were claimed in.
//! * Outcomes are reported as they come; what comes while a report is under way goes into the next, and while there is
//!   more to do they gather for a millisecond.
//! * While its gate is closed it claims nothing and hands back what it has not begun.
//! * When the session is over, everything is dropped at once: others have the messages.

mod buffer;
mod dispatcher;
mod executor;
mod held;
mod mode;
mod outbox;
mod pace;
mod prefetched;
mod quarantine;
mod running;
mod slot;
#[cfg(feature = "testing")]
mod trial;
mod unplaced;

#[cfg(feature = "testing")]
pub use self::trial::trial;
pub(super) use self::{dispatcher::Dispatcher, executor::Executor};
