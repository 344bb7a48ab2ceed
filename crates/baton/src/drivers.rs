//! The parts of a tokio runtime that this crate needs: its timers and its I/O driver.
//!
//! A program may build a runtime without them. Tokio then panics in the first task that needs one, which may be a task that
//! nobody waits for. So every entry looks before it begins, and gives an error with the next step.
//!
//! Tokio has no question for this: the look catches its panic, so the panic hook of the program may print its message too.

use std::{panic::catch_unwind, time::Duration};

use tokio::runtime::Handle;

/// A part that the runtime lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Missing {
    #[error("this tokio runtime has no timers: build it with enable_all(), or take #[tokio::main]")]
    Timers,
    #[error("this tokio runtime has no I/O driver: build it with enable_all(), or take #[tokio::main]")]
    Io,
    #[error("this tokio runtime is shutting down: call from one that goes on")]
    Runtime,
}

/// Looks whether a runtime has timers.
pub(crate) fn timers(runtime: &Handle) -> Result<(), Missing> {
    let _within = runtime.enter();
    catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).map_err(|_| Missing::Timers)
}

/// The same for the runtime of the caller.
///
/// # Panics
/// Outside of a tokio runtime.
pub(crate) fn timers_here() -> Result<(), Missing> {
    timers(&Handle::current())
}

/// Looks whether the runtime of the caller has an I/O driver.
#[cfg(all(unix, any(feature = "redis", feature = "builtin", feature = "admin")))]
pub(crate) fn io_here() -> Result<(), Missing> {
    // A socket that the system refuses says nothing of the runtime.
    catch_unwind(|| drop(tokio::net::UnixDatagram::unbound())).map_err(|_| Missing::Io)
}

/// Elsewhere tokio itself says so.
#[cfg(all(not(unix), any(feature = "redis", feature = "builtin", feature = "admin")))]
pub(crate) const fn io_here() -> Result<(), Missing> {
    Ok(())
}

#[cfg(test)]
#[cfg(all(unix, feature = "redis"))]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn what_a_runtime_lacks_is_found() {
        for (timers, io) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut builder = Builder::new_current_thread();
            if timers {
                builder.enable_time();
            }
            if io {
                builder.enable_io();
            }
            let runtime = builder.build().unwrap();
            let found = runtime.block_on(async { (timers_here().is_ok(), io_here().is_ok()) });
            assert_eq!(found, (timers, io));
            assert_eq!(super::timers(runtime.handle()).is_ok(), timers, "also from outside");
        }
    }
}
