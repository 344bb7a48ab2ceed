//! A Redis server of one's own: on a free loopback port, ended by its process id when it is dropped.
//!
//! For measurements and tests. It is started over a folder that outlives it, so that it can be started again.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// How long a server may take to answer.
const START_LIMIT: Duration = Duration::from_secs(30);
/// A port that was free may be taken a moment later.
const PORTS_TRIED: u32 = 20;

/// A server.
#[derive(Debug)]
pub struct RedisServer {
    child: Child,
    port: u16,
    folder: PathBuf,
    arguments: Vec<OsString>,
}

impl RedisServer {
    /// Starts one that keeps its files, and its log as `redis.log`, in `folder`, and waits until it answers. It saves no
    /// snapshots unless these arguments say so.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is no `redis-server` to start; else what it said last.
    pub fn start(folder: &Path, arguments: &[&str]) -> io::Result<Self> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        for _ in 0..PORTS_TRIED {
            let port = free_port()?;
            let mut child = spawn(folder, port, &arguments)?;
            if comes_up(&mut child, port) {
                return Ok(Self { child, port, folder: folder.to_owned(), arguments });
            }
        }
        Err(silent(folder))
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The URL of its database 0.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Kills it with -9 and waits for its end.
    pub fn kill(&mut self) {
        // One that has ended is no failure.
        self.child.kill().ok();
        self.child.wait().ok();
    }

    /// Starts it again, on the same port and files, after [`RedisServer::kill`].
    ///
    /// # Errors
    /// What it said last, if it does not answer in time.
    pub fn restart(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        while Instant::now() < deadline {
            self.child = spawn(&self.folder, self.port, &self.arguments)?;
            if comes_up(&mut self.child, self.port) {
                return Ok(());
            }
        }
        Err(silent(&self.folder))
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A loopback port that was free a moment ago.
///
/// # Errors
/// The system's, if there is none.
pub fn free_port() -> io::Result<u16> {
    TcpListener::bind("127.0.0.1:0")?.local_addr().map(|address| address.port())
}

fn spawn(folder: &Path, port: u16, arguments: &[OsString]) -> io::Result<Child> {
    let log = File::create(log_in(folder))?;
    Command::new("redis-server")
        .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--dir"])
        .arg(folder)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(Stdio::null())
        // Ctrl-C at the terminal is for its parent alone, which then ends it.
        .process_group(0)
        .spawn()
}

/// Whether it answers a ping; one that does not, or has ended, is gone afterwards.
fn comes_up(child: &mut Child, port: u16) -> bool {
    let deadline = Instant::now() + START_LIMIT;
    while Instant::now() < deadline && child.try_wait().is_ok_and(|ended| ended.is_none()) {
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

fn silent(folder: &Path) -> io::Error {
    let log = std::fs::read_to_string(log_in(folder)).unwrap_or_default();
    io::Error::other(log.lines().next_back().unwrap_or("it does not answer").to_owned())
}

fn log_in(folder: &Path) -> PathBuf {
    folder.join("redis.log")
}
