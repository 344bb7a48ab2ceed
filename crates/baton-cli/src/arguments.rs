//! The command line: what is understood.

use std::{ffi::OsString, ops::ControlFlow};

use baton::Name;
use clap::{FromArgMatches as _, Parser, Subcommand, error::ErrorKind};

use crate::{
    command,
    exit::{Exit, Failure},
    help, refusal,
    settings::Globals,
};

const EXAMPLES: &str = "\
Examples:
  baton up --demo                           a demonstration: a fleet on this machine
  baton up --queue fetch --lines urls.txt --exec-once 'curl -fsS -- {}' --until-done
                                            a process a line, as many at once as cores; run again after a kill it goes on
  baton push messages '{\"n\":1}' '{\"n\":2}'   two messages to the queue `messages`
  baton push mail --file june.ndjson --resume june
                                            exactly once, however often it is run
  baton errors                              list failed messages
  baton --getErrors                         print them and remove them: `baton errors --remove`
  baton audit --deep                        prove that nothing is lost or done twice
  baton --rhost 10.0.0.5 status             a fleet in Redis

Exit codes: 0 ok, 1 failure, 2 usage, 3 finished, but messages failed, 4 books unbalanced, 5 store unreachable or unfit";

/// A fleet of identical nodes over one store: nothing lost, nothing completed twice, and the books prove it.
#[derive(Debug, Parser)]
#[command(name = "baton", version, after_help = EXAMPLES, max_term_width = 110)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Up(command::up::Up),
    Node(command::node::Node),
    Push(command::push::Push),
    Call(command::call::Call),
    Errors(command::errors::Errors),
    Audit(command::audit::Audit),
    Status(command::status::Status),
    Stats(command::stats::Stats),
    Source(command::source::Source),
    Pause(command::pause::Pause),
    Resume(command::pause::Resume),
    Stop(command::stop::Stop),
    Destroy(command::destroy::Destroy),
    Purge(command::purge::Purge),
    Backup(command::backup::Backup),
    Restore(command::restore::Restore),
    Migrate(command::migrate::Migrate),
    SubsetSum(command::subset_sum::SubsetSum),
    Sales(command::sales::Sales),
    Token(command::token::Token),
    Bench(command::bench::Bench),
    Config(command::config::Config),
}

/// Reads the queue that stands before bodies. A body in its place means that no queue was named: a number or a text in
/// quotes would be pushed nowhere, or become the name of a queue.
pub(crate) fn queue_before_bodies(word: &str) -> Result<Name, String> {
    if word == "-" || serde_json::from_str::<serde::de::IgnoredAny>(word).is_ok() {
        return Err("this is a body, and the queue stands before it".to_owned());
    }
    Name::new(word).map_err(|error| error.to_string())
}

/// What the command line asks for, or how the run ends if it asked for help alone or named no command.
pub(crate) fn read(arguments: impl Iterator<Item = OsString>) -> Result<ControlFlow<Exit, Arguments>, Failure> {
    let arguments: Vec<OsString> = with_old_names(arguments.collect());
    let matches = help::command().try_get_matches_from(&arguments);
    let read = matches.and_then(|mut matches| {
        Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut help::command()))
    });
    let error = match read {
        Ok(read) => return Ok(ControlFlow::Continue(read)),
        Err(error) => error,
    };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => help::print(&error.render()).map(ControlFlow::Break),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if arguments.len() < 2 => {
            Ok(ControlFlow::Break(help::first_steps()))
        }
        _ => Err(refusal::of(&error, &arguments)),
    }
}

/// `--getErrors` where a command is expected means `errors --remove`.
fn with_old_names(mut arguments: Vec<OsString>) -> Vec<OsString> {
    const WITH_VALUE: [&str; 7] = ["--store", "--fleet", "--rhost", "--rport", "--rdb", "--wait", "--config"];
    let mut is_value = false;
    for place in 1..arguments.len() {
        let Some(argument) = arguments.get_mut(place) else { break };
        if std::mem::take(&mut is_value) {
            continue;
        }
        if argument == "--getErrors" {
            *argument = "errors".into();
            arguments.insert(place + 1, "--remove".into());
            break;
        }
        let Some(flag) = argument.to_str().filter(|flag| flag.starts_with("--") && flag.len() > 2) else { break };
        is_value = WITH_VALUE.contains(&flag);
    }
    arguments
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn renamed(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        let words = with_old_names(words).into_iter().map(|it| it.into_string().unwrap());
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn get_errors_is_taken_for_errors_remove_where_a_command_stands() {
        assert_eq!(renamed("baton --getErrors --json"), "baton errors --remove --json");
        assert_eq!(renamed("baton --rhost push --wait=3 --getErrors"), "baton --rhost push --wait=3 errors --remove");
        assert_eq!(renamed("baton push --getErrors"), "baton push --getErrors");
        assert_eq!(renamed("baton -- --getErrors"), "baton -- --getErrors");
    }

    #[test]
    fn flags_of_the_gateway_contradict_its_absence_in_any_order_and_belong_to_up() {
        let said = |line: &str| {
            let failure = read(line.split(' ').map(OsString::from)).unwrap_err();
            (failure.exit, failure.to_string())
        };
        for flag in ["--listen 8001", "--host a", "--tokens t", "--sales s", "--demo-init 5s", "--linger 5s"] {
            for line in [format!("baton up --no-gateway {flag}"), format!("baton up {flag} --no-gateway")] {
                let (exit, text) = said(&line);
                assert!(exit == Exit::Usage && text.contains("cannot be used with"), "{line}: {text}");
            }
        }
        let (_, elsewhere) = said("baton node --listen 8001");
        assert!(elsewhere.contains("--listen: the gateway belongs to `baton up`"), "{elsewhere}");
    }

    #[test]
    fn the_command_line_is_well_defined() {
        Arguments::command().debug_assert();
    }
}
