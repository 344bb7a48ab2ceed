//! Ctrl-C as a wish to end between two pages, never within one.

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::exit::Failure;

/// Whether the run is asked to end.
pub(super) struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Signals end the process, as they do by default.
    pub(super) fn never() -> Self {
        Self(watch::channel(false).1)
    }

    /// Takes Ctrl-C and a request to terminate as that wish.
    pub(super) fn listen() -> Result<Self, Failure> {
        let listening = |kind| {
            signal(kind)
                .map_err(|error| Failure::new(format!("cannot listen to signals: {error}"), "leave --follow out"))
        };
        let (mut interrupt, mut terminate) = (listening(SignalKind::interrupt())?, listening(SignalKind::terminate())?);
        let (came, seen) = watch::channel(false);
        tokio::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            came.send_replace(true);
        });
        Ok(Self(seen))
    }

    pub(super) fn came(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when the wish is there.
    pub(super) async fn wait(&self) {
        // Without anybody who could wish it, nothing comes.
        if self.0.clone().wait_for(|came| *came).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
