//! Help as people and scripts ask for it, and where it cannot be written.

mod sandbox;

use std::fs::File;

use sandbox::{Ran, Sandbox};

const ASKED: [&[&str]; 7] =
    [&["--help"], &["-h"], &["--version"], &["help"], &["help", "up"], &["up", "--help"], &["token", "add", "-h"]];

#[test]
fn help_goes_to_standard_output_and_succeeds() {
    let sandbox = Sandbox::new();
    for asked in ASKED {
        let ran = sandbox.run(asked).expect(0);
        assert!(ran.out.ends_with('\n') && ran.err.is_empty(), "{asked:?}: {:?} {}", ran.out, ran.err);
        assert!(!ran.out.contains('\x1b'), "colours are for terminals: {asked:?}");
    }
}

#[test]
fn help_that_cannot_be_written_is_a_failure() {
    let sandbox = Sandbox::new();
    for asked in ASKED {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ran = Ran::of(sandbox.command(asked).stdout(full).output().unwrap()).expect(1);
        assert!(ran.one_line().contains("cannot write to standard output: "), "{asked:?}: {}", ran.err);
    }
}

#[test]
fn a_reader_of_help_may_leave_early() {
    let sandbox = Sandbox::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ran = Ran::of(sandbox.command(&["up", "--help"]).stdout(writer).output().unwrap()).expect(0);
    assert_eq!(ran.err, "");
}

#[test]
fn a_bare_command_shows_the_first_steps() {
    let sandbox = Sandbox::new();
    let none: [&str; 0] = [];
    let ran = sandbox.run(&none).expect(2);
    assert_eq!(ran.out, "");
    for step in ["no command is given", "baton up --demo", "--exec-once", "baton push ", "baton -h", "--help"] {
        assert!(ran.err.contains(step), "{step}: {}", ran.err);
    }
    assert!(ran.err.lines().count() < 10 && ran.err.lines().all(|line| line.len() <= 110), "{}", ran.err);
    // Something is missing there, but these are not a newcomer's.
    for line in [&["--fleet", "x"][..], &["token"]] {
        assert!(sandbox.run(line).expect(2).one_line().contains("; see `baton"));
    }
}
