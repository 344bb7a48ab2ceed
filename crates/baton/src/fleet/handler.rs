//! Handlers: what is done with a message, and how that can end.

use std::{
    any::Any,
    fmt,
    future::ready,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::Either;
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::watch;
use tokio_util::sync::ReusableBoxFuture;

use super::{
    emitting::{CallScope, EmitError},
    permits::Permit,
};
use crate::{
    message::{Body, CallId, Calling, Key, MessageId, Name, Parcel, Submission},
    panics,
};

/// A message as its handler gets it.
#[derive(Debug, Clone)]
pub struct Message {
    /// Its queue.
    pub queue: Name,
    /// Its id in the queue.
    pub id: MessageId,
    /// Store time of its push, in milliseconds.
    pub born: u64,
    /// Attempts that ended with an error before this one.
    pub attempts: u32,
    /// Sessions that died with it since its last attempt that ended: [`Context::crashes`].
    pub crashes: u32,
    /// JSON.
    pub body: Bytes,
}

impl Message {
    /// What to make effects outside the store idempotent by: the same for every execution of this message, and of no
    /// other, also if an id comes back after the store was rolled back.
    #[must_use]
    pub fn key(&self) -> String {
        key(&self.queue, self.id, self.born)
    }
}

fn key(queue: &Name, id: MessageId, born: u64) -> String {
    format!("{queue}/{id}@{born}")
}

/// What a handler has at hand beside its message.
#[derive(Debug, Clone)]
pub struct Context {
    scope: Arc<Scope>,
    id: MessageId,
    born: u64,
    attempt: u32,
    crashes: u32,
    /// What few messages have.
    rare: Option<Arc<Rare>>,
}

/// What only messages have that were tried before, or are of a call: one field, so that all others pay for one.
#[derive(Debug)]
struct Rare {
    last_error: Option<String>,
    call: Option<Arc<CallScope>>,
}

/// What all messages of one worker have in common.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) queue: Name,
    /// Whether their work is of no more use.
    pub(super) over: watch::Sender<bool>,
    /// Whether their handler waits in its thread: it may be ready at once, and must not be run inline for that.
    waits: AtomicBool,
}

impl Scope {
    pub(super) fn new(queue: Name) -> Self {
        Self { queue, over: watch::Sender::new(false), waits: AtomicBool::new(false) }
    }

    pub(super) fn waits(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }
}

impl Context {
    #[expect(clippy::inline_always, reason = "it is made in place, per message")]
    #[inline(always)]
    pub(super) fn new(
        scope: &Arc<Scope>, message: &Message, last_error: Option<String>, call: Option<Arc<CallScope>>,
    ) -> Self {
        let attempt = message.attempts + 1;
        let rare = (last_error.is_some() || call.is_some()).then(|| Arc::new(Rare { last_error, call }));
        let crashes = message.crashes;
        Self { scope: Arc::clone(scope), id: message.id, born: message.born, attempt, crashes, rare }
    }

    /// See [`Message::key`].
    #[must_use]
    pub fn key(&self) -> String {
        key(&self.scope.queue, self.id, self.born)
    }

    /// Which attempt this is, from 1. Only attempts that ended count: one that died with its node is among the
    /// [`Context::crashes`], and the next one has the same number.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// How many nodes died while they had this message, begun or not, since its last attempt that ended. With the fourth
    /// it goes to the errors. So a first execution is one whose `attempt()` is 1 and whose `crashes()` is 0.
    #[must_use]
    pub const fn crashes(&self) -> u32 {
        self.crashes
    }

    /// Why the attempt before this one failed, at most 1 KiB of it; nothing in a first attempt, which the one
    /// after a requeue is too.
    #[must_use]
    pub fn last_error(&self) -> Option<&str> {
        self.rare.as_deref()?.last_error.as_deref()
    }

    /// The call that this message is of, if it was pushed as one ([`Queue::call`](super::Queue::call)) or has joined one.
    #[must_use]
    pub fn call(&self) -> Option<&CallId> {
        self.call_scope().map(|call| &call.call)
    }

    /// Tells an event to those who follow the call that this message is of; without one it tells nobody, and is well. It
    /// returns once the event is stored: within the log of the call, it waits for the fastest follower, for 30 s at most, before
    /// what nobody has read goes. If the message is run again, those who follow are told `restart`, and that
    /// what it told before is void.
    ///
    /// # Errors
    /// [`EmitError`]. A failed emit is no reason to go on: the next one fails too.
    ///
    /// # Cancel safety
    /// An event that was begun may be told, and goes before later ones if it is.
    pub async fn emit<D: Serialize + ?Sized>(&self, event: &str, data: &D) -> Result<(), EmitError> {
        self.tell(None, event, data).await
    }

    /// As [`Context::emit`], once for the whole call: an event of this key that any attempt, or any other message of the
    /// call, has told is not told again, and no `restart` makes it void.
    ///
    /// # Errors
    /// As [`Context::emit`]; [`EmitError::KeysFull`] once the keys of the call have 16 MiB.
    ///
    /// # Cancel safety
    /// As [`Context::emit`].
    pub async fn emit_keyed<D: Serialize + ?Sized>(&self, key: &str, event: &str, data: &D) -> Result<(), EmitError> {
        self.tell(Some(Key::new(key)?), event, data).await
    }

    fn call_scope(&self) -> Option<&CallScope> {
        self.rare.as_deref()?.call.as_deref()
    }

    async fn tell<D: Serialize + ?Sized>(&self, key: Option<Key>, event: &str, data: &D) -> Result<(), EmitError> {
        let Some(call) = self.call_scope() else { return Ok(()) };
        let data = serde_json::to_vec(data).map_err(|error| EmitError::Json(error.to_string()))?;
        call.emit(key, event, &data).await
    }

    /// Returns when the work is of no more use: its call was cancelled, the node stops at once, or its session is over and
    /// others have the message. The handler's future is dropped then too; this is for work it has handed elsewhere.
    pub async fn cancelled(&self) {
        let mut over = self.scope.over.subscribe();
        // The channel lives as long as this.
        let over = over.wait_for(|over| *over);
        match self.call_scope() {
            None => drop(over.await),
            Some(call) => {
                tokio::select! {
                    biased;
                    _ = over => {}
                    () = call.cancelled() => {}
                }
            }
        }
    }

    /// Says that the handler may wait in the thread that polls it: others go on meanwhile.
    pub(crate) fn waits_in_thread(&self) {
        self.scope.waits.store(true, Ordering::Relaxed);
    }

    /// Whether [`Context::cancelled`] would return at once: for functions that block, which nobody can break off.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.scope.over.borrow() || self.call_scope().is_some_and(CallScope::is_cancelled)
    }
}

/// A finished message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    pub(super) result: Option<Bytes>,
    pub(super) follow_ups: Vec<Submission>,
}

impl Done {
    /// Whether it leaves nothing behind.
    pub(super) const fn is_plain(&self) -> bool {
        self.result.is_none() && self.follow_ups.is_empty()
    }

    /// Finished, with a result for whoever asks by [`Queue::result`](super::Queue::result): it is kept for an hour, if it
    /// has at most 1 MiB.
    ///
    /// # Errors
    /// If the result cannot be written as JSON.
    pub fn with<R: Serialize + ?Sized>(result: &R) -> Result<Self, serde_json::Error> {
        Ok(Self { result: Some(serde_json::to_vec(result)?.into()), follow_ups: Vec::new() })
    }

    /// A further message, pushed if and only if this one is counted as done.
    ///
    /// # Errors
    /// If the name is not usable or the body is too large or cannot be written as JSON.
    pub fn then<B: Serialize + ?Sized>(mut self, queue: &str, body: &B) -> Result<Self, Failure> {
        let parcel = Parcel::single(Body::new(&serde_json::to_vec(body)?)?);
        self.follow_ups.push(Submission { queue: Name::new(queue)?, parcel, key: None, call: None });
        Ok(self)
    }

    /// As [`Done::then`], and the further message joins the call that this one is of: the call ends with the last of its
    /// messages, and what that tells are events of the call. Without a call it is a message like any other.
    ///
    /// # Errors
    /// As [`Done::then`].
    pub fn then_in_call<B: Serialize + ?Sized>(self, queue: &str, body: &B) -> Result<Self, Failure> {
        let mut done = self.then(queue, body)?;
        if let Some(last) = done.follow_ups.last_mut() {
            last.call = Some(Calling::Joins);
        }
        Ok(done)
    }
}

/// A message that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub(super) error: String,
    pub(super) retry: Retry,
}

/// What becomes of a failed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// As its queue says.
    ByPolicy,
    /// Again after this time, more often than the queue says if need be.
    After(Duration),
    /// Again after the pause that the queue has for it, more often than the queue says if need be.
    Later,
    /// To the errors, whatever the queue says.
    Never,
}

impl Failure {
    /// Failed; tried again if its queue has retries left, else to the errors.
    pub fn new(error: impl fmt::Display) -> Self {
        Self { error: error.to_string(), retry: Retry::ByPolicy }
    }

    /// Failed for good.
    pub fn fatal(error: impl fmt::Display) -> Self {
        Self { retry: Retry::Never, ..Self::new(error) }
    }

    /// Failed for a reason that will pass: like [`Failure::retry_after`], after the backoff of the queue.
    pub fn temporary(error: impl fmt::Display) -> Self {
        Self { retry: Retry::Later, ..Self::new(error) }
    }

    /// Failed, to be tried again after a while. It counts as an attempt like any other: after ten of them, or as many as
    /// the queue has retries if these are more, the message goes to the errors. The next attempt finds the text in
    /// [`Context::last_error`].
    pub fn retry_after(after: Duration, error: impl fmt::Display) -> Self {
        Self { retry: Retry::After(after), ..Self::new(error) }
    }
}

/// Its text with the causes below it, as "a: b: c"; one that the text before already ends with is not said again.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut below = error.source();
        while let Some(cause) = below {
            let told = cause.to_string();
            if !text.ends_with(&told) {
                text = format!("{text}: {told}");
            }
            below = cause.source();
        }
        Self::new(text)
    }
}

/// What runs messages of a queue, where a function over bodies ([`Node::handler`](super::Node::handler)) is not enough.
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
/// use baton::{Context, Done, Failure, Handler, Message};
///
/// struct Bytes(Arc<AtomicUsize>);
///
/// impl Handler for Bytes {
///     fn handle(&self, message: Message, _: Context) -> impl Future<Output = Result<Done, Failure>> + Send + 'static {
///         let seen = self.0.clone(); // the future does not borrow from the handler
///         async move {
///             seen.fetch_add(message.body.len(), Ordering::Relaxed);
///             Ok(Done::default())
///         }
///     }
/// }
/// ```
pub trait Handler: Send + Sync + 'static {
    /// Runs one message. Where a queue's futures are ready at once and quick, they are polled inline, one after
    /// the other; all others are tasks of the node's runtime, on all its threads.
    fn handle(
        &self, message: Message, context: Context,
    ) -> impl Future<Output = Result<Done, Failure>> + Send + 'static;
}

/// The work on one message; its memory is used again for the next.
pub(super) type Work = ReusableBoxFuture<'static, Result<Done, Failure>>;

/// A handler of any kind.
pub(super) trait AnyHandler: Send + Sync {
    /// Begins to work on a message, in the memory of earlier work if there is some. What outlives the work keeps the
    /// permit.
    fn begin(&self, spare: Option<Work>, message: Message, context: Context, permit: &Arc<Permit>) -> Work;
}

impl<H: Handler> AnyHandler for H {
    fn begin(&self, spare: Option<Work>, message: Message, context: Context, _: &Arc<Permit>) -> Work {
        placed(spare, self.handle(message, context))
    }
}

/// The future, in the memory of earlier work if there is some.
pub(super) fn placed(
    spare: Option<Work>, future: impl Future<Output = Result<Done, Failure>> + Send + 'static,
) -> Work {
    match spare {
        Some(mut work) => {
            // The new one is in its place also if the old one panics as it goes: that message has its outcome.
            panics::quietly(|| work.set(future));
            work
        }
        None => Work::new(future),
    }
}

/// What becomes of a message whose body is not of the handler's type.
pub(super) fn not_taken(error: &serde_json::Error) -> Failure {
    Failure::fatal(format_args!("the body is not what this handler takes: {error}"))
}

/// What becomes of a message whose handler panicked.
pub(super) fn panicked(panic: Box<dyn Any + Send>) -> Failure {
    Failure::new(format_args!("the handler panicked: {}", panics::text(panic)))
}

/// A function over bodies of type `T`.
pub(super) struct Typed<T, F> {
    function: F,
    body: PhantomData<fn(T)>,
}

impl<T, F> Typed<T, F> {
    pub(super) const fn new(function: F) -> Self {
        Self { function, body: PhantomData }
    }
}

impl<T, F, Fut> Handler for Typed<T, F>
where
    T: DeserializeOwned + 'static,
    F: Fn(T, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Done, Failure>> + Send + 'static,
{
    fn handle(
        &self, message: Message, context: Context,
    ) -> impl Future<Output = Result<Done, Failure>> + Send + 'static {
        match serde_json::from_slice(&message.body) {
            Ok(body) => Either::Left((self.function)(body, context)),
            Err(error) => Either::Right(ready(Err(not_taken(&error)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<Layer>>,
    }

    fn layers(texts: &[&'static str]) -> Layer {
        let layer = |source, text: &&'static str| Some(Box::new(Layer { text, source }));
        *texts.iter().rfold(None, layer).unwrap()
    }

    #[test]
    fn a_failure_keeps_the_causes_of_its_error_and_says_none_twice() {
        assert_eq!(Failure::from(layers(&["a", "b", "c"])).error, "a: b: c");
        assert_eq!(Failure::from(layers(&["a: b", "b", "c"])).error, "a: b: c");
        assert_eq!(Failure::from(layers(&["a"])).error, "a");
    }
}
