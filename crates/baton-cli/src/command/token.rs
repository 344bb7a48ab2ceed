//! `baton token`: who may ask a gateway for what.

use std::path::PathBuf;

use baton::{Name, store::StoreUrl};
use baton_gateway::tokens::{Openness, Right, Standing, TokenError, TokenFile};
use clap::ValueEnum;
use serde::Serialize;

use crate::{
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    gateway::{of_tokens, tokens},
    output::{Output, moment, remark},
    settings::Settings,
};

/// Make, list and revoke the tokens of a fleet's gateway
///
/// Without tokens, everybody on this machine may ask the gateway for everything, and no other machine can reach it. From the
/// first token on, every request needs one: `Authorization: Bearer TOKEN`. A running gateway notices a change within a
/// second.
///
/// Tokens belong to one fleet, which --store, --fleet and --config name as for every command; other fleets go by their own.
/// After the last token is revoked, the gateway stays closed, also after a restart, until `baton token open`.
///
/// Tokens are of this machine and its user: a gateway on another machine needs its own. They lie in tokens.json in the state
/// folder, which only you can read, by their digests.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton token add ci
  baton token add dashboard --right read
  curl -H \"Authorization: Bearer $TOKEN\" --json '{\"n\":1}' http://127.0.0.1:8000/push/resize
  baton token list --store sqlite:shop.db
  baton token revoke ci
  baton token open")]
pub(crate) struct Token {
    #[command(subcommand)]
    deed: Deed,
}

#[derive(Debug, clap::Subcommand)]
enum Deed {
    Add(Add),
    List(List),
    Revoke(Revoke),
    Open(Open),
}

/// Make a token and print it: it is not shown again
///
/// Within a second the gateway refuses callers without a token. A fleet that the store does not have yet gets its token, and
/// is said to be new. If the fleet's store is an SQLite file that is missing, it is made.
#[derive(Debug, clap::Args)]
struct Add {
    /// The token's name, by which it is listed and revoked
    #[arg(value_name = "NAME")]
    name: Name,
    /// What it allows
    #[arg(long, value_enum, value_name = "RIGHT", default_value = "operate")]
    right: WhichRight,
    #[command(flatten)]
    place: Place,
    /// Print one JSON object: {"name","right","token"}
    #[arg(long)]
    json: bool,
}

/// Print whether the gateway is open, and the tokens without their secrets
#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    place: Place,
    /// Print one JSON object: {"gateway":"open"|"closed","tokens":[{"name","right","added_ms"}]}
    #[arg(long)]
    json: bool,
}

/// Take a token away: its bearer is refused within a second
///
/// After the last one, the gateway stays closed to everybody; see `baton token open`.
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

/// Open the gateway to everybody on this machine, without a token
///
/// Every user and every program of this machine may then push, call, cancel and read messages. Other machines still cannot
/// reach the gateway: any other address than 127.0.0.1 needs a token. The next `baton token add` closes it. It is refused
/// while there are tokens, and for a fleet that neither the store nor the file of tokens has.
#[derive(Debug, clap::Args)]
struct Open {
    #[command(flatten)]
    place: Place,
    /// Print one JSON object: {"gateway":"open"}
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Place {
    /// The file with the tokens, for a gateway that was started with the same --tokens [default: those of the fleet, in your
    /// state folder]
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
    gateway: &'static str,
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

#[derive(Serialize)]
struct Opened {
    gateway: &'static str,
}

/// The tokens that a command is about.
struct Chosen {
    file: TokenFile,
    /// Their fleet or file, as people are to read it.
    shown: String,
}

impl Place {
    fn chosen(self, settings: &Settings) -> Result<Chosen, Failure> {
        let of_fleet = || format!("fleet {} at {}", settings.fleet.value, settings.store.value);
        let shown = self.tokens.as_ref().map_or_else(of_fleet, |path| path.display().to_string());
        let file = tokens(self.tokens, settings);
        let file = file
            .ok_or_else(|| Failure::usage("there is no home folder to keep tokens in", "name a file with --tokens"))?;
        Ok(Chosen { file, shown })
    }
}

impl Token {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        match self.deed {
            Deed::Add(Add { name, right, place, json }) => {
                let right = match right {
                    WhichRight::Read => Right::Read,
                    WhichRight::Operate => Right::Operate,
                };
                if place.tokens.is_none()
                    && let Some(new) = make_store(settings).await?
                {
                    remark(&new);
                }
                let Chosen { file, shown } = place.chosen(settings)?;
                let told = format!("token {name} is of {shown}: its gateway asks for a token within a second");
                let exit = add(&file, name, right, json)?;
                remark(&told);
                Ok(exit)
            }
            Deed::List(List { place, json }) => {
                let Chosen { file, shown } = place.chosen(settings)?;
                let standing = file.read().map_err(|error| of_tokens(&error))?;
                let line = format!("{shown}: {standing}");
                let gateway = if standing.openness.is_open() { "open" } else { "closed" };
                let Standing { tokens, .. } = standing;
                let tokens =
                    tokens.into_iter().map(|it| Known { name: it.name, right: it.right, added_ms: it.added_ms });
                let listed = Listed { gateway, tokens: tokens.collect() };
                Output::print(json, &listed, |output| {
                    output.line(&line)?;
                    if listed.tokens.is_empty() {
                        return Ok(());
                    }
                    let row = |it: &Known| vec![it.name.clone(), it.right.to_string(), moment(it.added_ms)];
                    output.table(&["token", "right", "added"], &listed.tokens.iter().map(row).collect::<Vec<_>>())
                })
            }
            Deed::Revoke(Revoke { name, place, json }) => {
                let Chosen { file, shown } = place.chosen(settings)?;
                let left = file.revoke(&name).map_err(|error| match error {
                    TokenError::Unknown(_) => of_tokens(&error).of(&shown),
                    _ => of_tokens(&error),
                })?;
                let last = "; that was the last one: the gateway stays closed to everybody until `baton token open`";
                let line = format!("revoked token {name} of {shown}{}", if left == 0 { last } else { "" });
                let done = format!("token {name} is revoked");
                Output::print(json, &Revoked { revoked: name }, |output| output.line(&line))
                    .map_err(|failure| failure.of(&done))
            }
            Deed::Open(Open { place, json }) => {
                let is_of_fleet = place.tokens.is_none();
                let Chosen { file, shown } = place.chosen(settings)?;
                if is_of_fleet && let Some(missing) = Connection::missing_fleet(settings).await {
                    // A fleet without an entry is open as it is. One with an entry may have lost its store.
                    if file.read().map_err(|error| of_tokens(&error))?.openness == Openness::Open {
                        return Err(missing);
                    }
                    remark(&missing.to_string());
                }
                file.open().map_err(|error| of_tokens(&error))?;
                let line = format!(
                    "{shown}: the gateway is open: every user and program of this machine may push, call, cancel and read \
                     messages without a token"
                );
                Output::print(json, &Opened { gateway: "open" }, |output| output.line(&line))
                    .map_err(|failure| failure.of("the gateway is open"))
            }
        }
    }
}

/// Makes the store if it is a file that is missing, so that tokens are of a file that can be told from others. Returns that
/// the store or the fleet is new: its name may have a slip in it.
async fn make_store(settings: &Settings) -> Result<Option<String>, Failure> {
    match &settings.store.value {
        StoreUrl::Sqlite(path) if !path.exists() => {
            let connection = Connection::open(settings, Missing::Create, None)?;
            connection.given(connection.admin.survey().await)?;
            let novelty = connection.novelty();
            connection.admin.leave().await;
            Ok(novelty)
        }
        _ => Ok(Connection::missing_fleet(settings).await.map(|it| it.to_string())),
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
