//! How a node joins: through outages of the store, and past the remains of nodes that died.

use std::time::Duration;

use tokio::{runtime::Handle, time::Instant};

use super::{Role, node::Node, node_error::NodeError, outage::Outage, shutdown::Shutdown};
use crate::{
    backoff::Backoff,
    message::{Digest, SessionId},
    store::{
        Kind, Offer, Refusal, StoreError, TakeSurvey,
        session::{Session, SessionOptions},
    },
};

/// How long after its lease a dead node may still be there: it is found out by a beat.
const FOUND_OUT: Duration = Duration::from_millis(500);

impl Node {
    /// Joins, however long the store is away; nothing if it is asked to stop meanwhile. A source that another session
    /// offers as it was is refused once the time of a lease has passed and that one still beats.
    pub(super) async fn join(
        &self, home: &Handle, shutdown: &Shutdown, former: Option<u64>, outage: &Outage,
    ) -> Result<Option<Session>, NodeError> {
        let options = self.session_options(former);
        let mut backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(200));
        let mut watch: Option<Watch> = None;
        let joined = loop {
            match Session::join_for(self.fleet.store().clone(), options.clone(), home).await {
                Ok(session) => {
                    outage.ends();
                    break Ok(Some(session));
                }
                Err(error) if error.is_retryable() || error == StoreError::Refused(Refusal::Stale) => {
                    outage.lasts(&error);
                }
                Err(error @ StoreError::Refused(Refusal::DefinitionInUse { session, .. })) => match &watch {
                    None => match self.watch_for_the_dead().await {
                        Ok(begun) => watch = Some(begun),
                        Err(error) if error.is_retryable() => outage.lasts(&error),
                        Err(error) => break Err(error.into()),
                    },
                    Some(watch) if Instant::now() < watch.until => {}
                    Some(_) => match self.still_beats(session).await {
                        Ok(true) => break Err(error.into()),
                        Ok(false) => {}
                        Err(error) if error.is_retryable() => outage.lasts(&error),
                        Err(error) => break Err(error.into()),
                    },
                },
                Err(error) => break Err(error.into()),
            }
            tokio::select! {
                biased;
                () = shutdown.any() => break Ok(None),
                () = tokio::time::sleep(backoff.pause()) => {}
            }
        };
        if let Some(watch) = watch {
            // The lease does the rest if the store is away.
            watch.visitor.leave().await.ok();
        }
        joined
    }

    /// How its session presents itself.
    fn session_options(&self, former: Option<u64>) -> SessionOptions {
        let offers = self.offered.iter().filter(|_| self.role != Role::Worker).map(|offered| Offer {
            source: offered.name.clone(),
            queue: offered.queue.clone(),
            definition: Digest::of(offered.source.definition().as_bytes()),
            adopts: offered.source.adopts(),
        });
        // One that only generates works for no queue, and is nobody's helper.
        let worked = self.worked.iter().filter(|_| self.role != Role::Generator);
        SessionOptions {
            kind: Kind::Node,
            queues: worked.map(|worked| worked.queue.clone()).collect(),
            offers: offers.collect(),
            former,
            lease: self.lease,
            heartbeat: self.heartbeat,
            max_queue_bytes: self.max_queue_bytes,
            ..self.fleet.options.session.clone()
        }
    }

    /// Lets whoever is dead be found out, also where no other node is left to do it.
    async fn watch_for_the_dead(&self) -> Result<Watch, StoreError> {
        let options = SessionOptions { environment: self.fleet.environment().clone(), ..SessionOptions::client() };
        let visitor = Session::join(self.fleet.store().clone(), options).await?;
        let sessions = self.fleet.ask(TakeSurvey).await?.sessions;
        let longest = sessions.iter().map(|session| Duration::from_millis(session.lease_ms)).max().unwrap_or_default();
        Ok(Watch { visitor, until: Instant::now() + longest + FOUND_OUT })
    }

    /// Whether a session has beaten within half of its lease.
    async fn still_beats(&self, id: SessionId) -> Result<bool, StoreError> {
        let survey = self.fleet.ask(TakeSurvey).await?;
        let session = survey.sessions.iter().find(|session| session.session == id);
        Ok(session.is_some_and(|session| survey.now_ms.saturating_sub(session.beat_ms) * 2 < session.lease_ms))
    }
}

/// A visitor that beats, and so reaps, and when all that are dead now should be gone.
struct Watch {
    visitor: Session,
    until: Instant,
}
