//! Which run of the server each session joined, as far as this process knows.
//!
//! A server that restarts may come back without its last second, and one that was a replica for a while with what
//! another had. Sessions cannot tell, so they all start over.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    message::SessionId,
    store::{Answer, Leave, Refusal, Request, StoreError},
};

/// A time in which the server kept what it had acknowledged: the id of its run, and its reign as primary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerRun {
    pub(super) id: Arc<str>,
    pub(super) reign: u64,
}

/// Sessions joined through this store, with the run of the server at that time.
#[derive(Debug, Default)]
pub(super) struct ServerRuns(Mutex<HashMap<SessionId, ServerRun>>);

impl ServerRuns {
    /// The leave that must go before this request, if its session joined another run.
    pub(super) fn former(&self, request: &Request, run: &ServerRun) -> Option<Leave> {
        let session = request.session().filter(|_| !matches!(request, Request::Leave(_)))?;
        let runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (runs.get(&session)? != run).then_some(Leave { session })
    }

    /// Remembers a join, and forgets a session that is over.
    pub(super) fn note(&self, request: &Request, answer: &Result<Answer, StoreError>, run: &ServerRun) {
        let Some(session) = request.session() else { return };
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Ok(Answer::Join(_)) => {
                runs.insert(session, run.clone());
            }
            Ok(Answer::Leave(())) | Err(StoreError::Refused(Refusal::Stale)) => {
                runs.remove(&session);
            }
            _ => {}
        }
    }
}
