//! A terminal of its own for a command.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Command;

use crate::sandbox::Ran;

/// Runs a command on a new terminal, types the first argument when it is asked, and prints what the command wrote there.
const PROGRAM: &str = r#"
import os, pty, sys
typed, command = sys.argv[1].encode(), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
written = b""
while True:
    try:
        some = os.read(terminal, 65536)
    except OSError:
        break
    if not some:
        break
    written += some
    if typed and b"[y/N] " in written:
        os.write(terminal, typed)
        typed = b""
sys.stdout.buffer.write(written)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

/// Runs the command with its variables and these on a terminal. A question gets `typed` as its answer. What the command wrote
/// is its output.
pub(crate) fn on_a_terminal(command: &Command, typed: &str, variables: &[(&str, &str)]) -> Ran {
    let mut python = Command::new("python3");
    python.args(["-c", PROGRAM, typed]).arg(command.get_program()).args(command.get_args());
    python.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    python.env("PATH", std::env::var_os("PATH").unwrap()).env("TERM", "xterm").envs(variables.iter().copied());
    if let Some(folder) = command.get_current_dir() {
        python.current_dir(folder);
    }
    Ran::of(python.output().unwrap())
}
