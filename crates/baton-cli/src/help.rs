//! Help: the whole of it with `--help`, the usual flags with `-h`, and the first steps where no command is given.

use std::io::Write as _;

use clap::{Command, CommandFactory as _, builder::StyledStr};

use crate::{
    arguments::Arguments,
    exit::{Exit, Failure},
    output::Output,
};

/// Flags of every command that `-h` leaves out.
const SELDOM_EVERYWHERE: [&str; 4] = ["rhost", "rport", "rdb", "wait"];

/// Of commands with many flags, those that `-h` shows. Those of every command come on top.
const USUAL: [(&str, &[&str]); 6] = [
    (
        "up",
        &[
            "demo",
            "queues",
            "exec",
            "exec_once",
            "concurrency",
            "retries",
            "lines",
            "until_done",
            "max_workers",
            "listen",
        ],
    ),
    ("node", &["role", "queues", "exec", "exec_once", "concurrency", "retries", "lines", "cron", "until_done"]),
    ("errors", &["queue", "remove", "requeue", "limit", "id", "containing", "group", "json"]),
    ("push", &["bodies", "file", "queue", "once", "resume", "json"]),
    ("subset-sum", &["data", "sum", "mode", "limit", "count_only", "max_estimated_time", "json"]),
    ("bench", &["messages", "rounds", "only", "json"]),
];

/// Printed where no command is given.
const FIRST_STEPS: &str = "\
baton: no command is given. The first steps:

  baton up --demo                             see a fleet work; Ctrl-C ends it
  baton up --queue mail --exec-once cat       work for a queue: a process runs for each message
  baton push mail '{\"to\":\"ann\"}'              in another terminal: push a message to this queue

`baton -h` lists the commands, `baton COMMAND -h` the usual flags of one, `baton COMMAND --help` all of them.
";

/// The command line with both kinds of help.
pub(crate) fn command() -> Command {
    let command = Arguments::command();
    let command =
        command.mut_args(|it| if SELDOM_EVERYWHERE.contains(&it.get_id().as_str()) { seldom(it) } else { it });
    with_short_help(command, "baton")
}

fn seldom(argument: clap::Arg) -> clap::Arg {
    argument.hide_short_help(true)
}

/// Shortens what `-h` prints of a command and of those below it; `path` is how the command is typed.
fn with_short_help(command: Command, path: &str) -> Command {
    let usual = USUAL.iter().find(|(name, _)| *name == command.get_name()).map(|(_, usual)| *usual);
    let command = match usual {
        Some(usual) => command.mut_args(|it| if usual.contains(&it.get_id().as_str()) { it } else { seldom(it) }),
        None => command,
    };
    let all = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    // The examples; what comes behind them is for `--help`.
    let examples = all.split_once("\n\n").map_or(all.as_str(), |(examples, _)| examples);
    let short = format!("{examples}\n\n`{path} --help` has all flags and more about each.");
    let command = command.after_help(short.trim_start().to_owned()).after_long_help(all);
    command.mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        with_short_help(below, &path)
    })
}

/// Prints the help or the version that was asked for.
pub(crate) fn print(text: &StyledStr) -> Result<Exit, Failure> {
    let mut output = Output::new();
    output.styled(text)?;
    output.flush()?;
    Ok(Exit::Ok)
}

/// Shows how to begin. A command line without a command is a mistake in a script, so this is no success.
pub(crate) fn first_steps() -> Exit {
    std::io::stderr().lock().write_all(FIRST_STEPS.as_bytes()).ok();
    Exit::Usage
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use baton_testkit::golden;

    use super::*;

    const WIDTH: usize = 100;

    /// The help of a command and of all below it, by the names of their files.
    fn collect(command: &mut Command, path: &str, into: &mut BTreeMap<String, String>) {
        let (short, long) = (command.render_help(), command.render_long_help());
        let text = format!("$ {path} -h\n\n{short}\n\n$ {path} --help\n\n{long}\n");
        let lines = text.lines().map(str::trim_end).collect::<Vec<_>>();
        into.insert(format!("{}.txt", path.replace(' ', "-")), lines.join("\n") + "\n");
        for below in command.get_subcommands_mut().filter(|it| it.get_name() != "help") {
            let path = format!("{path} {}", below.get_name());
            collect(below, &path, into);
        }
    }

    #[test]
    fn golden_help_of_every_command() {
        let (mut command, mut all) = (command().term_width(WIDTH), BTreeMap::new());
        command.build();
        collect(&mut command, "baton", &mut all);
        assert!(all.len() > 20, "{:?}", all.keys());
        golden::assert_folder("help", &all);
    }

    #[test]
    fn short_help_shows_what_is_usual_and_says_where_the_rest_is() {
        let mut root = command();
        root.build();
        for (name, usual) in USUAL {
            let command = root.find_subcommand_mut(name).unwrap();
            for id in usual {
                assert!(command.get_arguments().any(|it| it.get_id() == id), "{name} has no {id}");
            }
        }
        for command in root.get_subcommands_mut().filter(|it| it.get_name() != "help") {
            let is_shown = |it: &&clap::Arg| !it.is_hide_set() && !it.is_hide_short_help_set();
            let shown = command.get_arguments().filter(is_shown).count();
            assert!(shown <= 14, "{} shows {shown} flags", command.get_name());
            let short = command.render_help().to_string();
            let last = format!("`baton {} --help` has all flags and more about each.", command.get_name());
            assert_eq!(short.trim_end().lines().last(), Some(last.as_str()));
        }
        assert!(!root.render_help().to_string().contains("--rhost <"));
        assert!(root.render_long_help().to_string().contains("--rhost <"));
    }
}
