//! Telling of a store that is away: one line when it goes, one when it is back, over as many sessions as that takes.
//!
//! An outage begins with a call that goes unanswered and ends with the next answer. One that is over within
//! [`WORTH_A_LINE`] is not told, so a store that falters fills no log. So it is with a store that takes nothing new, which is
//! over only when something new was stored and nothing refused for [`ROOM_FOR`]: one that is nearly full goes to and fro.

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

/// How long a store must have taken what is new before it has room again.
const ROOM_FOR: Duration = Duration::from_secs(2);

/// What keeps calls from being answered as they should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The store does not answer.
    Away,
    /// The store takes nothing new.
    Full,
}

/// What a node knows of the outage it is in.
pub(super) struct Outage {
    observer: Arc<dyn Observer>,
    kind: Kind,
    begun: Mutex<Option<Begun>>,
}

struct Begun {
    at: Instant,
    told: bool,
}

impl Outage {
    /// Of a store that is away.
    pub(super) fn new(observer: Arc<dyn Observer>) -> Self {
        Self { observer, kind: Kind::Away, begun: Mutex::default() }
    }

    /// Of a store that takes nothing new.
    pub(super) fn of_room(observer: Arc<dyn Observer>) -> Self {
        Self { observer, kind: Kind::Full, begun: Mutex::default() }
    }

    /// The store does not answer, for this reason.
    pub(super) fn lasts(&self, cause: &StoreError) {
        let mut outage = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = outage.get_or_insert_with(|| Begun { at: Instant::now(), told: false });
        if !begun.told && begun.at.elapsed() >= WORTH_A_LINE {
            begun.told = true;
            let error = cause.clone();
            tell(
                &*self.observer,
                &match self.kind {
                    Kind::Away => Event::StoreAway { error },
                    Kind::Full => Event::StoreFull { error },
                },
            );
        }
    }

    /// The store has answered.
    pub(super) fn ends(&self) {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Begun { at, told: true }) = begun {
            let after = at.elapsed();
            tell(
                &*self.observer,
                &match self.kind {
                    Kind::Away => Event::StoreBack { after },
                    Kind::Full => Event::StoreTakes { after: after.saturating_sub(ROOM_FOR) },
                },
            );
        }
    }

    /// Looks after the store on behalf of a session, for ever.
    pub(super) async fn watch(&self, session: &Session) {
        let mut causes = match self.kind {
            Kind::Away => session.troubles(),
            Kind::Full => {
                // Whether it has room for this session is not known before that brings something.
                self.begun.lock().unwrap_or_else(PoisonError::into_inner).take();
                session.shortages()
            }
        };
        loop {
            let cause = causes.borrow_and_update().clone().filter(|error| match self.kind {
                Kind::Away => matches!(error, StoreError::Unreachable(_)),
                Kind::Full => true,
            });
            // An outage is looked at again when it may have become worth a line, whether or not a call has failed since.
            let mut again = WORTH_A_LINE;
            match &cause {
                Some(cause) => self.lasts(cause),
                None if self.kind == Kind::Full => again = ROOM_FOR,
                None => self.ends(),
            }
            let changed = async {
                if causes.changed().await.is_err() {
                    std::future::pending().await
                }
            };
            tokio::select! {
                biased;
                () = changed => {}
                () = tokio::time::sleep(again), if cause.is_some() => {}
                () = tokio::time::sleep(again), if cause.is_none() && self.has_begun() => self.ends(),
            }
        }
    }

    fn has_begun(&self) -> bool {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Told(Mutex<Vec<String>>);

    impl Observer for Told {
        fn on_event(&self, event: &Event) {
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
        assert_eq!(
            *told.0.lock().unwrap(),
            ["the store is away; this node waits for it", "the store is back after 2.5 s"]
        );
    }
}
