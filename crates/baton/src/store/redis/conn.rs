//! The way to the server: connecting, checking that it can be used, and telling one run of it from the next.
//!
//! A connection is checked when it is made and dropped at the first I/O error; the next call makes a new one. What
//! was under way then is answered with [`StoreError::Unreachable`]: whether it took effect is not known, repeating
//! it is safe. Nothing here prints a password.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisError,
    aio::MultiplexedConnection, io::tcp::TcpSettings,
};
use tokio::{io::AsyncReadExt as _, net::TcpStream};
use url::Url;

use super::{
    eviction::Eviction,
    failure::{demoted, full, store_error, was_cut},
};
use crate::{
    drivers,
    store::{Ear, MAX_WAIT, StoreError},
};

/// How long making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long an answer may take: a server that stalls is waited for, not declared dead.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long one listens to a server that cuts connections, and for how many bytes.
const LISTENING: Duration = Duration::from_millis(200);
const LAST_WORDS: u64 = 200;
/// Who an address without a user is.
const DEFAULT_USER: &str = "default";
/// The oldest server with script flags.
const OLDEST: (u32, u32) = (7, 0);

/// Where the server is; makes connections to it.
pub(super) struct Connector {
    client: Client,
    /// The address without user and password, for people.
    server: String,
    /// The user in it, and the keys that this user needs.
    user: String,
    keys: String,
    /// Goes up with each change between primary and replica that was seen: odd while the server is the primary, 0
    /// before it was known to be one.
    reign: AtomicU64,
    /// Who hears what happens to the server.
    ear: Mutex<Option<Ear>>,
    /// Whether a session of this process has joined: then what it needed was there.
    joined: AtomicBool,
    /// The run of the server that was last looked at.
    looked_at: Mutex<Option<Arc<str>>>,
    /// Whether the server kept an append-only file when that was last seen.
    has_log: AtomicBool,
    /// Whether it was switched off, and nobody has looked what that means.
    lost_log: AtomicBool,
    /// Whether the server may drop what is stored.
    pub(super) eviction: Eviction,
}

/// A checked connection, shared by all calls.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) connection: MultiplexedConnection,
    /// Which run of the server it leads to: another one after every restart.
    pub(super) run_id: Arc<str>,
    /// In which reign of the server it was made; see [`Connector::reign`].
    pub(super) reign: u64,
}

impl Connector {
    /// Reads an address; connects to nothing. `keys` is what all keys of the fleet match.
    pub(super) fn new(address: &str, keys: String) -> Result<Self, StoreError> {
        let unfit = |why: &str| StoreError::Unfit(format!("this is not the URL of a Redis server ({why}): correct it"));
        let mut url = Url::parse(address).map_err(|error| unfit(&error.to_string()))?;
        if !matches!(url.scheme(), "redis" | "rediss") {
            return Err(unfit("it begins with neither redis:// nor rediss://"));
        }
        if url.scheme() == "rediss" {
            install_tls()?;
        }
        let info: ConnectionInfo = address.into_connection_info().map_err(|error| unfit(&error.to_string()))?;
        let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let user = info.redis_settings().username().unwrap_or(DEFAULT_USER).to_owned();
        let client = Client::open(info).map_err(|error| unfit(&error.to_string()))?;
        // Both fail only for addresses that cannot have a password.
        if url.set_password(None).is_err() || url.set_username("").is_err() {
            return Err(unfit("it has no host"));
        }
        if url.port().is_none() && url.set_port(Some(6379)).is_err() {
            return Err(unfit("it has no host"));
        }
        let (server, reign) = (url.as_str().trim_end_matches('/').to_owned(), AtomicU64::new(0));
        let (ear, looked_at, joined) = (Mutex::default(), Mutex::default(), AtomicBool::default());
        let (has_log, lost_log, eviction) = (AtomicBool::default(), AtomicBool::default(), Eviction::default());
        Ok(Self { client, server, user, keys, reign, ear, joined, looked_at, has_log, lost_log, eviction })
    }

    /// Has what happens to the server told to `ear` from now on.
    pub(super) fn hear(&self, ear: Ear) {
        *self.ear.lock().unwrap_or_else(PoisonError::into_inner) = Some(ear);
    }

    /// Who hears what happens to the server.
    pub(super) fn ear(&self) -> Option<Ear> {
        self.ear.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes what `INFO` says of how the server keeps what is stored.
    pub(super) fn note(&self, info: &str) {
        self.eviction.note(info, &self.server, self.ear().as_ref());
        self.note_log(info);
    }

    /// Notes whether the server keeps an append-only file, as `INFO` says it.
    fn note_log(&self, info: &str) {
        let has_log = info.lines().any(|line| line.trim_end() == "aof_enabled:1");
        if self.has_log.swap(has_log, Ordering::Relaxed) && !has_log {
            // What was known of this run of the server is so no longer.
            self.looked_at.lock().unwrap_or_else(PoisonError::into_inner).take();
            self.lost_log.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the append-only file was switched off since this was last asked.
    pub(super) fn has_lost_log(&self) -> bool {
        self.lost_log.swap(false, Ordering::Relaxed)
    }

    /// Whether the server keeps an append-only file.
    pub(super) fn has_log(&self) -> bool {
        self.has_log.load(Ordering::Relaxed)
    }

    /// Whether this run of the server was not looked at by the call before.
    pub(super) fn is_first_look(&self, run_id: &Arc<str>) -> bool {
        let looked_at = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner).replace(Arc::clone(run_id));
        looked_at.as_ref() != Some(run_id)
    }

    /// The address without user and password.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// What an error of the server, or of the way to it, means.
    pub(super) fn store_error(&self, error: &RedisError) -> StoreError {
        store_error(&self.server, &self.user, &self.keys, error)
    }

    /// Which of its times as primary the server is in. What it stored in an earlier one may be gone: as a replica it
    /// took over what another had.
    pub(super) fn reign(&self) -> u64 {
        self.reign.load(Ordering::Relaxed)
    }

    /// Whether the server was the primary when that was last seen.
    pub(super) fn is_primary(&self) -> bool {
        self.reign() % 2 == 1
    }

    /// Notes that the server is the primary; the reign it is in.
    fn leads(&self) -> u64 {
        let begun = |reign: u64| reign.is_multiple_of(2).then_some(reign + 1);
        // Nothing to note is no failure.
        self.reign.fetch_update(Ordering::Relaxed, Ordering::Relaxed, begun).ok();
        self.reign()
    }

    /// Notes that the server is no longer the primary, unless that reign is known to be over.
    pub(super) fn ends(&self, reign: u64) {
        if reign % 2 == 1 {
            // Another one has noted it.
            self.reign.compare_exchange(reign, reign + 1, Ordering::Relaxed, Ordering::Relaxed).ok();
        }
    }

    /// Connects and checks that the server can be used.
    pub(super) async fn connect(&self) -> Result<Link, StoreError> {
        self.usable(RESPONSE_TIMEOUT).await
    }

    /// Connects for blocking reads, whose answers take the longest wait more.
    pub(super) async fn connect_for_waiting(&self) -> Result<Link, StoreError> {
        self.usable(RESPONSE_TIMEOUT + MAX_WAIT).await
    }

    async fn usable(&self, response: Duration) -> Result<Link, StoreError> {
        let checked = match self.open(response).await {
            Ok(connection) => self.check(connection).await,
            Err(error) => Err(error),
        };
        checked.map_err(|error| self.may_pass(error))
    }

    /// Notes that a session of this process has joined.
    pub(super) fn has_joined(&self) {
        self.joined.store(true, Ordering::Relaxed);
    }

    /// A server that this process has used is waited for, whatever makes it unfit now: a password, rights, its version.
    /// Somebody has changed that, and may change it back.
    pub(super) fn may_pass(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Unfit(why) if self.joined.load(Ordering::Relaxed) => StoreError::Unreachable(why),
            error => error,
        }
    }

    async fn check(&self, mut connection: MultiplexedConnection) -> Result<Link, StoreError> {
        let info: String = match redis::cmd("INFO").query_async(&mut connection).await {
            Ok(info) => info,
            Err(error) => return Err(self.explained(&error).await),
        };
        let run_id = match check(&self.server, &info)? {
            Checked::Primary { run_id } => run_id,
            // At first it is a wrong address; later the server was demoted, and that may pass.
            Checked::Replica if self.reign() == 0 => {
                let why = "is a read-only replica: name its primary instead";
                return Err(StoreError::Unfit(format!("Redis at {} {why}", self.server)));
            }
            Checked::Replica => {
                self.ends(self.reign());
                return Err(demoted(&self.server));
            }
        };
        self.note(&info);
        let reign = self.leads();
        Ok(Link { connection, run_id, reign })
    }

    async fn open(&self, response: Duration) -> Result<MultiplexedConnection, StoreError> {
        drivers::io_here()?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(response));
        let connection = self.client.get_multiplexed_async_connection_with_config(&config).await;
        match connection {
            Ok(connection) => Ok(connection),
            Err(error) => Err(self.explained(&error).await),
        }
    }

    /// Why no connection could be made.
    async fn explained(&self, error: &RedisError) -> StoreError {
        let words = if was_cut(error) { self.last_words().await } else { None };
        words.map_or_else(|| self.store_error(error), |words| full(&self.server, &words))
    }

    /// What the server says to one whom it turns away before it was asked anything. The client has thrown that away.
    async fn last_words(&self) -> Option<String> {
        let ConnectionAddr::Tcp(host, port) = self.client.get_connection_info().addr() else { return None };
        let heard = async {
            let mut heard = Vec::new();
            let stream = TcpStream::connect((host.as_str(), *port)).await.ok()?;
            stream.take(LAST_WORDS).read_to_end(&mut heard).await.ok()?;
            String::from_utf8(heard).ok()
        };
        let heard = tokio::time::timeout(LISTENING, heard).await.ok()??;
        heard.strip_prefix("-ERR ").map(|words| words.trim_end().to_owned())
    }
}

/// Chooses the cryptography of TLS for the process, unless it has been chosen.
#[cfg(feature = "redis-tls")]
#[expect(clippy::unnecessary_wraps, reason = "it fails where TLS is left out")]
fn install_tls() -> Result<(), StoreError> {
    // An error means that one is installed already.
    rustls::crypto::ring::default_provider().install_default().ok();
    Ok(())
}

#[cfg(not(feature = "redis-tls"))]
fn install_tls() -> Result<(), StoreError> {
    Err(crate::store::open::left_out("rediss://", "redis-tls"))
}

/// What a server that keeps the contract is.
#[derive(Debug, PartialEq, Eq)]
enum Checked {
    Primary { run_id: Arc<str> },
    Replica,
}

/// Refuses a server that would not keep the contract.
fn check(server: &str, info: &str) -> Result<Checked, StoreError> {
    let field = |name: &str| info.lines().find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':'));
    let unfit = |why: String| Err(StoreError::Unfit(format!("Redis at {server} {why}")));
    let Some(version) = field("redis_version") else {
        return Err(StoreError::Unfit(format!("what answers at {server} does not speak Redis: name another address")));
    };
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    if (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < OLDEST {
        return unfit(format!("is version {version}: 7.0 or newer (or Valkey 7.2 or newer) is needed"));
    }
    if field("loading").is_some_and(|loading| loading != "0") {
        return Err(StoreError::Unreachable(format!("Redis at {server} is still loading its data")));
    }
    if field("role").is_some_and(|role| role != "master") {
        return Ok(Checked::Replica);
    }
    Ok(Checked::Primary { run_id: field("run_id").unwrap_or_default().into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfit_servers_are_named() {
        let good = "redis_version:7.0.15\r\nrun_id:ab\r\nloading:0\r\nrole:master\r\n";
        assert_eq!(check("s", good).unwrap(), Checked::Primary { run_id: "ab".into() });
        assert_eq!(check("s", &good.replace("master", "slave")).unwrap(), Checked::Replica);
        for (from, to, why) in
            [("7.0.15", "6.2.0", "is version 6.2.0"), ("redis_version", "other", "does not speak Redis")]
        {
            let StoreError::Unfit(text) = check("s", &good.replace(from, to)).unwrap_err() else { panic!("{why}") };
            assert!(text.contains(why), "{text}");
        }
        let loading = check("s", &good.replace("loading:0", "loading:1")).unwrap_err();
        assert!(loading.is_retryable());
    }

    #[test]
    fn addresses_are_checked_and_never_show_a_password() {
        let connector = Connector::new("redis://me:secret@127.0.0.1/3", String::new()).unwrap();
        assert_eq!(connector.server(), "redis://127.0.0.1:6379/3");
        for bad in ["", "http://127.0.0.1", "redis://", "127.0.0.1:6379"] {
            assert!(matches!(Connector::new(bad, String::new()), Err(StoreError::Unfit(_))), "{bad}");
        }
    }
}
