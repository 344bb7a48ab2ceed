//! How a guardian is started: this program again, or a shell.
//!
//! The program can only be its own guardian if its `main` calls [`guard_children`](super::guard_children). Else a shell script does
//! the same work. It needs `sh` and `grep`, which are looked for before any child starts.

use std::{
    env,
    ffi::OsString,
    fs, io,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

/// The name of a guardian in a list of processes. It has neither the name of the program nor its command line, so that whoever kills
/// a node by these does not kill its guardian.
pub(super) const NAME: &str = "child-guardian";
/// The variable that tells a guardian which mark to look for.
pub(super) const ORDER: &str = "BATON_GUARDIAN_OF";
/// This program, also if its file was replaced meanwhile.
const THIS: &str = "/proc/self/exe";
/// Where a dynamic linker looks: the program may need it to start.
const LIBRARIES: &str = "LD_LIBRARY_PATH";
/// Where programs are looked for after the folders of `PATH`.
const FOLDERS: [&str; 2] = ["/usr/bin", "/bin"];

/// Waits for the end of its input. Then it kills the groups in the list, which is its error output, and all processes with the mark,
/// until there are none: one that was just starting others may have left some. `$0` is the mark, `$1` the program grep.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
while read -r line; do :; done
while read -r group; do
  [ -z "$group" ] || kill -s KILL -- "-$group" 2>/dev/null
done </proc/self/fd/2
for turn in 1 2 3 4 5 6 7 8 9 10; do
  left=
  for place in $("$1" -slF -e "$0" /proc/[0-9]*/environ); do
    place=${place#/proc/}
    left="$left ${place%/environ}"
  done
  [ -n "$left" ] || exit 0
  kill -s KILL $left 2>/dev/null
done
"#;

/// Whether this program is its own guardian.
static IS_OWN: AtomicBool = AtomicBool::new(false);

/// This program's `main` serves as a guardian where it is asked to.
pub(super) fn is_own() {
    IS_OWN.store(true, Ordering::Relaxed);
}

/// The command of a guardian that looks for this mark. It inherits nothing else of what is in force here, so that the
/// guardian of an outer process does not take it for a child.
pub(super) fn command(mark: &str) -> io::Result<Command> {
    let mut command = if IS_OWN.load(Ordering::Relaxed) {
        let mut command = Command::new(THIS);
        command.env_clear().env(ORDER, mark).envs(env::var_os(LIBRARIES).map(|folders| (LIBRARIES, folders)));
        command.arg(std::process::id().to_string());
        command
    } else {
        let [shell, grep] = tools()?;
        let mut command = Command::new(shell);
        command.env_clear().args(["-c", SCRIPT, mark]).arg(grep);
        command
    };
    command.arg0(NAME);
    Ok(command)
}

/// Whether a guardian could be started.
///
/// # Errors
/// What it lacks, and the remedy.
pub(crate) fn check() -> io::Result<()> {
    if IS_OWN.load(Ordering::Relaxed) { Ok(()) } else { tools().map(drop) }
}

fn tools() -> io::Result<[PathBuf; 2]> {
    let folders = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&folders).chain(FOLDERS.map(PathBuf::from)).collect();
    Ok([tool("sh", &folders)?, tool("grep", &folders)?])
}

/// A program in one of these folders.
fn tool(name: &str, folders: &[PathBuf]) -> io::Result<PathBuf> {
    let is_program = |place: &PathBuf| {
        place.is_absolute() && fs::metadata(place).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    folders.iter().map(|folder| folder.join(OsString::from(name))).find(is_program).ok_or_else(|| {
        let lacks = format!(
            "there is no `{name}`, which has to end child processes if this one is killed: install it, or call \
             baton::pool::guard_children() first in main"
        );
        io::Error::new(io::ErrorKind::NotFound, lacks)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_is_nowhere_is_named_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let folders = ["relative".into(), folder.path().to_owned()];
        fs::write(folder.path().join("grep"), "#!/bin/sh\n").unwrap();
        let told = tool("grep", &folders).unwrap_err().to_string();
        assert!(told.contains("no `grep`") && told.contains("guard_children()"), "{told}");
        fs::set_permissions(folder.path().join("grep"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(tool("grep", &folders).unwrap(), folder.path().join("grep"));
    }
}
