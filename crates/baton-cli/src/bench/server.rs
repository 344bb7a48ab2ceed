//! A Redis server of this command's own, on a free loopback port, ended by its process id when it is dropped.

use std::{
    fs::File,
    io::{ErrorKind, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::exit::Failure;

/// How long a server may take to answer.
const START_LIMIT: Duration = Duration::from_secs(20);
/// A port that was free may be taken a moment later.
const PORTS_TRIED: u32 = 10;

/// A running server.
pub(super) struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts one that keeps its files in `folder`; nothing if there is no `redis-server` to start.
    pub(super) fn start(folder: &Path, aof: bool) -> Result<Option<Self>, Failure> {
        let cannot = |why: String| Failure::new(format!("cannot start redis-server: {why}"), "name one with --store");
        for _ in 0..PORTS_TRIED {
            let port = free_port().map_err(|error| cannot(error.to_string()))?;
            let child = match spawn(folder, port, aof) {
                Ok(child) => child,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(cannot(error.to_string())),
            };
            let mut server = Self { child, port };
            if server.comes_up() {
                return Ok(Some(server));
            }
        }
        let log = std::fs::read_to_string(folder.join("redis.log")).unwrap_or_default();
        Err(cannot(log.lines().next_back().unwrap_or("it does not answer").to_owned()))
    }

    /// The URL of its database 0.
    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Whether it answers; false once it has ended.
    fn comes_up(&mut self) -> bool {
        let deadline = Instant::now() + START_LIMIT;
        while Instant::now() < deadline && self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
                let mut answer = [0; 5];
                stream.set_read_timeout(Some(Duration::from_secs(1))).ok();
                let asked = stream.write_all(b"PING\r\n").and_then(|()| stream.read_exact(&mut answer));
                if asked.is_ok() && answer == *b"+PONG" {
                    return true;
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn free_port() -> std::io::Result<u16> {
    TcpListener::bind("127.0.0.1:0")?.local_addr().map(|address| address.port())
}

fn spawn(folder: &Path, port: u16, aof: bool) -> std::io::Result<Child> {
    let log = File::create(folder.join("redis.log"))?;
    let aof = if aof { "yes" } else { "no" };
    Command::new("redis-server")
        .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""])
        .args(["--appendonly", aof, "--appendfsync", "everysec", "--dir"])
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(Stdio::null())
        // Ctrl-C at the terminal is for this command alone, which then ends the server.
        .process_group(0)
        .spawn()
}
