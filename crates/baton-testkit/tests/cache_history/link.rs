//! The way from a gateway to the store: calls take time, are held up, are lost with or without effect, wake-ups get lost, and
//! a gateway that is killed is not heard of any more. One of the store's own checks can be left out.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use baton::{
    BoxFuture, SessionId,
    store::{
        Answer, CacheGetReply, CachePutReply, Computed, ReadInvalidations, Request, Store, StoreError, Waiting, Woken,
        ask,
    },
};
use bytes::Bytes;

use crate::chance::Chance;

/// A check of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreCheck {
    /// Whether something newer than a computation covers its key when its value is handed in.
    Write,
    /// Whether something newer than a value covers its key when it is read.
    Read,
}

/// What a store without one of its checks would have.
#[derive(Default)]
pub(crate) struct Unchecked {
    left_out: Option<StoreCheck>,
    forgotten: Mutex<Vec<(String, u64)>>,
    values: Mutex<HashMap<String, (Bytes, u64)>>,
}

impl Unchecked {
    pub(crate) fn without(left_out: Option<StoreCheck>) -> Self {
        Self { left_out, ..Self::default() }
    }

    /// The value that such a store would give.
    fn value(&self, key: &str, now: u64) -> Option<(Bytes, u64)> {
        let (value, generation) = self.values.lock().unwrap().get(key).cloned()?;
        let covers = |scope: &str| match scope.split_at(1) {
            ("k", exact) => exact == key,
            (_, prefix) => format!("{key}/").starts_with(prefix),
        };
        let forgotten = self.forgotten.lock().unwrap();
        let is_covered = forgotten.iter().any(|(scope, at)| *at > generation && covers(scope));
        (self.left_out == Some(StoreCheck::Read) || !is_covered).then_some((value, now))
    }

    fn learn(&self, request: &Request, answer: &Answer, now: u64) {
        match (request, answer) {
            (Request::Invalidate(forget), Answer::Invalidate(at)) => {
                self.forgotten.lock().unwrap().push((forget.scope.as_str().to_owned(), *at));
            }
            (Request::CachePut(it), Answer::CachePut(remembered)) => {
                let Computed::Value(value) = &it.outcome else { return };
                let generation = match remembered {
                    CachePutReply::Kept { generation } => *generation,
                    _ if self.left_out == Some(StoreCheck::Write) => now,
                    _ => return,
                };
                self.values.lock().unwrap().insert(it.key.as_str().to_owned(), (value.clone(), generation));
            }
            _ => {}
        }
    }
}

/// One life of a gateway's connection.
#[derive(Clone)]
pub(crate) struct Link {
    store: Arc<dyn Store>,
    chance: Arc<Chance>,
    unchecked: Arc<Unchecked>,
    is_killed: Arc<AtomicBool>,
    /// Until when nothing gets through, in milliseconds since the beginning of time.
    held_until: Arc<Mutex<tokio::time::Instant>>,
}

impl Link {
    pub(crate) fn new(store: Arc<dyn Store>, chance: Arc<Chance>, unchecked: Arc<Unchecked>) -> Self {
        let held_until = Arc::new(Mutex::new(tokio::time::Instant::now()));
        Self { store, chance, unchecked, is_killed: Arc::default(), held_until }
    }

    pub(crate) fn kill(&self) {
        self.is_killed.store(true, Ordering::SeqCst);
    }

    /// Nothing gets through for so long.
    pub(crate) fn hold(&self, time: Duration) {
        *self.held_until.lock().unwrap() = tokio::time::Instant::now() + time;
    }

    /// A way takes a few milliseconds, or as long as nothing gets through.
    async fn travel(&self) {
        tokio::time::sleep(Duration::from_micros(200 + self.chance.below(4_000))).await;
        let held_until = *self.held_until.lock().unwrap();
        tokio::time::sleep_until(held_until).await;
        if self.is_killed.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    async fn generation(&self) -> u64 {
        ask(&*self.store, ReadInvalidations { since: u64::MAX >> 12 }).await.map_or(0, |it| it.generation)
    }

    async fn carry_out(&self, request: Request) -> Result<Answer, StoreError> {
        if let (Request::CacheGet(it), Some(_)) = (&request, self.unchecked.left_out) {
            let now = self.generation().await;
            if let Some((value, generation)) = self.unchecked.value(it.key.as_str(), now) {
                let found = CacheGetReply::Found { value, is_error: false, generation, age_ms: 0, left_ms: 30_000 };
                return Ok(Answer::CacheGet(found));
            }
        }
        let answer = self.store.call(request.clone()).await?;
        if self.unchecked.left_out.is_some() {
            let now = self.generation().await;
            self.unchecked.learn(&request, &answer, now);
        }
        Ok(answer)
    }
}

impl Store for Link {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, StoreError>> {
        Box::pin(async move {
            let lost = || Err(StoreError::Unreachable("it was lost".to_owned()));
            self.travel().await;
            let is_join = matches!(request, Request::Join(_));
            if !is_join && self.chance.one_in(300) {
                return lost();
            }
            let answer = self.carry_out(request).await;
            self.travel().await;
            if !is_join && self.chance.one_in(300) {
                return lost();
            }
            answer
        })
    }

    fn apart(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    /// Half of the wake-ups get lost.
    fn wait(&self, session: SessionId, waiting: Arc<dyn Waiting>) -> BoxFuture<'_, Result<Woken, StoreError>> {
        Box::pin(async move {
            let mut woken = self.store.wait(session, waiting).await?;
            self.travel().await;
            woken.follows.retain(|_| self.chance.one_in(2));
            Ok(woken)
        })
    }
}
