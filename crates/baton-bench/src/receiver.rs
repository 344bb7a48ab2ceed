//! The children of the latency measurement: each says how long ago what it receives was sent.

use std::{
    io::Write as _,
    sync::{Arc, Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use baton::{
    Context, Done, Shutdown,
    admin::{Admin, obey_leash},
    settings::Settings,
};
use clap::ValueEnum;

use super::{
    Tell,
    bare::{self, Bare},
    target::{connect, redis_url},
};
use crate::failure::Failure;

/// The queue and the list of the measurement.
pub(super) const LATENCY: &str = "latency";
/// The queues of a worker that has many.
pub(super) const QUEUES: u64 = 1_000;
/// Seconds a blocking read lasts, so that the leash is looked at.
const READ_SECONDS: f64 = 1.0;

/// What receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Receiver {
    /// A handler that tells at once
    Worker,
    /// A handler that tells everything at the end, so that telling does not slow it
    Load,
    /// A handler for each of a thousand queues that tells at once
    Queues,
    /// BLPOP
    Blpop,
}

impl Receiver {
    /// Receives, until its leash says that it is over.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn run(self, settings: &Settings, ear: &Tell) -> Result<(), Failure> {
        let shutdown = Shutdown::new();
        if let Err(error) = obey_leash(&shutdown) {
            return Err(Failure::new(format!("cannot start a thread: {error}"), "free some threads"));
        }
        // Opened for BLPOP too: it prepares for TLS.
        let admin = connect(settings, None, ear)?;
        match self {
            Self::Worker => work(&admin, 1, shutdown, tell).await?,
            Self::Queues => work(&admin, QUEUES, shutdown, tell).await?,
            Self::Load => {
                let kept: Arc<Mutex<Vec<u64>>> = Arc::default();
                let keep = {
                    let kept = kept.clone();
                    move |nanos| kept.lock().unwrap_or_else(PoisonError::into_inner).push(nanos)
                };
                work(&admin, 1, shutdown, keep).await?;
                kept.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().for_each(tell);
            }
            Self::Blpop => {
                let Some(url) = redis_url(settings) else {
                    return Err(Failure::usage("only Redis has BLPOP", "name a Redis with --store"));
                };
                tokio::select! {
                    popped = blpop(Bare::open(url, &settings.fleet.value).await?) => popped?,
                    () = shutdown.any() => {}
                }
            }
        }
        Ok(())
    }
}

/// Nanoseconds since 1970: the one clock that two processes share.
pub(super) fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Nobody reads what cannot be written.
fn tell(nanos: u64) {
    writeln!(std::io::stdout().lock(), "{nanos}").ok();
}

/// The name of a queue by its number; the first is that of the measurement with one queue.
pub(super) fn queue_name(number: u64) -> String {
    match number % QUEUES {
        0 => LATENCY.to_owned(),
        number => format!("{LATENCY}-{number}"),
    }
}

async fn work(
    admin: &Admin, queues: u64, shutdown: Shutdown, took: impl Fn(u64) + Send + Sync + 'static,
) -> Result<(), Failure> {
    let took = Arc::new(took);
    let node = (0..queues).fold(admin.fleet().node(), |node, number| {
        let took = took.clone();
        node.handler(&queue_name(number), move |sent_ns: u64, _: Context| {
            took(now_ns().saturating_sub(sent_ns));
            std::future::ready(Ok(Done::default()))
        })
    });
    node.run(shutdown).await.map_err(|error| Failure::new(error.to_string(), "run the command again"))
}

async fn blpop(bare: Bare) -> Result<(), Failure> {
    let (mut connection, list) = (bare.connect().await?, bare.list(LATENCY));
    // The first line says that it is ready.
    tell(0);
    loop {
        let popped = redis::cmd("BLPOP").arg(&list).arg(READ_SECONDS).query_async(&mut connection).await;
        let popped: Option<(String, u64)> = popped.map_err(|error| bare::failed(&error))?;
        if let Some((_, sent_ns)) = popped {
            tell(now_ns().saturating_sub(sent_ns));
        }
    }
}
