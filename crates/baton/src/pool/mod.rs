//! Child processes for work that takes the processor, or that is written in another language.
//!
//! A child gets one task at a time, as one line on its standard input, and answers with lines on its standard output, by
//! the rules of `protocol`. **Guaranteed:**
//! * An answer goes only to the caller whose task the child was given: a child belongs to one caller until it has answered.
//! * A child that does not answer (it ends, closes a pipe, prints something else, goes on for ever) is an error for that
//!   caller, and is killed with all it has started.
//! * A caller that goes away takes its child along.
//! * At most [`Limits::children`] run; further callers wait in their order.
//! * No child outlives this process, however that ends.

mod answer_times;
mod error;
mod limits;
mod memory;
mod output;
mod pooled;
mod program;
mod protocol;
mod spoken;
mod talk;

use std::{
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::value::RawValue;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use self::pooled::Pooled;
pub(crate) use self::spoken::Ear;
pub use self::{
    error::PoolError,
    limits::Limits,
    program::{InvalidProgram, Program},
    protocol::{Event, Task},
    spoken::Spoken,
};
pub use crate::process::guard_children;
use crate::{backoff::Backoff, message::MessageId, process::Listener};

/// The interval between two looks at idle children.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The time without an answer after which a hint is due.
const LONG: Duration = Duration::from_secs(10);
/// How often it is said, at most, that children end before their first task.
const COMPLAIN_EVERY: Duration = Duration::from_secs(10);
/// The pauses between starts of children that end before they have answered once.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A pool of children that run one program. Clones are the same pool.
#[derive(Debug, Clone)]
pub struct Pool(Arc<PoolState>);

struct PoolState {
    program: Program,
    limits: Limits,
    /// One for each child that may run.
    permits: Arc<Semaphore>,
    /// Callers that wait for one.
    waiting: AtomicUsize,
    /// Children that wait for a task; the one that was busy last is at the end.
    idle: Mutex<Vec<Pooled>>,
    starts: Mutex<Starts>,
    /// Gets what children print on their standard error.
    listener: Option<Ear>,
    /// Children that were started so far.
    started: AtomicU64,
    /// Whether the hint that a child takes long was given, or must not be.
    is_hinted: AtomicBool,
}

/// The time at which the next child may be started.
struct Starts {
    backoff: Backoff,
    not_before: Option<Instant>,
    is_watched: bool,
    /// When it was last said that a child ended before its first task.
    complained: Option<Instant>,
}

impl Starts {
    fn put_off(&mut self) {
        self.not_before = Some(Instant::now() + self.backoff.pause());
    }
}

impl Pool {
    /// A pool without children. They are started as tasks come, or by [`Pool::warm_up`].
    #[must_use]
    pub fn new(program: Program, limits: Limits) -> Self {
        Self::with(program, limits, None)
    }

    /// A new pool of the same kind with a listener to the standard error of its children.
    #[must_use]
    pub(crate) fn heard_by(&self, listener: Ear) -> Self {
        Self::with(self.0.program.clone(), self.0.limits.clone(), Some(listener))
    }

    fn with(program: Program, limits: Limits, listener: Option<Ear>) -> Self {
        let backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        Self(Arc::new(PoolState {
            permits: Arc::new(Semaphore::new(limits.children.max(1))),
            waiting: AtomicUsize::new(0),
            idle: Mutex::default(),
            starts: Mutex::new(Starts { backoff, not_before: None, is_watched: false, complained: None }),
            program,
            limits,
            listener,
            started: AtomicU64::new(0),
            is_hinted: AtomicBool::new(false),
        }))
    }

    /// Has a child do a task. `hear` gets the events before the last one, in their order. While it waits, nothing more is
    /// read from the child. Its error is the task's.
    ///
    /// # Errors
    /// [`PoolError`]. The task was begun, except with [`PoolError::Busy`], [`PoolError::Closed`] and [`PoolError::Start`].
    ///
    /// # Cancel safety
    /// Dropped, it kills the child that works for it.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn run<F, H>(&self, task: &Task<'_>, mut hear: F) -> Result<Option<Box<RawValue>>, PoolError>
    where
        F: FnMut(Event<'_>) -> H + Send,
        H: Future<Output = Result<(), PoolError>> + Send,
    {
        // The child is dropped before its permit, so that the next one does not run at the same time.
        let _permit = self.permit().await?;
        let (mut child, answer) = loop {
            let mut child = self.child().await?;
            let answer = self.hint_after(task, child.answer(task, &self.0.limits, &mut hear)).await;
            // A child that ends between two tasks has not failed the second one.
            match answer {
                Err(PoolError::Untouched) => child.kill().await,
                answer => break (child, answer),
            }
        };
        if let Some(field) = child.misnamed() {
            self.hint(
                task,
                &format!(
                    "ended without a result: its child wrote {field:?} into its `end` event; a result goes into `data`"
                ),
            );
        }
        match &answer {
            Ok(_) | Err(PoolError::Failed { .. }) => {
                self.0.starts().backoff.reset();
                self.put_back(child);
            }
            Err(error) => {
                if child.tasks() == 0 {
                    self.0.starts().put_off();
                }
                child.end(error, self.0.limits.grace).await;
            }
        }
        answer
    }

    /// Gives no hint about children that take long: for programs that are known to flush their output.
    pub(crate) fn never_hint(&self) {
        self.0.is_hinted.store(true, Ordering::Relaxed);
    }

    /// Gives the listener one hint that a child takes long to answer. A child that does not flush its output, or ends its
    /// answers with another event, would otherwise wait for ever in silence.
    async fn hint_after<T>(&self, task: &Task<'_>, answer: impl Future<Output = T>) -> T {
        if self.0.listener.is_none() || self.0.is_hinted.load(Ordering::Relaxed) {
            return answer.await;
        }
        tokio::pin!(answer);
        if let Ok(answer) = tokio::time::timeout(LONG, &mut answer).await {
            return answer;
        }
        if !self.0.is_hinted.swap(true, Ordering::Relaxed) {
            self.hint(
                task,
                &format!("runs for {LONG:?}, and its child printed neither `end` nor `error`; check that it flushes its output"),
            );
        }
        answer.await
    }

    /// Starts as many children as [`Limits::warm`] says, and from now on replaces those of them that end.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn warm_up(&self) {
        if self.0.limits.warm > 0 {
            self.0.fill();
            self.watch();
        }
    }

    /// Gives a listener a hint about the message of a task.
    fn hint(&self, task: &Task<'_>, text: &str) {
        if let Some(hear) = &self.0.listener {
            let text = format!("{}/{} {text}", task.queue, task.id);
            hear(&Spoken { text: &text, message: Some(MessageId(task.id)), child: None, is_hint: true });
        }
    }

    /// Lets running tasks finish, takes no more, closes the input of the children and waits until they have ended.
    pub async fn close(&self) {
        let all = u32::try_from(self.0.limits.children.max(1)).unwrap_or(u32::MAX);
        // It fails only if the pool was closed before.
        let permits = self.0.permits.acquire_many(all).await.ok();
        self.0.permits.close();
        drop(permits);
        let idle = std::mem::take(&mut *self.0.idle());
        futures_util::future::join_all(idle.into_iter().map(|child| child.retire(self.0.limits.grace))).await;
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, PoolError> {
        let permits = Arc::clone(&self.0.permits);
        if let Ok(permit) = Arc::clone(&permits).try_acquire_owned() {
            return Ok(permit);
        }
        let waiting = QueuedCaller::new(&self.0.waiting);
        if waiting.others >= self.0.limits.waiting {
            return Err(PoolError::Busy { waiting: waiting.others });
        }
        permits.acquire_owned().await.map_err(|_| PoolError::Closed)
    }

    /// A child that waits for a task, or a new one.
    async fn child(&self) -> Result<Pooled, PoolError> {
        loop {
            let Some(child) = self.0.take_idle() else { break };
            if child.is_still() {
                return Ok(child);
            }
            // It printed something without a task, or has ended.
            child.kill().await;
        }
        let pause = self.0.starts().not_before;
        if let Some(pause) = pause {
            tokio::time::sleep_until(pause).await;
        }
        self.watch();
        let started = self.0.start();
        if started.is_err() {
            self.0.starts().put_off();
        }
        started
    }

    fn put_back(&self, mut child: Pooled) {
        let limits = &self.0.limits;
        if limits.max_messages_per_child.is_some_and(|most| child.tasks() >= most) || self.0.permits.is_closed() {
            let grace = limits.grace;
            tokio::spawn(child.retire(grace));
        } else {
            child.rests();
            self.0.idle().push(child);
        }
    }

    /// Watches idle children for as long as the pool exists.
    fn watch(&self) {
        if !std::mem::replace(&mut self.0.starts().is_watched, true) {
            tokio::spawn(look_after(Arc::downgrade(&self.0)));
        }
    }
}

/// Ends children that were idle for long, waits for those that ended by themselves, and keeps enough of them warm.
async fn look_after(pool: Weak<PoolState>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(pool) = pool.upgrade() else { return };
        let grace = pool.limits.grace;
        for child in pool.take_over() {
            // Without a task nobody else says why it has ended.
            match pool.listener.clone().filter(|_| child.has_ended_unused() && pool.may_complain()) {
                Some(hear) => drop(tokio::spawn(async move {
                    let text = format!("a child ended before it was needed: it {}", child.last_words(grace).await);
                    hear(&Spoken { text: &text, message: None, child: None, is_hint: true });
                })),
                None => drop(tokio::spawn(child.retire(grace))),
            }
        }
        pool.fill();
    }
}

impl PoolState {
    /// Takes out the idle children that have ended, and those that were idle for long and need not stay warm.
    fn take_over(&self) -> Vec<Pooled> {
        let mut idle = self.idle();
        let mut spare = (self.busy() + idle.len()).saturating_sub(self.limits.warm);
        let is_over = |child: &mut Pooled| {
            let is_late = || self.limits.idle_timeout.is_some_and(|most| child.rested() >= most);
            let is_over = !child.is_still() || (spare > 0 && is_late());
            spare -= usize::from(is_over && spare > 0);
            is_over
        };
        idle.extract_if(.., is_over).collect()
    }

    /// Starts the children that are to be warm and are missing. Each start holds a permit, as a caller's does, so there are
    /// never more children than there may be.
    fn fill(&self) {
        if self.limits.warm == 0 {
            return;
        }
        while self.starts().not_before.is_none_or(|at| at <= Instant::now()) {
            let Ok(_permit) = self.permits.try_acquire() else { return };
            if self.busy() + self.idle().len() > self.limits.warm {
                return;
            }
            match self.start() {
                // Behind those that have worked: they are ready at once.
                Ok(child) => self.idle().insert(0, child),
                Err(error) => {
                    self.starts().put_off();
                    if let Some(listener) = &self.listener {
                        let text = format!("cannot start a child before it is needed: {error}");
                        listener(&Spoken { text: &text, message: None, child: None, is_hint: true });
                    }
                    return;
                }
            }
        }
    }

    /// Whether it may be said once more that a child ended before its first task.
    fn may_complain(&self) -> bool {
        let mut starts = self.starts();
        let may = starts.complained.is_none_or(|at| at.elapsed() >= COMPLAIN_EVERY);
        if may {
            starts.complained = Some(Instant::now());
        }
        may
    }

    /// Starts a child. What it prints on its standard error carries its number.
    fn start(&self) -> Result<Pooled, PoolError> {
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        let listener = self.listener.clone().map(|hear| -> Listener {
            Arc::new(move |text, task| {
                hear(&Spoken { text, message: task.map(MessageId), child: Some(number), is_hint: false });
            })
        });
        Pooled::start(&self.program, &self.limits, listener)
    }

    /// Children at work, and those that are about to be started.
    fn busy(&self) -> usize {
        self.limits.children.max(1).saturating_sub(self.permits.available_permits())
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Pooled>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The child that this thread talked to last, if there is one: both then run on one core, and neither wakes another.
    /// Otherwise the child that was busy last.
    fn take_idle(&self) -> Option<Pooled> {
        let (mut idle, here) = (self.idle(), thread::current().id());
        match idle.iter().rposition(|child| child.talked_in() == Some(here)) {
            Some(at) => Some(idle.remove(at)),
            None => idle.pop(),
        }
    }

    fn starts(&self) -> std::sync::MutexGuard<'_, Starts> {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for PoolState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("program", &self.program).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// A caller that waits.
struct QueuedCaller<'a> {
    line: &'a AtomicUsize,
    /// Callers before it.
    others: usize,
}

impl<'a> QueuedCaller<'a> {
    fn new(line: &'a AtomicUsize) -> Self {
        Self { line, others: line.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for QueuedCaller<'_> {
    fn drop(&mut self) {
        self.line.fetch_sub(1, Ordering::Relaxed);
    }
}
