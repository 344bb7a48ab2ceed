//! Children that end with this process, also if it is killed.
//!
//! One guardian a process: a shell that waits for the end of a pipe, which comes with the end of this process however that
//! went. Then it kills the groups of all children that were running, and whoever has this process's mark in its
//! environment: what children started, whatever group or session that is in. Out of reach is what has left its group and
//! has cleared its environment.

use std::{
    fs::File,
    io,
    os::unix::{fs::FileExt as _, process::CommandExt as _},
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use rustix::fs::{MemfdFlags, memfd_create};

/// The variable that marks children.
const MARK: &str = "BATON_CHILD_OF";
/// Bytes of a group in the list.
const WIDTH: usize = 11;

/// Waits for the end of its input, then kills the groups in the list, which is its error output, and who is marked, until nobody
/// is: one that was just starting others may have left some.
const WATCH: &str = r#"
cat >/dev/null
for group in $(cat /proc/self/fd/2); do kill -s KILL -- "-$group"; done
for turn in 1 2 3 4 5 6 7 8 9 10; do
  left=$(grep -slF -e "$0" /proc/[0-9]*/environ | cut -d/ -f3)
  [ -n "$left" ] || exit 0
  kill -9 $left
done
"#;

/// The guardian of this process.
struct Guardian {
    shell: Option<Child>,
    /// The groups of children that run, a line each: in memory, and the guardian's too.
    groups: Option<File>,
    /// Lines of it that are free, and how many there are.
    free: Vec<usize>,
    lines: usize,
}

/// A group that the guardian kills; forgotten when this is dropped.
#[derive(Debug)]
pub(super) struct Watched(usize);

/// Marks a command as a child of this process, and sees to it that a guardian watches.
pub(super) fn mark(command: &mut tokio::process::Command) {
    let mut guardian = guardian();
    command.env(MARK, token());
    let watches = guardian.shell.as_mut().is_some_and(|it| matches!(it.try_wait(), Ok(None)));
    if !watches && let Err(error) = guardian.start() {
        tracing::warn!(%error, "children would outlive this process if it were killed: no guardian can be started");
    }
}

/// Has the guardian kill this group too, as long as it is held.
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
    fn start(&mut self) -> io::Result<()> {
        let groups = match &self.groups {
            Some(groups) => groups,
            None => self.groups.insert(memfd_create("baton-children", MemfdFlags::CLOEXEC)?.into()),
        };
        let mut guardian = Command::new("sh");
        // It needs to find its programs, and nothing else of what is in force here.
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        guardian.args(["-c", WATCH]).arg(format!("{MARK}={}", token())).env_clear().env("PATH", path);
        guardian.current_dir("/").process_group(0);
        guardian.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(groups.try_clone()?);
        self.shell = Some(guardian.spawn()?);
        Ok(())
    }

    fn write(&self, line: usize, text: &str) {
        if let Some(groups) = &self.groups {
            // Memory that is not given leaves the mark.
            groups.write_all_at(text.as_bytes(), (line * WIDTH) as u64).ok();
        }
    }
}

fn guardian() -> MutexGuard<'static, Guardian> {
    static GUARDIAN: Mutex<Guardian> = Mutex::new(Guardian { shell: None, groups: None, free: Vec::new(), lines: 0 });
    GUARDIAN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn token() -> &'static str {
    static TOKEN: OnceLock<String> = OnceLock::new();
    TOKEN.get_or_init(|| format!("{:032x}", fastrand::u128(..)))
}
