//! Faults between a caller and a store: lost replies, repeated calls, calls that never arrive, delays.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use baton::{
    SessionId,
    store::{Answer, BoxFuture, Request, Store, StoreError, Waiting, Woken},
};

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// It is carried out, and the reply is lost.
    DropReply,
    /// It is carried out twice; the second answer counts.
    Repeat,
    /// It never arrives.
    FailBefore,
    /// It is carried out after a pause.
    Delay(Duration),
}

/// A store whose calls meet faults, in the order they were ordered or by chance from a seed.
#[derive(Clone)]
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    plan: Arc<Mutex<Plan>>,
}

struct Plan {
    next: VecDeque<Fault>,
    /// State of the random numbers, and faults in a thousand calls.
    random: Option<(u64, u64)>,
    met: u64,
}

impl FaultyStore {
    /// No faults until some are ordered.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, plan: Arc::new(Mutex::new(Plan { next: VecDeque::new(), random: None, met: 0 })) }
    }

    /// Faults by chance: `per_mille` of the calls, the same for the same seed and order of calls.
    #[must_use]
    pub fn random(inner: Arc<dyn Store>, seed: u64, per_mille: u64) -> Self {
        let store = Self::new(inner);
        store.plan.lock().unwrap().random = Some((seed | 1, per_mille));
        store
    }

    /// Orders a fault for the next call.
    pub fn order(&self, fault: Fault) {
        self.plan.lock().unwrap().next.push_back(fault);
    }

    /// How many calls met a fault.
    #[must_use]
    pub fn met(&self) -> u64 {
        self.plan.lock().unwrap().met
    }

    fn next_fault(&self) -> Fault {
        let mut plan = self.plan.lock().unwrap();
        let fault = plan.next.pop_front().unwrap_or_else(|| match &mut plan.random {
            None => Fault::None,
            Some((state, per_mille)) => {
                *state ^= *state << 13;
                *state ^= *state >> 7;
                *state ^= *state << 17;
                match (*state >> 20) % 1000 < *per_mille {
                    false => Fault::None,
                    true => match (*state >> 40) % 4 {
                        0 => Fault::DropReply,
                        1 => Fault::Repeat,
                        2 => Fault::FailBefore,
                        _ => Fault::Delay(Duration::from_millis((*state >> 50) % 20)),
                    },
                }
            }
        });
        plan.met += u64::from(fault != Fault::None);
        fault
    }

    /// Makes a call, which `call` can make again, under the next fault.
    fn under_fault<'a, T: Send + 'a>(
        &self, call: impl Fn() -> BoxFuture<'a, Result<T, StoreError>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        let fault = self.next_fault();
        Box::pin(async move {
            let lost = || Err(StoreError::Unreachable("a fault was injected".to_owned()));
            match fault {
                Fault::None => {}
                Fault::FailBefore => return lost(),
                Fault::DropReply => {
                    call().await.ok();
                    return lost();
                }
                Fault::Repeat => {
                    call().await.ok();
                }
                Fault::Delay(pause) => tokio::time::sleep(pause).await,
            }
            call().await
        })
    }
}

impl Store for FaultyStore {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, StoreError>> {
        self.under_fault(move || self.inner.call(request.clone()))
    }

    fn apart(&self) -> Arc<dyn Store> {
        Arc::new(Self { inner: self.inner.apart(), plan: self.plan.clone() })
    }

    fn wait(&self, session: SessionId, waiting: Arc<dyn Waiting>) -> BoxFuture<'_, Result<Woken, StoreError>> {
        self.under_fault(move || self.inner.wait(session, waiting.clone()))
    }
}
