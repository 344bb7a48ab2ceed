//! Children that end with this process, also if it is killed.
//!
//! A guardian is a process that waits for the end of a pipe. The pipe ends with this process, however that ends. Then the guardian
//! kills the groups of all children that were running, and every process with this process's mark in its environment: what
//! children started, in any group or session. Out of reach is a process that has left its group and has cleared its
//! environment.
//!
//! **Guaranteed:** no child starts without a guardian. A guardian that ends early is replaced at once; the list of groups is in
//! memory that all guardians share, so its successor knows them. A guardian ignores what a terminal or an administrator
//! sends to many processes (HUP, INT, QUIT, TERM).

mod serve;
mod start;

use std::{
    fs::File,
    io,
    os::unix::{fs::FileExt as _, process::CommandExt as _},
    process::{Child, ChildStdin, Stdio},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use rustix::fs::{MemfdFlags, memfd_create};

pub use self::serve::guard_children;
pub(crate) use self::start::check;

/// The variable that marks children.
const MARK: &str = "BATON_CHILD_OF";
/// Bytes of a group in the list.
const WIDTH: usize = 11;
/// Guardians that end sooner than this cannot do their work here: after so many, a successor waits.
const SHORT: Duration = Duration::from_secs(1);
const SHORT_LIVES: u32 = 3;
/// That wait.
const PAUSE: Duration = Duration::from_millis(200);

/// What this process knows of its guardian.
struct Guardian {
    /// The pipe whose end tells the guardian that this process is gone; none while there is no guardian.
    pipe: Option<ChildStdin>,
    /// The groups of children that run, a line each. The guardian has the same memory as its error output.
    groups: Option<File>,
    /// How many guardians in a row ended soon.
    short_lives: u32,
    /// Lines of the list that are free, and the number of all lines.
    free: Vec<usize>,
    lines: usize,
}

/// A group that the guardian kills; forgotten when this is dropped.
#[derive(Debug)]
pub(super) struct Watched(usize);

/// Marks a command as a child of this process, and starts a guardian if there is none.
///
/// # Errors
/// If no guardian can be started: then the child must not start either.
pub(super) fn mark(command: &mut tokio::process::Command) -> io::Result<()> {
    command.env(MARK, token());
    guardian().start()
}

/// Has the guardian kill this group too, as long as the value is held.
pub(super) fn watch(group: u32) -> Watched {
    let mut guardian = guardian();
    let line = guardian.free.pop().unwrap_or_else(|| {
        guardian.lines += 1;
        guardian.lines - 1
    });
    guardian.write(line, &format!("{group:>10}\n"));
    Watched(line)
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut guardian = guardian();
        guardian.write(self.0, &format!("{:>10}\n", ""));
        guardian.free.push(self.0);
    }
}

impl Guardian {
    /// Starts a guardian, and a thread that waits for its end, unless one runs.
    fn start(&mut self) -> io::Result<()> {
        if self.pipe.is_some() {
            return Ok(());
        }
        let groups = match &self.groups {
            Some(groups) => groups,
            None => self.groups.insert(memfd_create("baton-children", MemfdFlags::CLOEXEC)?.into()),
        };
        let mut command = start::command(&format!("{MARK}={}", token()))?;
        command.current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(groups.try_clone()?);
        // The thread comes first: a guardian whose pipe were closed again for want of a thread would kill all children.
        let (give, take) = mpsc::channel();
        let attend = move || take.recv().ok().map_or((), attend);
        thread::Builder::new().name("child-guardian".to_owned()).spawn(attend)?;
        let mut child = command.spawn()?;
        self.pipe = child.stdin.take();
        // The thread waits for it.
        give.send(child).ok();
        Ok(())
    }

    fn write(&self, line: usize, text: &str) {
        if let Some(groups) = &self.groups {
            // Memory that is not given leaves the mark.
            groups.write_all_at(text.as_bytes(), (line * WIDTH) as u64).ok();
        }
    }
}

/// Waits for the end of a guardian and starts its successor.
fn attend(mut child: Child) {
    let began = Instant::now();
    // An error means that another part of the program has waited for it: it has ended as well.
    let how = child.wait().map_or_else(|error| error.to_string(), super::ending);
    let short_lives = {
        let mut guardian = guardian();
        guardian.pipe = None;
        guardian.short_lives = if began.elapsed() < SHORT { guardian.short_lives + 1 } else { 0 };
        guardian.short_lives
    };
    if short_lives >= SHORT_LIVES {
        thread::sleep(PAUSE);
    }
    loop {
        let started = guardian().start();
        let Err(error) = started else { break };
        tracing::warn!(%error, "the guardian of child processes is gone: they would outlive this process if it were killed");
        thread::sleep(SHORT);
    }
    tracing::warn!(%how, "the guardian of child processes was gone; another has taken its place");
}

fn guardian() -> MutexGuard<'static, Guardian> {
    static GUARDIAN: Mutex<Guardian> =
        Mutex::new(Guardian { pipe: None, groups: None, short_lives: 0, free: Vec::new(), lines: 0 });
    GUARDIAN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn token() -> &'static str {
    static TOKEN: OnceLock<String> = OnceLock::new();
    TOKEN.get_or_init(|| format!("{:032x}", fastrand::u128(..)))
}
