//! The program outside of the workspace builds and does what it says.

use std::{fs, path::Path, process::Command};

#[test]
fn a_program_outside_of_the_workspace_uses_the_library() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = root.join("examples/outside");
    // With the dependencies of the workspace as they are locked there: these have been fetched, and are up to date.
    fs::copy(root.join("Cargo.lock"), program.join("Cargo.lock")).expect("a lock file");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--offline", "--manifest-path"]);
    cargo.arg(program.join("Cargo.toml")).env("CARGO_TARGET_DIR", root.join("target/outside"));
    // Set for packages of the workspace, and not for it.
    for variable in ["CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "CARGO_PKG_NAME"] {
        cargo.env_remove(variable);
    }
    let ran = cargo.output().expect("cargo runs");
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{err}");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines,
        [
            "sold before the start: true, [40, 2]",
            "a failed start is told: no such file",
            "1000 readers, 1 computation",
            "after a sale: 50, 2 computations",
            "an error reaches its readers: no data"
        ]
    );
}
