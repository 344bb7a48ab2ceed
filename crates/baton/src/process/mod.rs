//! Child processes.
//!
//! A [`Child`] leads a process group of its own, so that Ctrl-C at the terminal reaches only its parent, and never
//! outlives whoever holds it: dropped, the whole group is killed, and so is what is left of it when the child ends. A
//! guarded one does not even outlive this process when that is killed. Children stop and go on with this process ([`suspend_children`]). A [`Leash`] tells it to end, and that its parent is
//! gone, however it went. A `Pipe` is its output, which the runtime hears
//! of only if it is waited for. A `Tail` keeps what it complained of last.

mod child;
mod groups;
mod guardian;
mod leash;
mod pipe;
mod tail;

pub use self::{
    child::Child,
    groups::{resume_children, suspend_children},
    guardian::guard_children,
    leash::{Leash, Word},
};
pub(crate) use self::{
    child::ending,
    guardian::check as check_guardian,
    leash::words,
    pipe::Pipe,
    tail::{LAST_WORDS, LastLines, Listener, Tail},
};
