//! Ctrl-C as a wish to end at the next good moment; a second one ends the process at once.

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::exit::Failure;

/// What a shell says of a process that was interrupted.
const INTERRUPTED: i32 = 130;

/// Whether the run is asked to end.
#[derive(Clone)]
pub(crate) struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Signals end the process, as they do by default.
    pub(crate) fn never() -> Self {
        Self(watch::channel(false).1)
    }

    /// Takes Ctrl-C and a request to terminate as that wish.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let listening = |kind| {
            signal(kind).map_err(|error| Failure::new(format!("cannot listen to signals: {error}"), "run this again"))
        };
        let (mut interrupt, mut terminate) = (listening(SignalKind::interrupt())?, listening(SignalKind::terminate())?);
        let (came, seen) = watch::channel(false);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if came.send_replace(true) {
                    std::process::exit(INTERRUPTED);
                }
            }
        });
        Ok(Self(seen))
    }

    pub(crate) fn came(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when the wish is there.
    pub(crate) async fn wait(&self) {
        // Without anybody who could wish it, nothing comes.
        if self.0.clone().wait_for(|came| *came).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
