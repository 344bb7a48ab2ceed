//! The bells of those who wait in the memory store, one a session: a wake-up disturbs nobody it is not for.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::message::SessionId;

/// Bells that somebody listens for.
#[derive(Debug, Default)]
pub(super) struct Bells(Mutex<BTreeMap<SessionId, Arc<Notify>>>);

impl Bells {
    /// The bell of a session; all that listen for it hear it.
    pub(super) fn of(&self, session: SessionId) -> Bell<'_> {
        Bell { sound: self.lock().entry(session).or_default().clone(), session, bells: self }
    }

    /// Wakes those who listen for the bell of a session.
    pub(super) fn ring(&self, session: SessionId) {
        if let Some(sound) = self.lock().get(&session) {
            sound.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A bell somebody listens for; it is gone with the last one who does.
pub(super) struct Bell<'a> {
    pub(super) sound: Arc<Notify>,
    session: SessionId,
    bells: &'a Bells,
}

impl Drop for Bell<'_> {
    fn drop(&mut self) {
        let mut bells = self.bells.lock();
        // This one and the one in the map.
        if Arc::strong_count(&self.sound) <= 2 {
            bells.remove(&self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_wake_up_reaches_its_session_only_and_is_dropped_with_the_last_listener() {
        let bells = Bells::default();
        let (one, other) = (SessionId::from_u128(1), SessionId::from_u128(2));
        let (bell, again, quiet) = (bells.of(one), bells.of(one), bells.of(other));
        let (mut heard, mut too, mut unheard) =
            (Box::pin(bell.sound.notified()), Box::pin(again.sound.notified()), Box::pin(quiet.sound.notified()));
        heard.as_mut().enable();
        too.as_mut().enable();
        unheard.as_mut().enable();
        bells.ring(one);
        assert!(heard.now_or_never().is_some() && too.now_or_never().is_some() && unheard.now_or_never().is_none());
        drop(bell);
        assert_eq!(bells.lock().len(), 2);
        drop((again, quiet));
        assert!(bells.lock().is_empty());
    }
}
