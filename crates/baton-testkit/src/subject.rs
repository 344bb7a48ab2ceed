//! A store under test, with its time in the test's hands.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use baton::{
    Name,
    store::{Clock, MemoryStore, RedisOptions, RedisStore, SqliteOptions, SqliteStore, Store},
};
use redis::{AsyncCommands as _, aio::MultiplexedConnection};

use crate::server::RedisServer;

/// Where every test begins.
pub const START_MS: u64 = 1_700_000_000_000;

/// What sets the time a store sees.
enum Hands {
    Clock(Clock),
    Key(Box<MultiplexedConnection>, String),
}

/// Where a store's data lies, for whoever damages it.
enum Behind {
    Memory(MemoryStore),
    File(PathBuf),
    Server(Box<MultiplexedConnection>, Name),
}

/// A store and its time.
pub struct Subject {
    /// The store.
    pub store: Arc<dyn Store>,
    hands: Hands,
    behind: Behind,
    now: u64,
    has_lost: bool,
}

impl Subject {
    /// The model.
    #[must_use]
    pub fn memory() -> Self {
        let clock = Clock::manual(START_MS);
        let store = MemoryStore::new(clock.clone());
        let behind = Behind::Memory(store.clone());
        Self { store: Arc::new(store), hands: Hands::Clock(clock), behind, now: START_MS, has_lost: false }
    }

    /// A fleet in a SQLite file.
    #[must_use]
    pub fn sqlite(file: &Path, fleet: Name) -> Self {
        let clock = Clock::manual(START_MS);
        let options = SqliteOptions { clock: clock.clone(), create: true };
        let store = Arc::new(SqliteStore::open(file, fleet, options).expect("a path"));
        Self {
            store,
            hands: Hands::Clock(clock),
            behind: Behind::File(file.to_owned()),
            now: START_MS,
            has_lost: false,
        }
    }

    /// A fleet in a Redis server.
    pub async fn redis(server: &RedisServer, fleet: Name) -> Self {
        let options = RedisOptions { test_clock: true, ..RedisOptions::default() };
        let store = RedisStore::open(&server.url(), fleet.clone(), options).expect("a URL");
        let client = redis::Client::open(server.url()).expect("a URL");
        let connection = client.get_multiplexed_async_connection().await.expect("a connection");
        let behind = Behind::Server(Box::new(connection.clone()), fleet);
        let hands = Hands::Key(Box::new(connection), store.test_clock_key());
        let mut subject = Self { store: Arc::new(store), hands, behind, now: START_MS, has_lost: false };
        subject.set_time(START_MS).await;
        subject
    }

    /// The time the store sees.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// Sets it, forwards or backwards.
    pub async fn set_time(&mut self, ms: u64) {
        self.now = ms;
        match &mut self.hands {
            Hands::Clock(clock) => clock.set(ms),
            Hands::Key(connection, key) => connection.set(&*key, ms).await.expect("the clock can be set"),
        }
    }

    /// Loses the parcel that begins at this id of a queue, as only damage could.
    pub async fn lose_parcel(&mut self, queue: &Name, first: u64) {
        self.has_lost = true;
        match &mut self.behind {
            Behind::Memory(store) => store.lose_parcel(queue, first),
            Behind::File(file) => {
                let file = rusqlite::Connection::open(file).expect("the file of the store");
                file.busy_timeout(Duration::from_secs(10)).expect("a timeout");
                let sql = "DELETE FROM parcels WHERE own = 0 AND first = ?1 \
                           AND queue = (SELECT queue FROM queues WHERE name = ?2)";
                let lost = file.execute(sql, rusqlite::params![first.cast_signed(), queue.as_str()]);
                assert_eq!(lost.expect("the parcel can be lost"), 1);
            }
            Behind::Server(connection, fleet) => {
                let key = format!("{{{fleet}/0}}:b:{queue}:{first}");
                let lost: u64 = connection.del(key).await.expect("the parcel can be lost");
                assert_eq!(lost, 1);
            }
        }
    }

    /// Whether a parcel was lost: how many bytes it had, nobody knows then.
    #[must_use]
    pub const fn has_lost(&self) -> bool {
        self.has_lost
    }

    /// How many bytes are stored of the parcel that begins at this id of a queue, and in Redis what they take.
    pub async fn stored_bytes(&mut self, queue: &Name, first: u64) -> u64 {
        match &mut self.behind {
            Behind::Memory(store) => store.parcel_bytes(queue, first),
            Behind::File(file) => {
                let file = rusqlite::Connection::open(file).expect("the file of the store");
                let sql = "SELECT length(data) FROM parcels WHERE own = 0 AND first = ?1 \
                           AND queue = (SELECT queue FROM queues WHERE name = ?2)";
                let bytes: rusqlite::Result<i64> =
                    file.query_row(sql, rusqlite::params![first.cast_signed(), queue.as_str()], |row| row.get(0));
                bytes.map_or(0, i64::cast_unsigned)
            }
            Behind::Server(connection, fleet) => {
                let mut bytes = 0;
                for kind in ["b", "p"] {
                    let mut usage = redis::cmd("MEMORY");
                    usage.arg("USAGE").arg(format!("{{{fleet}/0}}:{kind}:{queue}:{first}"));
                    let taken: Option<u64> = usage.query_async(&mut **connection).await.expect("an answer");
                    bytes += taken.unwrap_or(0);
                }
                bytes
            }
        }
    }

    /// Lets time pass.
    pub async fn pass(&mut self, ms: u64) {
        if ms > 0 {
            self.set_time(self.now + ms).await;
        }
    }
}

/// A fleet name for tests.
#[must_use]
pub fn test_fleet() -> Name {
    numbered_fleet(0)
}

/// One of many fleet names for tests that share a server or a file.
#[must_use]
pub fn numbered_fleet(number: u64) -> Name {
    Name::new(&format!("test-{number}")).expect("a good name")
}
