//! A computation of the user's: with a timeout, and with its panics as errors.

use std::{fmt::Display, future::Future, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;

use super::{CacheError, Value};
use crate::{panics, store::BoxFuture};

/// A computation that was not begun yet.
pub(super) type Compute = Box<dyn FnOnce() -> BoxFuture<'static, Result<Value, Arc<str>>> + Send>;

/// The computation as what every computation holds.
pub(super) fn boxed<F, R, V, E>(compute: F) -> Compute
where
    F: FnOnce() -> R + Send + 'static,
    R: Future<Output = Result<V, E>> + Send + 'static,
    V: Into<Value>,
    E: Display,
{
    Box::new(move || {
        Box::pin(async move {
            let computed = compute().await;
            computed.map(Into::into).map_err(|error| Arc::from(error.to_string()))
        })
    })
}

/// Carries it out.
pub(super) async fn run(compute: Compute, timeout: Duration) -> Result<Value, CacheError> {
    let computing = AssertUnwindSafe(async move { compute().await }).catch_unwind();
    match tokio::time::timeout(timeout, computing).await {
        Ok(Ok(Ok(value))) => Ok(value),
        Ok(Ok(Err(error))) => Err(CacheError::Failed(error)),
        Ok(Err(panic)) => Err(CacheError::Panicked(panics::text(panic).into())),
        Err(_) => Err(CacheError::Timeout(timeout)),
    }
}
