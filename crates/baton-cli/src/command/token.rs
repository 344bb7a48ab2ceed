//! `baton token`: who may ask a gateway for what.

use std::path::PathBuf;

use baton::Name;
use baton_gateway::tokens::{Right, TokenError, TokenFile};
use clap::ValueEnum;
use serde::Serialize;

use crate::{
    exit::{Exit, Failure},
    gateway::of_tokens,
    output::{Output, moment},
};

/// Make, list and revoke the tokens of the gateway
///
/// As long as there is none, everybody on this machine may ask the gateway for everything, and it listens at loopback
/// alone. From the first token on, whoever asks must bear one: `Authorization: Bearer TOKEN`. Tokens are kept by their
/// digests, in a file of yours that nobody else can read; a running gateway notices a change within a second. The file is of
/// this machine: a gateway on another one goes by its own.
///
/// When the last one is revoked, running gateways stay closed to everybody; one that is started then is open to everybody on
/// this machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton token add ci
  baton token add dashboard --right read
  curl -H \"Authorization: Bearer $TOKEN\" --json '{\"n\":1}' http://127.0.0.1:8000/push/resize
  baton token revoke ci")]
pub(crate) struct Token {
    #[command(subcommand)]
    deed: Deed,
}

#[derive(Debug, clap::Subcommand)]
enum Deed {
    Add(Add),
    List(List),
    Revoke(Revoke),
}

/// Make a token and print it: it is not shown again
#[derive(Debug, clap::Args)]
struct Add {
    /// What to call it
    #[arg(value_name = "NAME")]
    name: Name,
    /// What it allows
    #[arg(long, value_enum, value_name = "RIGHT", default_value = "admin")]
    right: WhichRight,
    #[command(flatten)]
    place: Place,
    /// Print one JSON object: {"name","right","token"}
    #[arg(long)]
    json: bool,
}

/// Print the tokens, without what their bearers present
#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    place: Place,
    /// Print one JSON object: {"tokens":[{"name","right","added_ms"}]}
    #[arg(long)]
    json: bool,
}

/// Take a token away: whoever bears it is refused from now on
#[derive(Debug, clap::Args)]
struct Revoke {
    /// The token
    #[arg(value_name = "NAME")]
    name: Name,
    #[command(flatten)]
    place: Place,
    /// Print one JSON object: {"revoked"}
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Place {
    /// The file with the tokens [default: tokens.json in your state folder]
    #[arg(long, value_name = "PATH")]
    tokens: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WhichRight {
    /// To look
    Read,
    /// To look and to change something: push, call, cancel
    Operate,
}

#[derive(Serialize)]
struct Added {
    name: Name,
    right: Right,
    token: String,
}

#[derive(Serialize)]
struct Listed {
    tokens: Vec<Known>,
}

#[derive(Serialize)]
struct Known {
    name: String,
    right: Right,
    added_ms: u64,
}

#[derive(Serialize)]
struct Revoked {
    revoked: Name,
}

impl Place {
    fn file(self) -> Result<TokenFile, Failure> {
        let file = self.tokens.map(TokenFile::at).or_else(TokenFile::of_user);
        file.ok_or_else(|| Failure::usage("there is no home folder to keep tokens in", "name a file with --tokens"))
    }
}

impl Token {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self.deed {
            Deed::Add(Add { name, right, place, json }) => {
                let right = match right {
                    WhichRight::Read => Right::Read,
                    WhichRight::Operate => Right::Operate,
                };
                add(&place.file()?, name, right, json)
            }
            Deed::List(List { place, json }) => {
                let tokens = place.file()?.read().map_err(|error| of_tokens(&error))?.into_iter();
                let tokens = tokens.map(|it| Known { name: it.name, right: it.right, added_ms: it.added_ms });
                let listed = Listed { tokens: tokens.collect() };
                Output::print(json, &listed, |output| match listed.tokens.as_slice() {
                    [] => output.line("there is no token"),
                    some => {
                        let rows = some.iter().map(|it| vec![it.name.clone(), shown(it.right), moment(it.added_ms)]);
                        output.table(&["token", "right", "added"], &rows.collect::<Vec<_>>())
                    }
                })
            }
            Deed::Revoke(Revoke { name, place, json }) => {
                let left = place.file()?.revoke(&name).map_err(|error| of_tokens(&error))?;
                let last = "; that was the last one: running gateways stay closed to everybody, one that is started now \
                            is open to everybody on this machine";
                let line = format!("revoked token {name}{}", if left == 0 { last } else { "" });
                let done = format!("token {name} is revoked");
                Output::print(json, &Revoked { revoked: name }, |output| output.line(&line))
                    .map_err(|failure| failure.of(&done))
            }
        }
    }
}

/// Makes a token. It is printed before it is put in force: a lost print leaves no token that nobody has seen.
fn add(file: &TokenFile, name: Name, right: Right, json: bool) -> Result<Exit, Failure> {
    const NONE: &str = "no token was made";
    let nowhere = |why: &str| Failure::new(format!("{NONE}: {why}"), "give standard output a place to go");
    if !Output::is_there() {
        return Err(nowhere("there is no standard output to print it to"));
    }
    let new = file.prepare(&name, right).map_err(|error| of_tokens(&error))?;
    let (mut output, token) = (Output::new(), new.secret().to_owned());
    let printed = match json {
        true => output.json(&Added { name, right, token }),
        false => output.line(&token),
    };
    printed.and_then(|()| output.flush()).map_err(|failure| failure.of(NONE))?;
    if output.is_closed() {
        return Err(nowhere("the reader of standard output has gone"));
    }
    match new.activate() {
        Ok(()) => Ok(Exit::Ok),
        Err(error @ TokenError::Unsynced { .. }) => Err(of_tokens(&error)),
        Err(error) => Err(of_tokens(&error).of("the token that was printed is not in force")),
    }
}

fn shown(right: Right) -> String {
    match right {
        Right::Read => "read",
        Right::Operate => "admin",
    }
    .to_owned()
}
