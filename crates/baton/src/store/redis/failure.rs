//! What an error of the server or of the way to it means to a caller.

use redis::{ErrorKind, RedisError};

use crate::store::StoreError;

/// Where the rights stand that a user needs.
const SEE_RIGHTS: &str =
    "give it the rights that README names (The rights a Redis user needs), or name another user in the URL";

/// Turns an error into one clear line. `server` is the address without a password; it is used as `user`, who needs
/// these `keys`.
pub(super) fn store_error(server: &str, user: &str, keys: &str, error: &RedisError) -> StoreError {
    let detail = error.detail().unwrap_or_default();
    if let Some(why) = denied(user, keys, error.code(), detail) {
        return StoreError::Unfit(format!("Redis at {server} {why}"));
    }
    match error.code() {
        Some("OOM") => {
            StoreError::NoRoom(format!("Redis at {server} is at its maxmemory: raise it or let workers catch up"))
        }
        // Unlike at its maxmemory nothing at all can be stored: neither beats nor outcomes.
        Some("MISCONF") => StoreError::Unreachable(format!(
            "Redis at {server} cannot write to its disk, and takes nothing until it can: {}",
            detail.split(". ").next().unwrap_or_default()
        )),
        Some("READONLY") => demoted(server),
        Some("NOAUTH") => wants_password(server),
        Some("WRONGPASS") => refused_password(server),
        Some("FOREIGN") => foreign(server, detail),
        Some("WRONGTYPE") => StoreError::Unfit(format!(
            "Redis at {server} holds something of another program under a key of this fleet: give the fleet another name"
        )),
        Some("DAMAGED") => StoreError::Damaged(detail.to_owned()),
        Some("LOADING" | "TRYAGAIN" | "MASTERDOWN" | "BUSY" | "CLUSTERDOWN" | "NOREPLICAS" | "UNBLOCKED") => {
            StoreError::Unreachable(format!("Redis at {server} is not ready: {detail}"))
        }
        Some("ERR") if detail.contains("max number of clients") => full(server, detail),
        // A script that had written nothing yet: it is run again.
        Some("ERR") if detail.contains("killed by user") => {
            StoreError::Unreachable(format!("Redis at {server} was told to end a script: {detail}"))
        }
        // The words of a refused greeting.
        Some("ERR") if detail.contains("Authentication required") => wants_password(server),
        Some(code) => StoreError::Unfit(format!("Redis at {server} answered {code} {detail}: name another store")),
        None => match error.kind() {
            ErrorKind::Io if error.to_string().contains("certificate") => StoreError::Unfit(format!(
                "{server} cannot be trusted: {error}; let SSL_CERT_FILE name the certificate of its authority"
            )),
            ErrorKind::Io => StoreError::Unreachable(format!("cannot reach {server}: {}", cause(error))),
            ErrorKind::AuthenticationFailed => refused_password(server),
            // The client names a connection that was cut within an answer like this.
            ErrorKind::Parse if error.to_string().contains("end of input") => {
                StoreError::Unreachable(format!("cannot reach {server}: the connection was lost"))
            }
            ErrorKind::Parse => {
                StoreError::Unfit(format!("what answers at {server} does not speak Redis: name another address"))
            }
            _ => StoreError::Unfit(format!("{server} cannot be used ({error}): name another store")),
        },
    }
}

/// What is missing, and the line that mends it, if a user lacks a right or the server a command.
fn denied(user: &str, keys: &str, code: Option<&str>, detail: &str) -> Option<String> {
    let rights = |rules: &[String]| {
        format!(
            "does not let user {user} do all that Baton does: run `ACL SETUSER {user} {}` there, or name another user in \
             the URL",
            rules.join(" ")
        )
    };
    let command = |name: &str| {
        format!(
            "has no command {name}: take it out of `rename-command` in the server's settings, and restart the server"
        )
    };
    let quoted = || detail.split('\'').nth(1).filter(|name| !name.is_empty());
    match code? {
        // What a script found missing before it began.
        "RIGHTS" => {
            let missing = detail.split(" script: ").next().unwrap_or(detail).split(' ');
            let (unknown, lacking): (Vec<&str>, Vec<&str>) = missing.partition(|word| word.starts_with('!'));
            if !unknown.is_empty() {
                let names: Vec<_> = unknown.iter().map(|word| word.trim_start_matches('!')).collect();
                return Some(command(&names.join(", ")));
            }
            let rule = |word: &&str| if *word == "~" { format!("~{keys}") } else { grant(word) };
            Some(rights(&lacking.iter().map(rule).collect::<Vec<_>>()))
        }
        "NOPERM" if detail.contains(" run the '") => Some(rights(&[grant(quoted()?)])),
        "NOPERM" => Some(rights(&[format!("~{keys}")])),
        "ERR" if detail.starts_with("unknown command") => Some(command(&quoted()?.to_uppercase())),
        "ERR" if names_no_command(detail) => {
            Some(format!("does not let user {user} do all that Baton does: {SEE_RIGHTS}"))
        }
        _ => None,
    }
}

/// Whether this is how the server refuses a command within a script, which does not say what command.
fn names_no_command(detail: &str) -> bool {
    ["The user executing the script", "Unknown Redis command", "Invalid command passed to redis.acl"]
        .iter()
        .any(|begin| detail.starts_with(begin))
}

/// Whether a right is missing, and the error does not say which.
pub(super) fn is_unnamed_right(error: &RedisError) -> bool {
    error.code() == Some("ERR") && error.detail().is_some_and(names_no_command)
}

/// Whether the server does not let this user do something, or wants another user.
pub(super) fn is_denied(error: &RedisError) -> bool {
    matches!(error.code(), Some("NOAUTH" | "NOPERM" | "RIGHTS")) || is_unnamed_right(error)
}

/// The rule that gives a right, which the server names with a bar before a subcommand.
fn grant(command: &str) -> String {
    format!("+{}", command.to_lowercase())
}

fn wants_password(server: &str) -> StoreError {
    StoreError::Unfit(format!(
        "Redis at {server} wants a password: put it into the URL as redis://:PASSWORD@host:port or \
         redis://USER:PASSWORD@host:port"
    ))
}

/// Something of another program stands under a key of the fleet: `key`, what is there, what belongs there.
fn foreign(server: &str, detail: &str) -> StoreError {
    let mut words = detail.split(' ');
    let mut next = || words.next().unwrap_or_default();
    let (key, found, wanted) = (next(), next(), next());
    StoreError::Unfit(format!(
        "Redis at {server} holds a {found} under {key}, where this fleet keeps a {wanted}: rename or delete that key \
         there, or give the fleet another name"
    ))
}

/// A server that was the primary is none now. It may be one again, or its address lead to the new one.
pub(super) fn demoted(server: &str) -> StoreError {
    StoreError::Unreachable(format!(
        "Redis at {server} is a read-only replica now, and takes nothing until it is primary"
    ))
}

/// A server that takes no more connections, in its own words.
pub(super) fn full(server: &str, words: &str) -> StoreError {
    StoreError::Unreachable(format!("Redis at {server} takes no more connections: {words}"))
}

/// Whether a connection was cut without an answer: the server may have said why to whoever had listened.
pub(super) fn was_cut(error: &RedisError) -> bool {
    error.code().is_none() && !error.is_connection_refusal() && !error.is_timeout()
}

fn refused_password(server: &str) -> StoreError {
    StoreError::Unfit(format!("Redis at {server} does not take the user or password in the URL: correct them"))
}

fn cause(error: &RedisError) -> String {
    if error.is_connection_refusal() {
        "connection refused".to_owned()
    } else if error.is_timeout() {
        "no answer in time".to_owned()
    } else if error.is_connection_dropped() {
        "the connection was lost".to_owned()
    } else {
        error.to_string()
    }
}

/// Whether the connection itself is of no more use after this error.
pub(super) fn ends_connection(error: &RedisError) -> bool {
    error.code().is_none() || matches!(error.code(), Some("READONLY" | "LOADING" | "NOAUTH"))
}
