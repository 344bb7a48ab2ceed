//! The line of figures on a terminal: drawn in the foreground, not behind a prompt.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod sandbox;

use std::process::Command;

use sandbox::{Ran, Sandbox};

/// Runs the program behind `--` on a terminal of its own until it ends, in the foreground or in a group behind it, and
/// prints what it wrote there. With `narrow` its terminal becomes narrower once the line is drawn.
const TERMINAL: &str = r#"
import fcntl, os, pty, struct, subprocess, sys, termios, time
where, command = sys.argv[1], sys.argv[2:]
size = lambda columns: fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
pid, terminal = pty.fork()
if pid == 0:
    # The session's leader stays in the foreground.
    group = (lambda: os.setpgid(0, 0)) if where == "behind" else None
    time.sleep(0.2)
    os._exit(subprocess.call(command, preexec_fn=group))
size(100)
narrow = where == "narrow"
while True:
    try:
        written = os.read(terminal, 65536)
    except OSError:
        break
    if not written:
        break
    sys.stdout.buffer.write(written)
    if narrow and b" failed, " in written:
        narrow = False
        sys.stdout.buffer.write(b"<narrow>")
        size(40)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

fn written(sandbox: &Sandbox, place: &str) -> String {
    // Ticks for long enough that the line is drawn several times.
    let up =
        sandbox.command(&["up", "--queue", "q", "--handler", "noop", "--workers", "0", "--no-gateway", "--until-done"]);
    let mut python = Command::new("python3");
    python.args(["-c", TERMINAL, place]).arg(up.get_program()).args(up.get_args());
    python.args(["--interval", "25ms", "--count", "100", "--rewind"]).current_dir(sandbox.dir.path());
    python.env("BATON_STORE", format!("sqlite:{}", sandbox.path().display())).env("TERM", "xterm");
    Ran::of(python.output().unwrap()).expect(0).out
}

#[test]
fn figures_are_drawn_in_the_foreground_of_a_terminal_and_not_behind_it() {
    let sandbox = Sandbox::new();
    let figures = " failed, ";
    let front = written(&sandbox, "front");
    assert!(front.contains(figures) && front.contains("joined as"), "{front:?}");
    let behind = written(&sandbox, "behind");
    assert!(!behind.contains(figures) && behind.contains("joined as"), "{behind:?}");
}

#[test]
fn a_line_that_a_narrower_terminal_breaks_is_taken_away_whole() {
    let sandbox = Sandbox::new();
    let written = written(&sandbox, "narrow");
    // A hundred characters are three lines of forty.
    let (_, behind) = written.split_once("<narrow>").unwrap();
    assert_eq!(behind.matches("\x1b[2A\x1b[J").count(), 1, "{behind:?}");
}
