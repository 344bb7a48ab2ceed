//! Telling of a store that is away: one line when it goes, one when it is back, over as many sessions as that takes.
//!
//! An outage begins with a call that goes unanswered and ends with the next answer. One that is over within
//! [`WORTH_A_LINE`] is not told, so a store that falters fills no log.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    event::Event,
    observer::{Observer, tell},
};
use crate::store::{StoreError, session::Session};

/// How long a store is away before that is told.
const WORTH_A_LINE: Duration = Duration::from_millis(300);

/// What a node knows of the outage it is in.
pub(super) struct Outage {
    observer: Arc<dyn Observer>,
    begun: Mutex<Option<Begun>>,
}

struct Begun {
    at: Instant,
    told: bool,
}

impl Outage {
    pub(super) fn new(observer: Arc<dyn Observer>) -> Self {
        Self { observer, begun: Mutex::default() }
    }

    /// The store does not answer, for this reason.
    pub(super) fn lasts(&self, cause: &StoreError) {
        let mut outage = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = outage.get_or_insert_with(|| Begun { at: Instant::now(), told: false });
        if !begun.told && begun.at.elapsed() >= WORTH_A_LINE {
            begun.told = true;
            tell(&*self.observer, &Event::StoreAway { error: cause.clone() });
        }
    }

    /// The store has answered.
    pub(super) fn ends(&self) {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Begun { at, told: true }) = begun {
            tell(&*self.observer, &Event::StoreBack { after: at.elapsed() });
        }
    }

    /// Looks after the store on behalf of a session, for ever.
    pub(super) async fn watch(&self, session: &Session) {
        let mut troubles = session.troubles();
        loop {
            let cause =
                troubles.borrow_and_update().clone().filter(|error| matches!(error, StoreError::Unreachable(_)));
            match &cause {
                Some(cause) => self.lasts(cause),
                None => self.ends(),
            }
            // An outage is looked at again when it may have become worth a line, whether or not a call has failed since.
            let changed = async {
                if troubles.changed().await.is_err() {
                    std::future::pending().await
                }
            };
            tokio::select! {
                biased;
                () = changed => {}
                () = tokio::time::sleep(WORTH_A_LINE), if cause.is_some() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Told(Mutex<Vec<String>>);

    impl Observer for Told {
        fn told(&self, event: &Event) {
            self.0.lock().unwrap().push(event.to_string());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_told_by_two_events_and_a_short_one_by_none() {
        let told = Arc::<Told>::default();
        let outage = Outage::new(told.clone());
        let cause = StoreError::Unreachable("the store is away".to_owned());
        for _ in 0..5 {
            outage.lasts(&cause);
            tokio::time::advance(Duration::from_millis(50)).await;
        }
        outage.ends();
        assert_eq!(told.0.lock().unwrap().len(), 0);
        for _ in 0..50 {
            outage.lasts(&cause);
            tokio::time::advance(Duration::from_millis(50)).await;
        }
        outage.ends();
        outage.ends();
        assert_eq!(*told.0.lock().unwrap(), ["the store is away: waiting for it", "the store is back after 2.5 s"]);
    }
}
