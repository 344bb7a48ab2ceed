//! Real Redis servers on free loopback ports, ended by process id when dropped.

use std::{
    fs::File,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

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
    child: Child,
    port: u16,
    folder: TempDir,
    arguments: Vec<String>,
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
        let mut arguments: Vec<String> =
            ["--bind", "127.0.0.1", "--save", "", "--appendonly", aof, "--appendfsync", sync]
                .iter()
                .map(ToString::to_string)
                .collect();
        arguments.extend(["--enable-debug-command", "local", "--aof-use-rdb-preamble", "yes"].map(String::from));
        arguments.extend(extra.iter().map(ToString::to_string));
        for _ in 0..20 {
            let port = free_port();
            let mut child = spawn(&arguments, folder.path(), port);
            if comes_up(&mut child, port) {
                return Self { child, port, folder, arguments };
            }
        }
        panic!("redis-server does not start; is it installed? (make test installs it on Debian)");
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
        self.port
    }

    /// The server's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The URL of its database 0.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// The folder it keeps its files in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Kills it with -9.
    pub fn kill(&mut self) {
        self.child.kill().expect("the server can be killed");
        self.child.wait().expect("the server ends");
    }

    /// Stops it with SIGSTOP, or lets it go on.
    pub fn stand_still(&self, still: bool) {
        let signal = if still { Signal::STOP } else { Signal::CONT };
        kill_process(Pid::from_child(&self.child), signal).expect("the server can be signalled");
    }

    /// Starts it again on the same port and files after [`RedisServer::kill`].
    pub fn restart(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            self.child = spawn(&self.arguments, self.folder.path(), self.port);
            if comes_up(&mut self.child, self.port) {
                return;
            }
        }
        panic!("redis-server does not come up again on port {}", self.port);
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A loopback port that was free a moment ago.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

fn spawn(arguments: &[String], folder: &Path, port: u16) -> Child {
    let log = File::create(folder.join("log")).expect("a log file");
    Command::new("redis-server")
        .args(arguments)
        .args(["--port", &port.to_string(), "--dir"])
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server is installed")
}

/// Whether the server answers a ping; false once it has ended.
fn comes_up(child: &mut Child, port: u16) -> bool {
    use std::io::{Read as _, Write as _};
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        if child.try_wait().is_ok_and(|ended| ended.is_some()) {
            return false;
        }
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
            let mut answer = [0; 5];
            stream.set_read_timeout(Some(Duration::from_secs(1))).ok();
            let asked = stream.write_all(b"PING\r\n").and_then(|()| stream.read_exact(&mut answer));
            // A server that wants a password is up too.
            if asked.is_ok() && (answer == *b"+PONG" || answer == *b"-NOAU") {
                return true;
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().ok();
    child.wait().ok();
    false
}
