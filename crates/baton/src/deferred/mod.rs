//! Calls made before what they need has started: a type that is initialised asynchronously can be used at once.
//!
//! A [`Deferred`] is handed out before its value exists. Calls made meanwhile wait; when the value is there they begin, each
//! after the one before it has begun, and calls made then go straight to it. What is guaranteed:
//!
//! * **Order.** Calls that waited begin in the order in which they were made: a call has begun when its future was polled
//!   once, so whatever it does before its first wait happens before anything of the next one. A call that comes while others
//!   still wait begins behind them. What begins is not waited for: calls end in any order. A call counts as made when its
//!   future is first polled, not when it is written down: one that is held and not awaited has no place yet.
//! * **Bounds.** No more calls and no more bytes wait than [`Bounds`] allow, and none longer than its patience. A [`Seat`]
//!   is taken before a call's input is read, and says later what it holds ([`Seat::hold`]).
//! * **Nothing is lost.** Every call either begins or is told why not, once: no room ([`Unready::Full`]), no more time
//!   ([`Unready::Late`]), the start failed, with its reason ([`Unready::Failed`]), or panicked ([`Unready::Panicked`]), or
//!   whoever was to start it has gone ([`Unready::Abandoned`]).
//!
//! What has started may go away again ([`Starter::gone`]): calls wait from then on as before the start. A call that finds
//! that out itself takes its place by its seat once more, before all calls that were made after it.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use std::{sync::Arc, time::Duration};
//! use baton::deferred::{Bounds, Deferred, Unready};
//!
//! let names = Deferred::spawn(Bounds::default(), async {
//!     tokio::time::sleep(Duration::from_millis(20)).await; // connects, reads, warms up …
//!     Ok::<_, String>(Arc::new(vec!["ada", "grace"]))
//! });
//! // Used at once; waits for the start.
//! assert_eq!(names.call(0, |names| async move { names.len() }).await, Ok(2));
//!
//! let never = Deferred::<(), _>::spawn(Bounds::default(), async { Err("no such host") });
//! assert_eq!(never.get().await, Err(Unready::Failed("no such host")));
//! # });
//! ```

mod line;
#[cfg(test)]
mod tests;

use std::{
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use futures_util::FutureExt as _;
use tokio::time::{Instant, sleep_until};

use self::line::{Line, Stage};
use crate::{moment, panics};

/// How much may wait, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Calls that wait at once; 1024 by default.
    pub calls: usize,
    /// Bytes that they hold, as they say themselves; 16 MiB by default.
    pub bytes: usize,
    /// How long a call waits, from its seat on; 10 s by default.
    pub patience: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { calls: 1024, bytes: 16 << 20, patience: Duration::from_secs(10) }
    }
}

/// Why a call did not begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unready<E> {
    /// As much waits as may.
    #[error("as many calls wait for the start as may")]
    Full,
    /// It has waited as long as it may.
    #[error("the start took too long")]
    Late,
    /// The start failed, for this reason.
    #[error("{0}")]
    Failed(E),
    /// The start, as [`Deferred::spawn`] was given it, panicked with this.
    #[error("the start panicked: {0}")]
    Panicked(Arc<str>),
    /// Whoever was to start it has gone without a word.
    #[error("no task starts it any more")]
    Abandoned,
}

/// A handle to what may not have started yet; clones share it. The value is cloned for each call.
pub struct Deferred<T, E> {
    shared: Arc<DeferredState<T, E>>,
}

impl<T, E> Clone for Deferred<T, E> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

/// Who says how the start went. Dropped before that, it is [`Unready::Abandoned`].
pub struct Starter<T, E> {
    shared: Arc<DeferredState<T, E>>,
}

struct DeferredState<T, E> {
    bounds: Bounds,
    line: Mutex<Line<T, E>>,
}

impl<T, E> DeferredState<T, E> {
    fn line(&self) -> MutexGuard<'_, Line<T, E>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone, E: Clone> Deferred<T, E> {
    /// A handle, and who says when it has started.
    #[must_use]
    pub fn new(bounds: Bounds) -> (Self, Starter<T, E>) {
        let shared = Arc::new(DeferredState { bounds, line: Mutex::default() });
        (Self { shared: Arc::clone(&shared) }, Starter { shared })
    }

    /// What `start` gives, in a task of its own. If it panics, all calls are told so.
    pub fn spawn(bounds: Bounds, start: impl Future<Output = Result<T, E>> + Send + 'static) -> Self
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let (deferred, starter) = Self::new(bounds);
        tokio::spawn(async move {
            match AssertUnwindSafe(start).catch_unwind().await {
                Ok(Ok(value)) => starter.started(value),
                Ok(Err(reason)) => starter.failed(reason),
                Err(thrown) => starter.shared.line().enter(Stage::Panicked(panics::text(thrown).into())),
            }
        });
        deferred
    }

    /// Whether it has started, and nobody waits.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.shared.line().is_open()
    }

    /// How many calls have a seat and have not begun.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.line().seated()
    }

    /// A seat for a call that will hold so many bytes while it waits, before those are read.
    ///
    /// # Errors
    /// [`Unready::Full`], or why it will never start.
    pub fn seat(&self, bytes: usize) -> Result<Seat<T, E>, Unready<E>> {
        let counted = {
            let mut line = self.shared.line();
            line.judge()?;
            let waits = !line.is_open();
            if waits && !line.sit(&self.shared.bounds, bytes) {
                return Err(Unready::Full);
            }
            waits
        };
        let deadline = moment::after(Instant::now(), self.shared.bounds.patience);
        Ok(Seat { shared: Arc::clone(&self.shared), bytes, counted, number: None, deadline })
    }

    /// Makes a call, with a seat of its own: what `call` gives for the value. Both are taken when this is first polled.
    ///
    /// # Errors
    /// [`Unready`]: it did not begin.
    ///
    /// # Cancel safety
    /// Whoever leaves before the call has begun leaves its place to others.
    pub async fn call<R, F: Future<Output = R>>(
        &self, bytes: usize, call: impl FnOnce(T) -> F,
    ) -> Result<R, Unready<E>> {
        self.seat(bytes)?.call(call).await
    }

    /// The value, in its turn.
    ///
    /// # Errors
    /// [`Unready`]
    pub async fn get(&self) -> Result<T, Unready<E>> {
        self.call(0, std::future::ready).await
    }
}

impl<T, E> Starter<T, E> {
    /// It has started: calls that wait begin.
    pub fn started(&self, value: T) {
        self.shared.line().enter(Stage::Started(value));
    }

    /// The start failed: all calls are told so, those that come later too, until it has started after all.
    pub fn failed(&self, reason: E) {
        self.shared.line().enter(Stage::Failed(reason));
    }

    /// It is away again: calls that have not begun wait, as before the start.
    pub fn gone(&self) {
        self.shared.line().enter(Stage::Starting);
    }
}

impl<T, E> Drop for Starter<T, E> {
    fn drop(&mut self) {
        let mut line = self.shared.line();
        // What has started or failed stays so.
        if matches!(line.stage, Stage::Starting) {
            line.enter(Stage::Abandoned);
        }
    }
}

/// A call's right to wait.
pub struct Seat<T, E> {
    shared: Arc<DeferredState<T, E>>,
    bytes: usize,
    /// Whether it counts towards the bounds: only what waits does.
    counted: bool,
    /// Its number among all calls, from the first one on.
    number: Option<u64>,
    deadline: Instant,
}

impl<T: Clone, E: Clone> Seat<T, E> {
    /// Makes the call when it has started and all calls before this one have begun. A call whose value turned out to be away
    /// can be made once more, in its old place and within the same time.
    ///
    /// # Errors
    /// [`Unready`]: it did not begin.
    ///
    /// # Cancel safety
    /// As of [`Deferred::call`].
    pub async fn call<R, F: Future<Output = R>>(&mut self, call: impl FnOnce(T) -> F) -> Result<R, Unready<E>> {
        let (value, place) = self.turn().await?;
        let mut call = pin!(call(value));
        if place.is_some() {
            let begun = poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await;
            drop(place);
            self.stand();
            if let Poll::Ready(result) = begun {
                return Ok(result);
            }
        }
        Ok(call.await)
    }

    /// Says how many bytes the call holds now. A seat that was taken for what has yet to come holds none until it is there.
    ///
    /// # Errors
    /// [`Unready::Full`] if that are too many; it holds what it held before.
    pub fn hold(&mut self, bytes: usize) -> Result<(), Unready<E>> {
        if self.counted && !self.shared.line().weigh(&self.shared.bounds, self.bytes, bytes) {
            return Err(Unready::Full);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Waits for its turn. With the value comes its place in the line, if it had to take one: the next call begins when that
    /// is dropped.
    async fn turn(&mut self) -> Result<(T, Option<Place<T, E>>), Unready<E>> {
        {
            let mut line = self.shared.line();
            line.judge()?;
            let number = *self.number.get_or_insert_with(|| line.next_number());
            if let Some(value) = line.open_for(number) {
                let value = value.clone();
                drop(line);
                self.stand();
                return Ok((value, None));
            }
            if !self.counted && !line.sit(&self.shared.bounds, self.bytes) {
                return Err(Unready::Full);
            }
            self.counted = true;
            line.line_up(number);
        }
        let number = self.number.unwrap_or_default();
        let place = Place { shared: Arc::clone(&self.shared), number };
        let mut late = pin!(sleep_until(self.deadline));
        let value = poll_fn(|context| {
            if let Poll::Ready(turn) = place.shared.line().poll(number, context.waker()) {
                return Poll::Ready(turn);
            }
            Pin::new(&mut late).poll(context).map(|()| Err(Unready::Late))
        })
        .await?;
        Ok((value, Some(place)))
    }
}

impl<T, E> Seat<T, E> {
    /// Waits no more: it leaves its room to others.
    fn stand(&mut self) {
        if std::mem::take(&mut self.counted) {
            self.shared.line().stand(self.bytes);
        }
    }
}

impl<T, E> Drop for Seat<T, E> {
    fn drop(&mut self) {
        self.stand();
    }
}

/// A place in the line, left when it is dropped.
struct Place<T, E> {
    shared: Arc<DeferredState<T, E>>,
    number: u64,
}

impl<T, E> Drop for Place<T, E> {
    fn drop(&mut self) {
        self.shared.line().leave(self.number);
    }
}
