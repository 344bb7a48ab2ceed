//! Real Redis servers for tests: a test without its server has failed.

use std::path::Path;

use baton_servers::RedisServer as Server;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// How a server keeps what it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// Not at all.
    None,
    /// Every write is on disk before it is answered.
    AofAlways,
    /// The last second may be lost.
    AofEverySecond,
}

/// A Redis server of this process.
#[derive(Debug)]
pub struct RedisServer {
    // Ended before its folder goes.
    server: Server,
    folder: TempDir,
}

impl RedisServer {
    /// Starts a server and waits until it answers.
    #[must_use]
    pub fn start(persistence: Persistence) -> Self {
        Self::start_with(persistence, &[])
    }

    /// As [`RedisServer::start`], with further arguments for the server.
    #[must_use]
    pub fn start_with(persistence: Persistence, extra: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().expect("a temporary folder"), persistence, extra)
    }

    /// Starts a server with the data of a dump.
    #[must_use]
    pub fn start_from(dump: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::copy(dump, folder.path().join("dump.rdb")).expect("the dump can be copied");
        Self::start_in(folder, Persistence::None, &[])
    }

    fn start_in(folder: TempDir, persistence: Persistence, extra: &[&str]) -> Self {
        let (aof, sync) = match persistence {
            Persistence::None => ("no", "no"),
            Persistence::AofAlways => ("yes", "always"),
            Persistence::AofEverySecond => ("yes", "everysec"),
        };
        let mut arguments = vec!["--appendonly", aof, "--appendfsync", sync];
        arguments.extend(["--enable-debug-command", "local", "--aof-use-rdb-preamble", "yes"]);
        arguments.extend(extra);
        let server = Server::start(folder.path(), &arguments);
        Self { server: server.expect("redis-server starts (make test installs it on Debian)"), folder }
    }

    /// Another server, which nobody knows, over a copy of this one's append-only files; best after
    /// [`RedisServer::kill`].
    #[must_use]
    pub fn copy(&self, persistence: Persistence) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (from, to) = (self.folder.path().join("appendonlydir"), folder.path().join("appendonlydir"));
        std::fs::create_dir(&to).expect("a folder in it");
        for entry in std::fs::read_dir(from).expect("append-only files") {
            let file = entry.expect("an entry");
            std::fs::copy(file.path(), to.join(file.file_name())).expect("a file that can be copied");
        }
        Self::start_in(folder, persistence, &[])
    }

    /// The server's port on 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.server.port()
    }

    /// The server's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// The URL of its database 0.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The folder it keeps its files in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Kills it with -9.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Stops it with SIGSTOP, or lets it go on.
    pub fn stand_still(&self, still: bool) {
        let signal = if still { Signal::STOP } else { Signal::CONT };
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("the server can be signalled");
    }

    /// Starts it again on the same port and files after [`RedisServer::kill`].
    pub fn restart(&mut self) {
        self.server.restart().expect("redis-server comes up again");
    }
}

/// A loopback port that was free a moment ago.
#[must_use]
pub fn free_port() -> u16 {
    baton_servers::free_port().expect("a free port")
}
