//! The store a soak is thrown at: a real Redis server behind a proxy, or one SQLite file.

use std::{path::Path, time::Duration};

use baton::store::StoreUrl;
use redis::{AsyncConnectionConfig, Client, Cmd, Value};

use crate::{
    proxy::Proxy,
    server::{Persistence, RedisServer},
};

/// The user of the nodes behind the proxy, with a password of the same text: its rights are taken away.
const USER: &str = "limited";

/// Which store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// A Redis server with its log synced at every write.
    Redis,
    /// A SQLite file.
    Sqlite,
}

impl StoreKind {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Sqlite => "sqlite",
        }
    }
}

/// The store's side of a soak.
pub enum Target {
    /// A server of this process; moved out while it is being restarted.
    Redis {
        /// The server.
        server: Option<RedisServer>,
        /// In front of it, for half of the nodes.
        proxy: Proxy,
        /// Its address.
        url: String,
    },
    /// A file.
    Sqlite {
        /// Its address.
        url: String,
    },
}

impl Target {
    /// Makes it ready.
    pub async fn start(kind: StoreKind, folder: &Path) -> Self {
        match kind {
            StoreKind::Redis => {
                // Of its settings, so that it is still there after a restart.
                let user = ["--user", USER, "on", &format!(">{USER}"), "~*", "&*", "+@all"];
                let server = RedisServer::start_with(Persistence::AofAlways, &user);
                // Calls that change something are scripts.
                let proxy = Proxy::start(server.port(), b"FCALL").await;
                let url = server.url();
                Self::Redis { server: Some(server), proxy, url }
            }
            StoreKind::Sqlite => Self::Sqlite { url: format!("sqlite:{}", folder.join("soak.db").display()) },
        }
    }

    /// Whether it is a file that stopped processes can hold locked.
    #[must_use]
    pub const fn is_file(&self) -> bool {
        matches!(self, Self::Sqlite { .. })
    }

    /// The address without the proxy.
    #[must_use]
    pub fn direct(&self) -> StoreUrl {
        let (Self::Redis { url, .. } | Self::Sqlite { url }) = self;
        url.parse().expect("a store's address")
    }

    /// The addresses nodes are given in turn.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        match self {
            Self::Redis { proxy, url, .. } => {
                vec![url.clone(), format!("redis://{USER}:{USER}@127.0.0.1:{}/0", proxy.port())]
            }
            Self::Sqlite { url } => vec![url.clone()],
        }
    }

    /// Replies lost so far.
    #[must_use]
    pub fn lost_replies(&self) -> u64 {
        match self {
            Self::Redis { proxy, .. } => proxy.deeds().lost_replies,
            Self::Sqlite { .. } => 0,
        }
    }

    /// Orders that the next fitting reply is lost.
    pub fn lose_reply(&self) {
        if let Self::Redis { proxy, .. } = self {
            proxy.lose_reply();
        }
    }

    /// Memory the server uses, in KiB; 0 if there is none, or if it does not tell.
    pub async fn memory_kib(url: &str) -> u64 {
        let asking = async {
            let mut connection = Client::open(url)?.get_multiplexed_async_connection().await?;
            redis::cmd("INFO").arg("memory").query_async::<String>(&mut connection).await
        };
        let told = tokio::time::timeout(Duration::from_secs(2), asking).await;
        let Ok(Ok(told)) = told else { return 0 };
        let used = told.lines().find_map(|line| line.strip_prefix("used_memory:"));
        used.and_then(|bytes| bytes.trim().parse::<u64>().ok()).unwrap_or(0) / 1_024
    }

    /// The server's own address.
    #[must_use]
    pub fn server_url(&self) -> Option<String> {
        match self {
            Self::Redis { url, .. } => Some(url.clone()),
            Self::Sqlite { .. } => None,
        }
    }

    /// Lets the server stall.
    ///
    /// # Errors
    /// If it does not.
    pub async fn sleep(&self, time: Duration) -> Result<(), String> {
        self.command(redis::cmd("DEBUG").arg("SLEEP").arg(time.as_secs_f64())).await.map(drop)
    }

    /// Ends every connection to the server but the one that says so.
    ///
    /// # Errors
    /// If there was none.
    pub async fn cut_clients(&self) -> Result<(), String> {
        match self.command(redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal")).await? {
            Value::Int(1..) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    /// Takes the right to these commands away from half of the nodes, or gives it back.
    ///
    /// # Errors
    /// If the server does not.
    pub async fn grant(&self, commands: &str, is_granted: bool) -> Result<(), String> {
        let rule = format!("{}{commands}", if is_granted { '+' } else { '-' });
        self.command(redis::cmd("ACL").arg("SETUSER").arg(USER).arg(rule)).await.map(drop)
    }

    /// Lets the server forget its scripts.
    ///
    /// # Errors
    /// If it does not.
    pub async fn flush_functions(&self) -> Result<(), String> {
        self.command(redis::cmd("FUNCTION").arg("FLUSH")).await.map(drop)
    }

    /// Kills the server with -9 and starts it again after a pause.
    ///
    /// # Errors
    /// If it does not come up.
    pub async fn kill_server(&mut self, pause: Duration) -> Result<(), String> {
        let Self::Redis { server: slot, .. } = self else { return Err("there is no server".to_owned()) };
        let mut server = slot.take().ok_or("the server is gone")?;
        let restarting = tokio::task::spawn_blocking(move || {
            server.kill();
            std::thread::sleep(pause);
            server.restart();
            server
        });
        *slot = Some(restarting.await.map_err(|error| error.to_string())?);
        Ok(())
    }

    async fn command(&self, command: &Cmd) -> Result<Value, String> {
        let Self::Redis { url, .. } = self else { return Err("there is no server".to_owned()) };
        let asking = async {
            let config = AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(10)));
            let client = Client::open(url.as_str())?;
            let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
            command.query_async::<Value>(&mut connection).await
        };
        asking.await.map_err(|error: redis::RedisError| error.to_string())
    }
}
