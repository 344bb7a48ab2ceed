//! Ctrl-C as a wish to end at the next good moment; a second one ends the process at once.

use baton::Cancel;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Failure;

/// What a shell says of a process that was interrupted.
pub(crate) const INTERRUPTED: i32 = 130;

/// Takes Ctrl-C and a request to terminate as that wish, from now on.
pub(crate) fn listen() -> Result<Cancel, Failure> {
    let listening = |kind| {
        signal(kind).map_err(|error| Failure::new(format!("cannot listen to signals: {error}"), "run this again"))
    };
    let (mut interrupt, mut terminate) = (listening(SignalKind::interrupt())?, listening(SignalKind::terminate())?);
    let cancel = Cancel::new();
    let wish = cancel.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if wish.asked().is_some() {
                std::process::exit(INTERRUPTED);
            }
            wish.drain();
        }
    });
    Ok(cancel)
}
