//! A computation with a store behind it: what is found there, who may compute, and what becomes of the value.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    CacheError, Inner, Value,
    computation::{From, Landed, Landing, Outcome},
    compute::{self, Compute},
    local::Entry,
    shared::{CacheStore, Right, millis},
};
use crate::{
    fleet::StoreSignal,
    moment,
    store::{CacheGetReply, CachePut, CachePutReply, Computed, MAX_CACHED_BYTES, session::Session},
};

/// After this time, a session that waits for another process looks again without a wake-up.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How much longer than its computation may take a computation is waited for.
const SLACK: Duration = Duration::from_secs(10);

impl Inner {
    /// From what the store has to what the computation brings.
    pub(super) async fn fly_shared(&self, shared: &CacheStore, landing: &Landing, compute: Compute) -> Outcome {
        let (key, signal) = (landing.key(), shared.fleet().signal());
        let given_up = moment::after(Instant::now(), self.options.timeout);
        loop {
            let Some(session) = shared.session().await else { return self.compute_unkept(landing, compute).await };
            let (epoch, asked) = (self.epoch(), Instant::now());
            let lasts = self.options.timeout.saturating_add(SLACK);
            let Some(answer) = shared.cache_get(&session, key, &signal, lasts).await else {
                return self.compute_unkept(landing, compute).await;
            };
            match answer {
                CacheGetReply::Found { value, is_error: true, generation, .. } => {
                    landing.computation.asks_at(generation, asked);
                    return Err(CacheError::Failed(String::from_utf8_lossy(&value).into()));
                }
                CacheGetReply::Found { value, generation, age_ms, left_ms, .. } => {
                    landing.computation.asks_at(generation, asked);
                    let made = asked.checked_sub(Duration::from_millis(age_ms)).unwrap_or(asked);
                    let expires = moment::after(asked, Duration::from_millis(left_ms));
                    let entry = Entry { value, generation, made, expires };
                    self.within(epoch, || self.cache.keep(key, entry.clone()));
                    return Ok(Landed { entry, from: From::Store });
                }
                CacheGetReply::Alone { generation } => {
                    landing.computation.asks_at(generation, asked);
                    return self.compute_unkept(landing, compute).await;
                }
                CacheGetReply::Lead { generation } => {
                    landing.computation.asks_at(generation, asked);
                    let right = Right::new(&session, key, signal.number());
                    return self.compute_and_hand_in(shared, landing, compute, (&session, epoch, &signal), right).await;
                }
                CacheGetReply::Wait { generation } => {
                    landing.computation.asks_at(generation, asked);
                    if asked >= given_up {
                        return Err(CacheError::Timeout(self.options.timeout));
                    }
                    tokio::time::timeout(LOOK_AGAIN, signal.woken()).await.ok();
                }
            }
        }
    }

    /// Computes what nobody keeps: the store is away, or says so.
    async fn compute_unkept(&self, landing: &Landing, compute: Compute) -> Outcome {
        let generation = landing.computation.generation();
        let value = compute::run(compute, self.options.timeout).await?;
        let now = Instant::now();
        let entry = Entry { value: value.bytes, generation, made: now, expires: now };
        Ok(Landed { entry, from: From::Computation { stored: false } })
    }

    /// Computes by right, and hands in what comes of it.
    async fn compute_and_hand_in(
        &self, shared: &CacheStore, landing: &Landing, compute: Compute, at: (&Session, u64, &StoreSignal),
        right: Right,
    ) -> Outcome {
        let (session, epoch, signal) = at;
        let computed = compute::run(compute, self.options.timeout).await;
        let (outcome, ttl) = match &computed {
            Ok(Value { bytes, ttl }) => {
                let ttl = ttl.unwrap_or(self.options.ttl);
                let is_kept = !ttl.is_zero() && bytes.len() <= MAX_CACHED_BYTES;
                if is_kept { (Computed::Value(bytes.clone()), ttl) } else { (Computed::Pass, self.options.ttl) }
            }
            Err(error) => (Computed::Error(error.to_string()), self.options.error_hold),
        };
        let asked = Instant::now();
        let ttl_ms = millis(ttl);
        let (key, number, max_bytes) = (landing.key().clone(), signal.number(), self.options.shared_bytes);
        let remember = CachePut { session: session.id(), key, number, outcome, ttl_ms, max_bytes };
        let remembered = shared.cache_put(remember).await;
        if remembered.is_some() {
            right.given_back();
        }
        let value = computed?;
        let made = Instant::now();
        let expires = moment::after(asked, Duration::from_millis(ttl_ms));
        let begun = landing.computation.generation();
        let Some(CachePutReply::Kept { generation }) = remembered else {
            let entry = Entry { value: value.bytes, generation: begun, made, expires: made };
            return Ok(Landed { entry, from: From::Computation { stored: false } });
        };
        let entry = Entry { value: value.bytes, generation, made: asked, expires };
        self.within(epoch, || self.cache.keep(landing.key(), entry.clone()));
        Ok(Landed { entry, from: From::Computation { stored: true } })
    }
}
