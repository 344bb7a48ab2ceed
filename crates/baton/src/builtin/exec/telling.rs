//! What a child tells before its end, on its way to those who follow the call of its message.
//!
//! A child goes on while what it told is being stored, [`AHEAD`] events at most; those that wait go together. So it is held up
//! by the store and by the fastest follower, and not by each round trip. All it told is stored, in its order, before its
//! answer counts; what cannot be stored fails the message.

use std::borrow::Cow;

use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::{
    Context, EmitError,
    pool::{Event, PoolError},
};

/// Events that a child may be ahead of what is stored.
const AHEAD: usize = 512;

/// An event of a child.
struct Told {
    name: String,
    key: Option<String>,
    data: Option<Box<RawValue>>,
}

/// Takes what a child tells.
pub(super) struct Ear(mpsc::Sender<Told>);

/// Where it goes.
pub(super) struct Mouth {
    context: Context,
    told: mpsc::Receiver<Told>,
}

/// Both ends of the way to the call of a message.
pub(super) fn way(context: &Context) -> (Ear, Mouth) {
    let (ear, told) = mpsc::channel(AHEAD);
    (Ear(ear), Mouth { context: context.clone(), told })
}

impl Ear {
    /// Takes an event; waits while too many are on their way.
    pub(super) fn hear(&self, event: &Event<'_>) -> impl Future<Output = Result<(), PoolError>> + Send + use<> {
        let (name, key) = (event.name.clone().into_owned(), event.key.clone().map(Cow::into_owned));
        // It was read as JSON before.
        let data = event.data.and_then(|data| RawValue::from_string(data.to_owned()).ok());
        let ear = self.0.clone();
        async move {
            let lost = |lost: mpsc::error::SendError<Told>| PoolError::Untold {
                event: lost.0.name,
                why: "nobody tells it any more".to_owned(),
            };
            ear.send(Told { name, key, data }).await.map_err(lost)
        }
    }
}

impl Mouth {
    /// Tells all that is heard until the ear is gone.
    pub(super) async fn tell(mut self) -> Result<(), PoolError> {
        let mut batch = Vec::new();
        while self.told.recv_many(&mut batch, AHEAD).await > 0 {
            let telling = batch.drain(..).map(|Told { name, key, data }| {
                let context = &self.context;
                async move {
                    let told: Result<(), EmitError> = match key {
                        Some(key) => context.emit_keyed(&key, &name, &data).await,
                        None => context.emit(&name, &data).await,
                    };
                    told.map_err(|why| PoolError::Untold { event: name, why: why.to_string() })
                }
            });
            futures_util::future::try_join_all(telling).await?;
        }
        Ok(())
    }
}
