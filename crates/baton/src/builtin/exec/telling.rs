//! The events of a child on their way to the followers of its message's call.
//!
//! A child goes on while its events are being stored, at most [`AHEAD`] of them; those that wait are sent together. So the
//! store and the fastest follower hold it up, and not each round trip. All events are stored, in their order, before the
//! answer counts. An event that cannot be stored fails the message.

use std::borrow::Cow;

use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::{
    Context, EmitError,
    pool::{Event, PoolError},
};

/// Events of a child that may wait to be stored.
const AHEAD: usize = 512;

/// An event of a child.
struct Told {
    name: String,
    key: Option<String>,
    data: Option<Box<RawValue>>,
}

/// Takes the events of a child.
pub(super) struct Ear(mpsc::Sender<Told>);

/// Stores the events.
pub(super) struct Mouth {
    context: Context,
    told: mpsc::Receiver<Told>,
}

/// Both ends of the channel from a child to the call of its message.
pub(super) fn way(context: &Context) -> (Ear, Mouth) {
    let (ear, told) = mpsc::channel(AHEAD);
    (Ear(ear), Mouth { context: context.clone(), told })
}

impl Ear {
    /// Takes an event; waits while too many wait to be stored.
    pub(super) fn hear(&self, event: &Event<'_>) -> impl Future<Output = Result<(), PoolError>> + Send + use<> {
        let (name, key) = (event.name.clone().into_owned(), event.key.clone().map(Cow::into_owned));
        // It was checked to be JSON before.
        let data = event.data.and_then(|data| RawValue::from_string(data.to_owned()).ok());
        let ear = self.0.clone();
        async move {
            let lost = |lost: mpsc::error::SendError<Told>| PoolError::Unemitted {
                event: lost.0.name,
                why: "its message has ended".to_owned(),
            };
            ear.send(Told { name, key, data }).await.map_err(lost)
        }
    }
}

impl Mouth {
    /// Stores all events until the ear is dropped.
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
                    told.map_err(|why| PoolError::Unemitted { event: name, why: why.to_string() })
                }
            });
            futures_util::future::try_join_all(telling).await?;
        }
        Ok(())
    }
}
