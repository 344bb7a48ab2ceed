//! A Redis server of the test's own.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::allow_attributes,
    reason = "each test file uses its own part of this, and a test without its server has failed"
)]

pub(crate) struct RedisServer {
    // Ended before its folder goes.
    server: baton_servers::RedisServer,
    _folder: tempfile::TempDir,
    pub(crate) port: u16,
}

impl RedisServer {
    pub(crate) fn start(settings: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = baton_servers::RedisServer::start(folder.path(), settings).unwrap();
        Self { port: server.port(), server, _folder: folder }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Kills the server at once and starts it again over the same data.
    pub(crate) fn restart(&mut self) {
        self.server.kill();
        self.server.restart().unwrap();
    }

    /// A connection for looking behind the store.
    pub(crate) fn connection(&self) -> redis::Connection {
        redis::Client::open(self.url()).unwrap().get_connection().unwrap()
    }
}
