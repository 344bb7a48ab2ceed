//! A Redis server of the test's own on a free loopback port, ended by its process id.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::allow_attributes,
    reason = "each test file uses its own part of this, and a test without its server has failed"
)]

use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
};

pub(crate) struct RedisServer {
    child: Child,
    pub(crate) port: u16,
    folder: tempfile::TempDir,
    settings: Vec<String>,
}

impl RedisServer {
    pub(crate) fn start(settings: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let settings: Vec<String> = settings.iter().map(|&word| word.to_owned()).collect();
        let child = spawn(port, folder.path(), &settings);
        Self { child, port, folder, settings }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Kills the server at once and starts it again over the same data.
    pub(crate) fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = spawn(self.port, self.folder.path(), &self.settings);
    }

    /// A connection for looking behind the store.
    pub(crate) fn connection(&self) -> redis::Connection {
        redis::Client::open(self.url()).unwrap().get_connection().unwrap()
    }
}

/// Starts a server and waits until it answers.
fn spawn(port: u16, folder: &std::path::Path, settings: &[String]) -> Child {
    let child = Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"])
        .arg(folder)
        .args(settings)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}/")).unwrap();
    let ready = || {
        let answer = client.get_connection().and_then(|mut to| redis::cmd("PING").query::<String>(&mut to));
        match answer {
            Ok(_) => true,
            Err(error) => error.code() == Some("NOAUTH"),
        }
    };
    while !ready() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
