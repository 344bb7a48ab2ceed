//! Children that end with this process, also if it is killed.
//!
//! One guardian a process: a shell that waits for the end of a pipe, which comes with the end of this process however that
//! went. Then it kills whoever has this process's mark in its environment: children, and what they started, whatever
//! group or session that is in. Out of reach is only what has left its group and has cleared its environment.

use std::{
    io,
    process::{Child, Command, Stdio},
    sync::{Mutex, OnceLock, PoisonError},
};

/// The variable that marks children.
const MARK: &str = "BATON_CHILD_OF";

/// Waits for the end of its input, then kills who is marked, until nobody is: one that was just starting others may have
/// left some.
const WATCH: &str = r#"
cat >/dev/null
for turn in 1 2 3 4 5 6 7 8 9 10; do
  left=$(grep -slF -e "$0" /proc/[0-9]*/environ | cut -d/ -f3)
  [ -n "$left" ] || exit 0
  kill -9 $left 2>/dev/null
done
"#;

/// Marks a command as a child of this process, and sees to it that a guardian watches.
pub(super) fn mark(command: &mut tokio::process::Command) {
    static MARKED: OnceLock<String> = OnceLock::new();
    static GUARDIAN: Mutex<Option<Child>> = Mutex::new(None);
    let token = MARKED.get_or_init(|| format!("{:032x}", fastrand::u128(..)));
    command.env(MARK, token);
    let mut guardian = GUARDIAN.lock().unwrap_or_else(PoisonError::into_inner);
    let watches = guardian.as_mut().is_some_and(|it| matches!(it.try_wait(), Ok(None)));
    if !watches {
        match start(token) {
            Ok(started) => *guardian = Some(started),
            Err(error) => {
                tracing::warn!(%error, "children would outlive this process if it were killed: no guardian can be started");
            }
        }
    }
}

fn start(token: &str) -> io::Result<Child> {
    use std::os::unix::process::CommandExt as _;
    let mut guardian = Command::new("sh");
    // It needs to find its programs, and nothing else of what is in force here.
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    guardian.args(["-c", WATCH]).arg(format!("{MARK}={token}")).env_clear().env("PATH", path);
    guardian.current_dir("/").process_group(0);
    guardian.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}
