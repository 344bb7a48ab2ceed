//! Beating: keeps the lease, and reaps whoever let theirs run out.
//!
//! A node's beats run on a thread and a connection of their own, so that handlers which block every thread of the
//! runtime do not cost it the lease. They stop while the runtime shows no sign of life for [`NO_SIGN_OF_LIFE`]: work
//! that blocks for ever is lost to others in the end.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    runtime::Handle,
    sync::watch,
    time::{Instant, MissedTickBehavior},
};

use super::{caller::Caller, vital::vital};
use crate::{
    message::{Name, SessionId},
    store::{Beat, Beaten, CancelCall, Cancelling, Kind, Lost, Reap, Reaped, Refusal, StoreError, ask},
};

/// How long the runtime may do nothing before its node stops beating.
const NO_SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// How often a session beats, and how long a beat goes unanswered before that is trouble.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rhythm {
    pub(super) heartbeat: Duration,
    pub(super) beat_timeout: Duration,
}

/// Nodes that a session keeps as lost at a time.
const LOST_KEPT: usize = 64;

/// What a session tells with its beats, and its runtime's sign of life.
#[derive(Debug, Default)]
pub(crate) struct Heart {
    report: Mutex<Bytes>,
    asks: Mutex<Vec<Name>>,
    ticks: AtomicU64,
    still: AtomicBool,
    /// Whether there are to be no more beats.
    stopped: AtomicBool,
    /// Whether the runtime has shown no sign of life for too long.
    asleep: AtomicBool,
    /// When the last beat that was answered was sent, and the generation it was told.
    confirmed: Mutex<Option<(Instant, u64)>>,
    /// Nodes that this session found dead, until its node reports them.
    lost: Mutex<Vec<Lost>>,
}

impl Heart {
    /// Sets what the next beats report.
    pub(crate) fn report(&self, report: Bytes) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = report;
    }

    /// Sets the queues of which the next beats ask whether others see to them.
    pub(crate) fn ask_about(&self, queues: Vec<Name>) {
        *self.asks.lock().unwrap_or_else(PoisonError::into_inner) = queues;
    }

    fn asks(&self) -> Vec<Name> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the beats; the lease does the rest.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the runtime of its work is alive, as far as its beats know. While it is not, the session must not be kept
    /// by other calls.
    #[must_use]
    pub(crate) fn shows_life(&self) -> bool {
        !self.asleep.load(Ordering::Relaxed)
    }

    /// When the last beat that was answered was sent, and the generation of what was forgotten that it was told.
    pub(crate) fn confirmed(&self) -> Option<(Instant, u64)> {
        *self.confirmed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nodes that this session found dead and whose messages it took back, each of them once.
    pub(crate) fn take_lost(&self) -> Vec<Lost> {
        std::mem::take(&mut *self.lost.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps that a node was lost. Sessions that nobody asks keep a few.
    fn keep_lost(&self, lost: Lost) {
        let mut kept = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        if lost.kind == Kind::Node && kept.len() < LOST_KEPT {
            kept.push(lost);
        }
    }

    fn last_report(&self) -> Bytes {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Beats in the caller's runtime until the session is over or nobody holds it any more. A `patient` session leaves it to
/// nodes to reap, which report it: it reaps who is still there a beat later.
pub(super) fn in_runtime(
    caller: Caller, heart: Arc<Heart>, rhythm: Rhythm, beaten: watch::Sender<Option<Beaten>>, patient: bool,
) {
    tokio::spawn(vital(caller.clone(), run(caller, heart, rhythm, beaten, false, patient)));
}

/// As [`in_runtime`], on a thread of its own, while the runtime of its work shows signs of life.
pub(super) fn on_thread(
    caller: &Caller, heart: Arc<Heart>, rhythm: Rhythm, beaten: watch::Sender<Option<Beaten>>, work: &Handle,
) -> Result<(), StoreError> {
    let failed =
        |error: std::io::Error| StoreError::Unreachable(format!("cannot start the thread that beats: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let apart = caller.apart();
    let signs = heart.clone();
    let thread = std::thread::Builder::new().name("baton-beat".to_owned());
    thread
        .spawn(move || {
            runtime.block_on(vital(apart.clone(), run(apart, heart.clone(), rhythm, beaten, true, false)));
            heart.still.store(true, Ordering::Relaxed);
        })
        .map_err(failed)?;
    work.spawn(async move {
        while !signs.still.load(Ordering::Relaxed) {
            signs.ticks.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(rhythm.heartbeat).await;
        }
    });
    Ok(())
}

async fn run(
    caller: Caller, heart: Arc<Heart>, rhythm: Rhythm, beaten: watch::Sender<Option<Beaten>>, watched: bool,
    patient: bool,
) {
    let mut timer = tokio::time::interval(rhythm.heartbeat);
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut ticks, mut alive) = (0, Instant::now());
    let mut seen = Vec::<SessionId>::new();
    loop {
        tokio::select! {
            biased;
            _ = caller.ended() => return,
            () = beaten.closed() => return,
            _ = timer.tick() => {}
        }
        if heart.stopped.load(Ordering::Relaxed) {
            return;
        }
        let now = heart.ticks.load(Ordering::Relaxed);
        if now != ticks {
            (ticks, alive) = (now, Instant::now());
        }
        let asleep = watched && alive.elapsed() > NO_SIGN_OF_LIFE;
        heart.asleep.store(asleep, Ordering::Relaxed);
        if asleep {
            continue;
        }
        let beat = Beat { session: caller.id(), report: heart.last_report(), asks: heart.asks() };
        let sent = Instant::now();
        let answer = ask(caller.store(), beat);
        tokio::pin!(answer);
        let answer = tokio::select! {
            biased;
            answer = &mut answer => answer,
            () = tokio::time::sleep(rhythm.beat_timeout) => {
                // It is waited for as long as it takes; those who look after the node should know.
                let time = rhythm.beat_timeout;
                caller.reached(Some(StoreError::Unreachable(format!("the store has not answered for {time:?}"))));
                answer.await
            }
        };
        match answer {
            Ok(answer) => {
                let due: Vec<SessionId> =
                    answer.expired.iter().filter(|target| !patient || seen.contains(target)).copied().collect();
                for target in &due {
                    // Another session may come first; a store that is away is asked again at the next beat.
                    let reaped = ask(caller.store(), Reap { session: caller.id(), target: *target }).await;
                    if let Ok(Reaped::Taken(lost)) = reaped {
                        heart.keep_lost(lost);
                    }
                }
                seen.clone_from(&answer.expired);
                if !due.is_empty() {
                    // A baton that this has freed is due now, not at the next beat.
                    timer.reset_immediately();
                }
                for call in &answer.forsaken {
                    // The store looks again; one that is away is asked at the next beat.
                    let shutdown = CancelCall { call: call.clone(), if_forsaken: true };
                    while ask(caller.store(), shutdown.clone()).await == Ok(Cancelling::More) {}
                }
                caller.reached(None);
                *heart.confirmed.lock().unwrap_or_else(PoisonError::into_inner) = Some((sent, answer.generation));
                beaten.send_replace(Some(answer));
            }
            Err(error @ StoreError::Refused(Refusal::Stale)) => caller.end(error),
            Err(error @ StoreError::Unreachable(_)) => caller.reached(Some(error)),
            Err(_) => {}
        }
    }
}
