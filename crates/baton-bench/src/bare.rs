//! Redis without Baton: the same bytes by bare commands, the limit that the store's figures are held against.
//!
//! Push is `RPUSH` of parcels. Process is `LMOVE` from the list to a list of what was taken, and after the answer
//! `LTRIM` of that list from its head: one for all that an answer brought, without a body travelling twice. Nothing is
//! counted, nothing is checked, and nobody would find out what a dead worker held. Both keep [`DEPTH`] parcels under
//! way, as the store path does.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use baton::{Name, store::message::Parcel};
use redis::{
    AsyncConnectionConfig, Client, ConnectionInfo, IntoConnectionInfo as _, RedisError, aio::MultiplexedConnection,
    io::tcp::TcpSettings,
};
use tokio::{task::JoinSet, time::Instant};

use super::{bulk::DEPTH, lpush::LPUSH, receiver::LATENCY, singles::SINGLES};
use crate::failure::Failure;

/// The list that parcels go through.
const PARCELS: &str = "parcels";
/// Pipelines under way at once: as many as a session has submits under way.
const PIPELINES: usize = 4;
/// Commands in a pipeline.
const COMMANDS: usize = DEPTH / PIPELINES;
/// How long a consumer that found nothing waits.
const EMPTY_PAUSE: Duration = Duration::from_millis(1);

/// A Redis server and where its bare lists are.
#[derive(Clone)]
pub(super) struct Bare {
    client: Client,
    /// For what is not measured.
    control: MultiplexedConnection,
    root: String,
}

impl Bare {
    pub(super) async fn open(url: &str, fleet: &Name) -> Result<Self, Failure> {
        let info: ConnectionInfo = url.into_connection_info().map_err(|error| failed(&error))?;
        let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let client = Client::open(info).map_err(|error| failed(&error))?;
        Ok(Self { control: connect(&client).await?, client, root: format!("{{{fleet}}}:bare") })
    }

    /// A connection of its own, which waits for as long as an answer takes.
    pub(super) async fn connect(&self) -> Result<MultiplexedConnection, Failure> {
        connect(&self.client).await
    }

    /// The name of a list.
    pub(super) fn list(&self, name: &str) -> String {
        format!("{}:{name}", self.root)
    }

    /// A number of one section of what the server says of itself.
    pub(super) async fn info(&self, section: &str, fields: &[&str]) -> Result<f64, Failure> {
        let mut connection = self.control.clone();
        let text: String =
            redis::cmd("INFO").arg(section).query_async(&mut connection).await.map_err(|error| failed(&error))?;
        let value = |field: &&str| {
            let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
            line.and_then(|value| value.trim().parse::<f64>().ok()).unwrap_or(0.0)
        };
        Ok(fields.iter().map(value).sum())
    }

    /// Removes lists by their keys.
    pub(super) async fn remove(&self, keys: &[String]) -> Result<(), Failure> {
        let mut connection = self.control.clone();
        redis::cmd("UNLINK").arg(keys).query_async(&mut connection).await.map_err(|error| failed(&error))
    }

    /// How often the server was asked these commands.
    pub(super) async fn calls(&self, commands: &[&str]) -> Result<f64, Failure> {
        let mut connection = self.control.clone();
        let text: String = redis::cmd("INFO")
            .arg("commandstats")
            .query_async(&mut connection)
            .await
            .map_err(|error| failed(&error))?;
        let calls = |command: &&str| {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("cmdstat_")?.strip_prefix(command)?.strip_prefix(":calls="));
            line.and_then(|rest| rest.split(',').next()?.parse::<f64>().ok()).unwrap_or(0.0)
        };
        Ok(commands.iter().map(calls).sum())
    }

    /// Removes all lists that a measurement which was broken off may have left.
    pub(super) async fn clear(&self) -> Result<(), Failure> {
        let taken = (0..PIPELINES).map(|pipeline| self.taken(pipeline));
        let named = [PARCELS, SINGLES, LATENCY, LPUSH].map(|name| self.list(name));
        self.remove(&taken.chain(named).collect::<Vec<_>>()).await
    }

    /// What one pipeline of processing has taken.
    fn taken(&self, pipeline: usize) -> String {
        self.list(&format!("taken:{pipeline}"))
    }

    /// Pushes parcels; how long it took.
    pub(super) async fn push(&self, parcels: impl Iterator<Item = Parcel>) -> Result<Duration, Failure> {
        let (connection, list) = (self.connect().await?, self.list(PARCELS));
        let began = Instant::now();
        let (mut under_way, mut parcels) = (JoinSet::new(), parcels.peekable());
        while parcels.peek().is_some() {
            let mut pipeline = redis::pipe();
            for parcel in parcels.by_ref().take(COMMANDS) {
                pipeline.cmd("RPUSH").arg(&list).arg(&parcel.bytes()[..]).ignore();
            }
            if under_way.len() >= PIPELINES {
                answered(under_way.join_next().await)?;
            }
            let mut connection = connection.clone();
            under_way.spawn(async move { pipeline.query_async::<()>(&mut connection).await });
        }
        while let Some(answer) = under_way.join_next().await {
            answered(Some(answer))?;
        }
        Ok(began.elapsed())
    }

    /// Takes so many parcels and deletes them; how long it took.
    pub(super) async fn process(&self, parcels: u64) -> Result<Duration, Failure> {
        let connection = self.connect().await?;
        let began = Instant::now();
        let (taken, mut pipelines) = (Arc::new(AtomicU64::new(0)), JoinSet::new());
        for pipeline in 0..PIPELINES {
            let (list, mine) = (self.list(PARCELS), self.taken(pipeline));
            pipelines.spawn(take(connection.clone(), list, mine, taken.clone(), parcels));
        }
        while let Some(answer) = pipelines.join_next().await {
            answered(Some(answer))?;
        }
        Ok(began.elapsed())
    }
}

async fn connect(client: &Client) -> Result<MultiplexedConnection, Failure> {
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    client.get_multiplexed_async_connection_with_config(&config).await.map_err(|error| failed(&error))
}

/// Takes and deletes until all parcels are taken by somebody.
async fn take(
    mut connection: MultiplexedConnection, list: String, mine: String, taken: Arc<AtomicU64>, parcels: u64,
) -> Result<(), RedisError> {
    let mut held = 0;
    loop {
        let mut pipeline = redis::pipe();
        if held > 0 {
            pipeline.cmd("LTRIM").arg(&mine).arg(held).arg(-1).ignore();
        }
        let ended = taken.load(Relaxed) >= parcels;
        if ended && held == 0 {
            return Ok(());
        }
        for _ in 0..if ended { 0 } else { COMMANDS } {
            pipeline.cmd("LMOVE").arg(&list).arg(&mine).arg("LEFT").arg("RIGHT");
        }
        let moved: Vec<Option<Vec<u8>>> = pipeline.query_async(&mut connection).await?;
        held = moved.iter().flatten().count();
        taken.fetch_add(held as u64, Relaxed);
        if held == 0 && taken.load(Relaxed) < parcels {
            tokio::time::sleep(EMPTY_PAUSE).await;
        }
    }
}

fn answered(answer: Option<Result<Result<(), RedisError>, tokio::task::JoinError>>) -> Result<(), Failure> {
    match answer {
        Some(Ok(Err(error))) => Err(failed(&error)),
        Some(Err(error)) => Err(Failure::new(format!("a fault in baton itself: {error}"), "report this")),
        Some(Ok(Ok(()))) | None => Ok(()),
    }
}

/// A failure of a bare command.
pub(super) fn failed(error: &RedisError) -> Failure {
    Failure::new(format!("a bare command failed: {error}"), "see that the server is up and has room")
}
