//! The way of one node to the store: where its calls take time, are held, are lost, come twice or too late.
//!
//! Each life of a node has a link of its own. A dead link answers nothing any more and lets nothing through, which is
//! what the end of a process looks like from the store. What has been carried out is told to the scene at that very
//! moment, whether or not anybody hears the answer.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use baton::{
    Name, SessionId,
    store::{Answer, BoxFuture, Claim, Look, MemoryStore, Operation as _, Request, Store, StoreError, Waiting, Woken},
};
use tokio::{sync::Notify, time::sleep};

use super::scene::{Caller, Shared};
use crate::soak::random::Random;

/// A node's way to the store; clones share it.
#[derive(Clone)]
pub(super) struct Link(Arc<Line>);

struct Line {
    scene: Shared,
    store: MemoryStore,
    caller: Caller,
    /// The store answers nobody.
    stall: Arc<Switch>,
    /// This node's calls are held.
    pause: Switch,
    dead: Switch,
    weather: Mutex<(Random, Weather)>,
}

/// What calls meet now.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Weather {
    pub(super) lost_per_mille: u64,
    pub(super) late_per_mille: u64,
    pub(super) late_ms: u64,
}

/// What one call meets.
struct Fate {
    out_ms: u64,
    back_ms: u64,
    request_lost: bool,
    reply_lost: bool,
    copy_after: Option<u64>,
}

impl Link {
    pub(super) fn new(scene: Shared, store: MemoryStore, caller: Caller, stall: Arc<Switch>, random: Random) -> Self {
        let (pause, dead) = (Switch::default(), Switch::default());
        let weather = Mutex::new((random, Weather::default()));
        Self(Arc::new(Line { scene, store, caller, stall, pause, dead, weather }))
    }

    /// Nothing passes any more, in either direction.
    pub(super) fn cut(&self) {
        self.0.dead.turn(true);
    }

    /// Holds what passes, or lets it go on.
    pub(super) fn pause(&self, paused: bool) {
        self.0.pause.turn(paused);
    }

    pub(super) fn set_weather(&self, change: impl FnOnce(&mut Weather)) {
        change(&mut self.0.weather.lock().unwrap().1);
    }
}

impl Line {
    fn fate(&self) -> Fate {
        let mut weather = self.weather.lock().unwrap();
        let (random, Weather { lost_per_mille, late_per_mille, late_ms }) = &mut *weather;
        let mut latency = || match random.below(10) {
            0..=3 => 0,
            4..=8 => 1,
            _ => 1 + random.below(4),
        };
        let (out_ms, back_ms) = (latency(), latency());
        let lost = random.below(1_000) < *lost_per_mille;
        let request_lost = lost && random.below(2) == 0;
        let late = random.below(1_000) < *late_per_mille;
        let copy_after = late.then(|| random.below(*late_ms) + 1);
        Fate { out_ms, back_ms, request_lost, reply_lost: lost && !request_lost, copy_after }
    }

    /// Takes its time, and waits until nothing holds this node back; a dead one never goes on.
    async fn passage(&self, ms: u64, also_stall: bool) {
        if ms > 0 {
            sleep(Duration::from_millis(ms)).await;
        }
        self.pause.is(false).await;
        if also_stall {
            self.stall.is(false).await;
        }
        if self.dead.is_on() {
            std::future::pending::<()>().await;
        }
    }

    /// Carries a request out in the store and tells the scene, in one step.
    async fn carry_out(&self, request: &Request) -> Result<Answer, StoreError> {
        let answer = self.store.call(request.clone()).await;
        self.scene.lock().unwrap().executed(self.caller, request, &answer);
        answer
    }

    /// Waits in the store for wake-ups. A stall that begins meanwhile holds the wait too.
    async fn woken(&self, session: SessionId) -> Vec<Name> {
        let nobody: Arc<dyn Waiting> = Arc::<Vec<Claim>>::default();
        loop {
            tokio::select! {
                biased;
                () = self.dead.is(true) => std::future::pending::<()>().await,
                () = self.stall.is(true) => self.stall.is(false).await,
                woken = self.store.wait(session, nobody.clone()) => return woken.map(|woken| woken.queues).unwrap_or_default(),
            }
        }
    }

    /// A call as its caller sees it.
    async fn ask(self: Arc<Self>, request: Request) -> Result<Answer, StoreError> {
        let carry_out = async |line: &Self| (line.carry_out(&request).await, Some(request.clone()));
        self.clone().under_fate(&request, carry_out).await?
    }

    /// A wait as its caller sees it. It counts as a look; the copy that may come late is of its last claim.
    async fn wait(self: Arc<Self>, session: SessionId, waiting: Arc<dyn Waiting>) -> Result<Woken, StoreError> {
        let carry_out = async |line: &Self| {
            let (mut woken, mut last) = (Woken::default(), None);
            for queue in line.woken(session).await {
                let Some(claim) = waiting.claim(&queue) else {
                    woken.queues.push(queue);
                    continue;
                };
                let (claim_no, request) = (claim.claim_no, claim.request());
                match line.carry_out(&request).await {
                    Ok(Answer::Claim(claimed)) => woken.claimed.push((claim_no, claimed)),
                    Ok(other) => panic!("a claim was answered with {other:?}"),
                    Err(_) => woken.queues.push(queue),
                }
                last = Some(request);
            }
            (woken, last)
        };
        self.clone().under_fate(&Look { session }.request(), carry_out).await
    }

    /// Carries something out with what this call meets on its way; with the request of which a copy may come late.
    async fn under_fate<T>(
        self: Arc<Self>, request: &Request, carry_out: impl AsyncFnOnce(&Self) -> (T, Option<Request>),
    ) -> Result<T, StoreError> {
        let Fate { out_ms, back_ms, request_lost, reply_lost, copy_after } = self.fate();
        self.scene.lock().unwrap().called(self.caller, request);
        self.passage(out_ms, true).await;
        if request_lost {
            self.scene.lock().unwrap().lost(self.caller, request, "a request was lost");
            self.passage(1 + back_ms, false).await;
            return Err(StoreError::Unreachable("a call was lost".to_owned()));
        }
        let (answer, copied) = carry_out(&self).await;
        if let (Some(after), Some(request)) = (copy_after, copied) {
            let line = self.clone();
            tokio::spawn(async move {
                sleep(Duration::from_millis(after)).await;
                line.stall.is(false).await;
                line.scene.lock().unwrap().copied(line.caller, &request);
                line.carry_out(&request).await.ok();
            });
        }
        self.passage(back_ms, false).await;
        if reply_lost {
            self.scene.lock().unwrap().lost(self.caller, request, "a reply was lost");
            return Err(StoreError::Unreachable("a reply was lost".to_owned()));
        }
        Ok(answer)
    }
}

/// Something that is on or off; those who wait for it wake in the order in which they began to.
#[derive(Debug, Default)]
pub(super) struct Switch {
    on: AtomicBool,
    turned: Notify,
}

impl Switch {
    pub(super) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Turns it on or off; whether it was on before.
    pub(super) fn turn(&self, on: bool) -> bool {
        let before = self.on.swap(on, Ordering::Relaxed);
        self.turned.notify_waiters();
        before
    }

    /// Returns when it is on, or off.
    async fn is(&self, on: bool) {
        while self.is_on() != on {
            self.turned.notified().await;
        }
    }
}

impl Store for Link {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, StoreError>> {
        Box::pin(self.0.clone().ask(request))
    }

    fn apart(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    fn wait(&self, session: SessionId, waiting: Arc<dyn Waiting>) -> BoxFuture<'_, Result<Woken, StoreError>> {
        Box::pin(self.0.clone().wait(session, waiting))
    }
}
