//! The store: what it keeps, what it promises, and the three that keep it.
mod books;
mod clock;
mod engine;
mod location;
mod memory;
mod open;
mod redis;
mod refusal;
mod request;
pub mod session;
mod sqlite;
mod wire;

use std::{future::Future, pin::Pin, time::Duration};

pub use books::{Books, Found, QueueRecount, Recounted};
pub use clock::Clock;
pub use location::{InvalidUrl, StoreUrl};
pub use memory::MemoryStore;
pub use open::open;
pub use redis::{RedisOptions, RedisStore};
pub use refusal::{Refusal, StoreError};
pub use request::*;
pub use sqlite::{SqliteOptions, SqliteStore};

use crate::message::Name;

/// A future a store hands out: one a call, never one a message.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The longest a single [`Store::wait`] lasts, so that a lost wake-up costs no more.
pub const MAX_WAIT: Duration = Duration::from_secs(1);

/// A store; see the module for what every operation means.
pub trait Store: Send + Sync {
    /// Carries out one request.
    ///
    /// # Errors
    /// [`StoreError::Refused`] is an answer; after any other error it is unknown whether the call took effect, and
    /// repeating it is safe.
    ///
    /// # Cancel safety
    /// Dropping the future does not undo the call: it may take effect. Repeat it to learn its answer.
    fn call(&self, request: Request) -> Reply<'_, Result<Answer, StoreError>>;

    /// Returns when one of the queues may have messages, and after `limit` (at most 1 s) in any case.
    ///
    /// # Cancel safety
    /// Nothing is lost but the wake-up, which costs at most 1 s.
    fn wait(&self, queues: Vec<Name>, limit: Duration) -> Reply<'_, ()>;
}

/// Carries out an operation and gives its own kind of answer.
///
/// # Errors
/// As [`Store::call`].
pub async fn ask<O: Operation>(store: &dyn Store, operation: O) -> Result<O::Answer, StoreError> {
    let answer = store.call(operation.request()).await?;
    O::answer(answer).ok_or_else(|| StoreError::Damaged("the store answered another question".to_owned()))
}
