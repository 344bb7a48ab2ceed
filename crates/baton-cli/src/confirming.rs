//! A question before something is removed for good.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use crate::exit::Failure;

/// Whether somebody is there to be asked; otherwise the flag has to be given, and this says so.
pub(crate) fn somebody_there(what: &str) -> Result<(), Failure> {
    match io::stdin().is_terminal() && io::stderr().is_terminal() {
        true => Ok(()),
        false => Err(Failure::usage(format!("{what}, and there is no terminal to ask at"), "add --yes")),
    }
}

/// Asks the person at the terminal.
pub(crate) fn confirm(question: &str) -> Result<(), Failure> {
    match is_agreed(question) {
        true => Ok(()),
        false => Err(Failure::new("not confirmed: nothing was removed", "answer y, or add --yes")),
    }
}

/// Whether the person at the terminal says yes. The end of input is a no, and the line of the question is ended for it.
pub(crate) fn is_agreed(question: &str) -> bool {
    let mut stderr = io::stderr();
    // A question that cannot be written is answered by nobody, which is a no.
    write!(stderr, "{question} [y/N] ").ok();
    stderr.flush().ok();
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).ok();
    if !answer.ends_with('\n') {
        writeln!(stderr).ok();
    }
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}
