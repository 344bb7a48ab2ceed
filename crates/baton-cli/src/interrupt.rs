//! Ctrl-C as a wish to end: work is broken off at once, and the process ends soon, whatever it waits for.
//!
//! A process that listens to a signal no longer dies of it. So the first signal starts a clock here that ends the process in
//! any case, and a second one ends it at once. Whatever is awaited meanwhile is awaited by [`unless`].

use std::{thread, time::Duration};

use baton::Shutdown;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Failure;

/// What a shell says of a process that was interrupted.
pub(crate) const INTERRUPTED: i32 = 130;
/// How long a command may take to tell what became of its work.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(8);

/// Takes Ctrl-C and a request to terminate as that wish, from now on. The process ends within `last_words` of it.
pub(crate) fn listen(last_words: Duration) -> Result<Shutdown, Failure> {
    listen_to(&[SignalKind::interrupt(), SignalKind::terminate()], last_words)
}

/// The same, where what a terminal leaves behind has to be cleared away too.
pub(crate) fn listen_to(kinds: &[SignalKind], last_words: Duration) -> Result<Shutdown, Failure> {
    let shutdown = Shutdown::new();
    for kind in kinds {
        let mut signals = signal(*kind)
            .map_err(|error| Failure::new(format!("cannot listen to signals: {error}"), "run this again"))?;
        let wish = shutdown.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                if wish.asked().is_some() {
                    std::process::exit(INTERRUPTED);
                }
                wish.graceful();
                end_after(last_words);
            }
        });
    }
    Ok(shutdown)
}

/// What `work` gives; nothing if a signal came first, which drops it wherever it is.
pub(crate) async fn unless<T>(shutdown: &Shutdown, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = shutdown.any() => None,
        done = work => Some(done),
    }
}

/// Ends the process in a while if it has not ended by then. A thread: something may be holding up every task.
pub(crate) fn end_after(time: Duration) {
    let end = move || {
        thread::sleep(time);
        std::process::exit(INTERRUPTED);
    };
    if thread::Builder::new().name("baton-end".to_owned()).spawn(end).is_err() {
        std::process::exit(INTERRUPTED);
    }
}
