//! One line for a command line that is not understood: the cause, and what was probably meant or where to read.
//!
//! What it names is there: a flag or command of the place that was reached, the nearest by its letters, or none.

use std::ffi::OsString;

use baton::{Name, settings::document::meant};
use clap::{
    Command, CommandFactory as _,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::{arguments::Arguments, exit::Failure};

/// What people call what is called otherwise here. The nearest name by its letters may be the opposite.
const OTHER_WORDS: [(&[&str], &str); 13] = [
    (&["kill", "shutdown", "quit", "down"], "stop"),
    (&["retry", "requeue", "rerun"], "errors --requeue"),
    (&["list", "ls", "ps", "queues", "nodes", "info"], "status"),
    (&["performance", "metrics", "rates", "top"], "stats"),
    (&["failed", "failures", "dead"], "errors"),
    (&["start", "run", "serve"], "up"),
    (&["work", "worker", "consume"], "node"),
    (&["enqueue", "add", "submit", "send"], "push"),
    (&["flush", "clear", "empty"], "purge"),
    (&["delete", "remove", "rm"], "purge QUEUE --remove"),
    (&["reset"], "destroy"),
    (&["workers"], "status"),
    (&["result", "results"], "call QUEUE BODY --result"),
];

/// Words for the log, which no command shows.
const OF_THE_LOG: [&str; 2] = ["log", "logs"];

/// Flags that `up` alone has.
const OF_THE_GATEWAY: [&str; 4] = ["--listen", "--no-gateway", "--host", "--demo-init"];

/// What is behind the cause of a refusal, as clap words it.
const BEHIND_THE_CAUSE: [&str; 4] = ["\n\n  tip:", "\n\n  note:", "\n\nUsage:", "\n\nFor more information"];

/// The cause without the usage text around it, and the way on.
pub(crate) fn of(error: &clap::Error, arguments: &[OsString]) -> Failure {
    let words: Vec<&str> = arguments.iter().skip(1).map(|it| it.to_str().unwrap_or_default()).collect();
    let mut root = Arguments::command();
    root.build();
    let place = Place::reached(&root, &words);
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if let Some(word) = said(ContextKind::InvalidSubcommand)
        && place.is_root()
        && let Some((_, command)) = OTHER_WORDS.iter().find(|(words, _)| words.contains(&word))
    {
        return Failure::usage(format!("there is no command {word:?}"), format!("that is `baton {command}`"));
    }
    if let Some(word) = said(ContextKind::InvalidSubcommand).filter(|word| place.is_root() && OF_THE_LOG.contains(word))
    {
        let next = "`baton up` and `baton node` print their log to standard error; `baton errors` shows what failed";
        return Failure::usage(format!("there is no command {word:?}"), next);
    }
    let argument = said(ContextKind::InvalidArg);
    let unknown = argument.filter(|_| error.kind() == ErrorKind::UnknownArgument);
    if let Some(flag) = unknown.filter(|flag| OF_THE_GATEWAY.contains(flag)) {
        return Failure::usage(format!("{flag}: the gateway belongs to `baton up`"), "see `baton up --help`");
    }
    let without_queue = argument_named(error, "QUEUE");
    let next = match error.kind() {
        ErrorKind::ValueValidation | ErrorKind::MissingRequiredArgument if without_queue => place.with_queue(),
        ErrorKind::InvalidSubcommand => said(ContextKind::InvalidSubcommand).and_then(|word| place.command_like(word)),
        ErrorKind::UnknownArgument => argument.and_then(|argument| place.instead_of(argument, &words)),
        ErrorKind::InvalidValue => match (said(ContextKind::InvalidValue), error.get(ContextKind::ValidValue)) {
            (Some(value), Some(ContextValue::Strings(known))) => asked(meant(value, known.iter().map(String::as_str))),
            _ => None,
        },
        _ => None,
    };
    let cause = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "no command is given".to_owned(),
        ErrorKind::MissingRequiredArgument if without_queue => "no queue is named".to_owned(),
        _ => cause(&error.to_string()),
    };
    Failure::usage(cause, next.unwrap_or_else(|| format!("see `{} --help`", place.name())))
}

/// Whether an error is about this positional argument.
fn argument_named(error: &clap::Error, name: &str) -> bool {
    let is_it = |it: &str| it.trim_matches(['<', '>', '[', ']']) == name;
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => is_it(argument),
        Some(ContextValue::Strings(arguments)) => arguments.iter().any(|it| is_it(it)),
        _ => false,
    }
}

fn cause(text: &str) -> String {
    let end = BEHIND_THE_CAUSE.iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    let cause = text.get(..end).unwrap_or(text);
    cause.strip_prefix("error: ").unwrap_or(cause).to_owned()
}

fn asked(near: Option<&str>) -> Option<String> {
    near.map(|near| format!("did you mean {near}?"))
}

/// The command that a line names, as deep as it does.
struct Place<'a> {
    path: Vec<&'a Command>,
}

impl<'a> Place<'a> {
    fn reached(root: &'a Command, words: &[&str]) -> Self {
        let (mut path, mut at, mut is_value) = (vec![root], root, false);
        for word in words {
            if *word == "--" {
                break;
            }
            if std::mem::take(&mut is_value) {
                continue;
            }
            if let Some(flag) = word.strip_prefix("--") {
                let (flag, value) = flag.split_once('=').map_or((flag, None), |(flag, value)| (flag, Some(value)));
                // Behind a flag that it does not have nothing was read.
                let Some(known) = at.get_arguments().find(|it| it.get_long() == Some(flag)) else { break };
                is_value = value.is_none() && known.get_action().takes_values();
            } else if let Some(command) = at.find_subcommand(word) {
                path.push(command);
                at = command;
            }
        }
        Self { path }
    }

    fn is_root(&self) -> bool {
        self.path.len() == 1
    }

    fn command(&self) -> Option<&'a Command> {
        self.path.last().copied()
    }

    /// As it is typed.
    fn name(&self) -> String {
        self.path.iter().map(|command| command.get_name()).collect::<Vec<_>>().join(" ")
    }

    /// How the command is written with its queue.
    fn with_queue(&self) -> Option<String> {
        let body = self.command()?.get_positionals().any(|it| it.get_id() == "body" || it.get_id() == "bodies");
        let body = if body { r#" '{"a":1}'"# } else { "" };
        Some(format!("name the queue first, as in `{} messages{body}`", self.name()))
    }

    fn command_like(&self, word: &str) -> Option<String> {
        let commands = self.command()?.get_subcommands().map(Command::get_name);
        meant(word, commands).map(|near| format!("did you mean `{} {near}`?", self.name()))
    }

    /// What to write in place of an argument that the command does not have.
    fn instead_of(&self, argument: &str, words: &[&str]) -> Option<String> {
        let (command, name) = (self.command()?, self.name());
        let mut values = command.get_positionals().filter_map(|it| it.get_value_names()?.first());
        let flag = argument.strip_prefix("--")?;
        if flag == "queue" && values.next().is_some_and(|first| first == "QUEUE") {
            let queue = value_of(argument, words).filter(|queue| is_name(queue)).unwrap_or("QUEUE");
            let rest: String = values.map(|value| format!(" {value}")).collect();
            return Some(format!("the queue is named without a flag: `{name} {queue}{rest}`"));
        }
        let flags = command.get_arguments().filter(|it| !it.is_hide_set()).filter_map(|it| it.get_long());
        if let Some(near) = meant(flag, flags) {
            return asked(Some(&format!("--{near}")));
        }
        let mut commands = words.iter().filter_map(|word| command.find_subcommand(word));
        let its = commands.find(|command| has_flag(command, flag))?;
        Some(format!("it stands behind the command: `{name} {} {argument}`", its.get_name()))
    }
}

fn has_flag(command: &Command, flag: &str) -> bool {
    command.get_arguments().any(|it| it.get_long() == Some(flag))
}

fn is_name(word: &str) -> bool {
    !word.starts_with('-') && Name::new(word).is_ok()
}

/// What a flag is given, behind it or behind its `=`.
fn value_of<'a>(flag: &str, words: &[&'a str]) -> Option<&'a str> {
    let mut words = words.iter();
    let found = words.find_map(|word| word.strip_prefix(flag).filter(|rest| rest.is_empty() || rest.starts_with('=')));
    match found?.strip_prefix('=') {
        Some(value) => Some(value),
        None => words.next().copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments;

    /// What is said of a line; no part of it has a space.
    fn said(line: &str) -> String {
        arguments::read(line.split(' ').map(OsString::from)).unwrap_err().to_string()
    }

    #[test]
    fn other_words_for_a_command_are_understood_and_named_here() {
        assert!(said("baton kill").contains("there is no command \"kill\"; that is `baton stop`"));
        let removal = "there is no command \"delete\"; that is `baton purge QUEUE --remove`";
        assert_eq!(said("baton delete"), removal);
        assert!(said("baton logs").contains("print their log to standard error"));
        for (words, command) in OTHER_WORDS {
            let command = command.split(' ').next().unwrap();
            assert!(Arguments::command().find_subcommand(command).is_some(), "{command}");
            assert!(words.iter().all(|word| Arguments::command().find_subcommand(word).is_none()), "{words:?}");
        }
        // Below a command a word may mean something else.
        assert_eq!(said("baton token delete"), "unrecognized subcommand 'delete'; see `baton token --help`");
    }

    #[test]
    fn flags_of_the_gateway_are_known_to_belong_to_up() {
        assert_eq!(said("baton node --listen x"), "--listen: the gateway belongs to `baton up`; see `baton up --help`");
        let told = said("baton node --retries three");
        assert!(told.contains("\"three\" is not a whole number, such as 3; see"), "{told}");
    }

    #[test]
    fn the_nearest_name_is_said_and_none_that_is_far_off() {
        for (line, told) in [
            ("baton error", "unrecognized subcommand 'error'; did you mean `baton errors`?"),
            ("baton frobnicate", "unrecognized subcommand 'frobnicate'; see `baton --help`"),
            ("baton sales laod", "unrecognized subcommand 'laod'; did you mean `baton sales load`?"),
            ("baton push mail --max-bodi 1", "unexpected argument '--max-bodi' found; did you mean --max-body?"),
            ("baton status --watch", "unexpected argument '--watch' found; see `baton status --help`"),
            ("baton push -q 1", "unexpected argument '-q' found; see `baton push --help`"),
            ("baton push --delay 5s", "unexpected argument '--delay' found; see `baton push --help`"),
            ("baton --fleet push status --bad", "unexpected argument '--bad' found; see `baton status --help`"),
            (
                "baton --handler noop node",
                "unexpected argument '--handler' found; it stands behind the command: `baton node --handler`",
            ),
        ] {
            assert_eq!(said(line), told, "{line}");
        }
        let told = said("baton node --role wroker");
        assert!(told.ends_with("; did you mean worker?"), "{told}");
    }

    #[test]
    fn how_a_command_names_its_queue_is_said_to_who_names_it_otherwise() {
        for (line, told) in [
            ("baton pause --queue mail", "the queue is named without a flag: `baton pause mail`"),
            ("baton resume --queue=mail", "the queue is named without a flag: `baton resume mail`"),
            ("baton resume --queue", "the queue is named without a flag: `baton resume QUEUE`"),
            ("baton call --queue mail 1", "the queue is named without a flag: `baton call mail BODY`"),
            ("baton push --queue mail 1", "the queue is named without a flag: `baton push mail BODY`"),
            ("baton errors --queue mail", "the queue is named without a flag: `baton errors mail`"),
            ("baton --wait 1 stats --queue mail", "the queue is named without a flag: `baton stats mail`"),
            ("baton audit --queue mail --deep", "the queue is named without a flag: `baton audit mail`"),
            ("baton status mail", "see `baton status --help`"),
        ] {
            let said = said(line);
            assert!(
                said.starts_with("unexpected argument '") && said.ends_with(&format!("; {told}")),
                "{line}: {said}"
            );
        }
    }

    #[test]
    fn a_body_in_the_place_of_the_queue_shows_how_the_queue_is_named() {
        for line in ["baton push {\"a\":1}", "baton push -", "baton push 1 2", "baton push", "baton call {\"a\":1}"] {
            let said = said(line);
            let command = line.split(' ').nth(1).unwrap();
            let next = format!("; name the queue first, as in `baton {command} messages '{{\"a\":1}}'`");
            assert!(said.ends_with(&next), "{line}: {said}");
        }
        assert_eq!(said("baton pause"), "no queue is named; name the queue first, as in `baton pause messages`");
    }

    #[test]
    fn the_help_that_is_named_is_that_of_the_command_reached() {
        for (line, help) in [
            ("baton sales load", "baton sales load --help"),
            ("baton token add", "baton token add --help"),
            ("baton source remove", "baton source remove --help"),
            ("baton source", "baton source --help"),
            ("baton --wait", "baton --help"),
        ] {
            let said = said(line);
            assert!(said.ends_with(&format!("; see `{help}`")), "{line}: {said}");
        }
    }
}
