//! Built-in jobs: sources that make messages and handlers that take them, ready to be named on the command line.
//!
//! | source | what it gives | its cursor |
//! |---|---|---|
//! | [`Tick`] | a message every interval | messages so far |
//! | [`Lines`] | a message for each line of a file, of a named pipe or of a command's output | lines so far, in a file the byte behind them, and a digest by which the file or the command's output is recognised |
//! | `Cron` | a message at each due time (feature `cron`) | messages so far and the last due time |
//!
//! | handler | what it does |
//! |---|---|
//! | [`Noop`] | nothing: what the fleet itself costs |
//! | [`Exec`] | has a pool of child processes run them, in any language |
//! | [`ExecOnce`] | starts a process for each |
//! | [`Demo`] | sleeps a while and fails now and then |
//!
//! [`subset_sum`] is work for a processor: in a program, on the command line, in a process of its own. `sales` (features
//! `sqlite` and `cache`) adds up what was sold, over a database of its own.
//!
//! Whatever cursor a source gave, opening it there goes on with exactly the rest. What a source cannot read is a
//! [`SourceError`] that says where and why; what came before it is handed over first.

#[cfg(feature = "cron")]
mod cron;
mod demo;
mod exec;
mod lines;
mod noop;
#[cfg(test)]
mod pulled;
#[cfg(all(feature = "sqlite", feature = "cache", feature = "settings"))]
pub mod sales;
pub mod subset_sum;
mod tick;

#[cfg(feature = "cron")]
pub use cron::{CatchUp, Cron, InvalidCron};
pub use demo::Demo;
pub use exec::{Exec, ExecOnce};
pub use lines::{Lines, ReadSoFar};
pub use noop::Noop;
pub use tick::Tick;

use crate::SourceError;

/// A cursor that no stream of the source can have given.
fn foreign(cursor: &str) -> SourceError {
    let shown: String = cursor.chars().take(80).collect();
    SourceError::until_rewound(format_args!("the cursor {shown:?} is not one of this source: rewind it to start again"))
}
