//! The signals of those who wait in the memory store, one a session: a wake-up disturbs nobody it is not for.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::message::SessionId;

/// Signals that somebody listens for.
#[derive(Debug, Default)]
pub(super) struct Signals(Mutex<BTreeMap<SessionId, Arc<Notify>>>);

impl Signals {
    /// The signal of a session; all that listen for it hear it.
    pub(super) fn of(&self, session: SessionId) -> Signal<'_> {
        Signal { sound: self.lock().entry(session).or_default().clone(), session, signals: self }
    }

    /// Wakes those who listen for the signal of a session.
    pub(super) fn wake(&self, session: SessionId) {
        if let Some(sound) = self.lock().get(&session) {
            sound.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A signal somebody listens for; it is gone with the last one who does.
pub(super) struct Signal<'a> {
    pub(super) sound: Arc<Notify>,
    session: SessionId,
    signals: &'a Signals,
}

impl Drop for Signal<'_> {
    fn drop(&mut self) {
        let mut signals = self.signals.lock();
        // This one and the one in the map.
        if Arc::strong_count(&self.sound) <= 2 {
            signals.remove(&self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_wake_up_reaches_its_session_only_and_is_dropped_with_the_last_listener() {
        let signals = Signals::default();
        let (one, other) = (SessionId::from_u128(1), SessionId::from_u128(2));
        let (signal, again, quiet) = (signals.of(one), signals.of(one), signals.of(other));
        let (mut heard, mut too, mut unheard) =
            (Box::pin(signal.sound.notified()), Box::pin(again.sound.notified()), Box::pin(quiet.sound.notified()));
        heard.as_mut().enable();
        too.as_mut().enable();
        unheard.as_mut().enable();
        signals.wake(one);
        assert!(heard.now_or_never().is_some() && too.now_or_never().is_some() && unheard.now_or_never().is_none());
        drop(signal);
        assert_eq!(signals.lock().len(), 2);
        drop((again, quiet));
        assert!(signals.lock().is_empty());
    }
}
