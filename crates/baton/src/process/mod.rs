//! Child processes, and the pauses before something is tried again.
//!
//! A [`Child`] leads a process group of its own, so that Ctrl-C at the terminal reaches only its parent, and never
//! outlives whoever holds it: dropped, the whole group is killed, and so is what is left of it when the child ends. A
//! guarded one does not even outlive this process when that is killed. A [`Leash`] tells it to end, and that its parent is
//! gone, however it went. A `Tail` keeps what it complained of last. `Backoff` spaces out what is tried again.

mod backoff;
mod child;
mod guardian;
mod leash;
mod tail;

pub(crate) use self::{
    backoff::Backoff,
    child::ending,
    leash::words,
    tail::{LAST_WORDS, LastLines, Listener, Tail, read_all},
};
pub use self::{
    child::Child,
    leash::{Leash, Word},
};
