//! How a node of the soak is started: its command line, its log, its journal.

use std::{
    fs::OpenOptions,
    io,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;

/// The role nodes are started in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Generator or worker, as it comes.
    Auto,
    /// Worker only: for finishing what is left.
    Worker,
}

/// How nodes are started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The `baton` binary.
    pub program: PathBuf,
    /// The binary of mixed nodes; none for a fleet without them.
    pub mixed: Option<PathBuf>,
    /// Where journals and logs go.
    pub folder: PathBuf,
    /// Addresses of the store, given to the nodes in turn.
    pub stores: Vec<String>,
    /// Bytes the queue may hold.
    pub max_queue_bytes: u64,
    /// How many nodes.
    pub count: usize,
    /// Their role.
    pub role: Role,
    /// The command whose children run the messages of the command's queue; none for handlers of the program itself.
    pub exec: Option<String>,
}

/// The fleet of a soak.
pub const FLEET: &str = "soak";
/// The queue of the command's nodes, fed by one source.
pub const QUEUE: &str = "messages";

/// The mixed node that is never struck down and only works: what it uses is measured.
pub const SPARED: usize = 2;

/// Processes that are started, and started again.
pub trait Roster: Send + Sync {
    /// How many run at once.
    fn count(&self) -> usize;

    /// The command of one start of one of them, made with [`on_a_leash`]; every start has a journal of its own.
    ///
    /// # Errors
    /// If its log cannot be opened.
    fn command(&self, slot: usize, start: u32) -> io::Result<Command>;
}

impl Launch {
    /// Whether a node is mixed: one in three is.
    const fn is_mixed(&self, slot: usize) -> bool {
        self.mixed.is_some() && slot % 3 == SPARED
    }
}

impl Roster for Launch {
    fn count(&self) -> usize {
        self.count
    }

    fn command(&self, slot: usize, start: u32) -> io::Result<Command> {
        let role = match self.role {
            Role::Auto if slot != SPARED || self.mixed.is_none() => "auto",
            Role::Auto | Role::Worker => "worker",
        };
        let name = format!("{role}-{slot}");
        let store = self.stores.get(slot % self.stores.len().max(1)).map_or("memory:", String::as_str);
        let journal = self.folder.join(format!("{name}-{start}.journal"));
        let backlog = self.max_queue_bytes.to_string();
        let program = self.mixed.as_ref().filter(|_| self.is_mixed(slot)).unwrap_or(&self.program);
        let mut command = on_a_leash(program, &self.folder.join(format!("{name}.log")))?;
        if self.is_mixed(slot) {
            command
                .args(["--store", store, "--role", role, "--max-queue-bytes", &backlog])
                .arg("--journal")
                .arg(journal);
            command.args(self.exec.iter().flat_map(|line| ["--exec", line]));
            return Ok(command);
        }
        command.args(["node", "--leashed", "--store", store, "--fleet", FLEET, "--queue", QUEUE, "--role", role]);
        command.args(["--interval", "0", "--share-queue", "--lease", "1s", "--heartbeat", "200ms"]);
        command.args(["--max-queue-bytes", &backlog]).arg("--journal").arg(journal);
        if let Some(line) = &self.exec {
            command.args(["--exec", line]);
            return Ok(command);
        }
        // Most nodes are as fast as the store lets them; some take time and fail, half of those without a retry, so
        // that delayed and failed messages are met too.
        if slot % 5 == 4 {
            let retries = if slot.is_multiple_of(2) { "2" } else { "0" };
            command.args(["--handler", "demo", "--demo-delay", "0..5ms", "--demo-fail", "0.01"]);
            command.args(["--concurrency", "64", "--retries", retries]);
        } else {
            command.args(["--handler", "noop"]);
        }
        Ok(command)
    }
}

/// A program that obeys the leash on its standard input, and whose output goes to the end of this file.
///
/// # Errors
/// If the file cannot be opened.
pub(crate) fn on_a_leash(program: &Path, log: &Path) -> io::Result<Command> {
    let log = OpenOptions::new().create(true).append(true).open(log)?;
    let mut command = Command::new(program);
    command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
    Ok(command)
}

/// The journals in a folder.
///
/// # Errors
/// If the folder cannot be read.
pub fn journals(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "journal") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
