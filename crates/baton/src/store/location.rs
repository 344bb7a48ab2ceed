//! Where a store is: the URL a person writes.

use std::{fmt, path::PathBuf, str::FromStr};

use url::Url;

/// A store's address. Shown without its password.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreUrl {
    /// `sqlite:PATH`: a file that processes of one machine share.
    Sqlite(PathBuf),
    /// `redis://[user[:password]@]host[:port][/db]`, or `rediss://` for TLS.
    Redis(Url),
    /// `memory:`: inside this process, gone with it.
    Memory,
}

/// A text that is no store's address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a store: {why}; {next}")]
pub struct InvalidUrl {
    text: String,
    why: String,
    next: String,
}

/// How a store is named.
const FORMS: &str = "use sqlite:PATH, redis://HOST:PORT/DB, rediss://HOST:PORT/DB or memory:";

/// What was probably meant by a text that begins with no scheme that is known; never anything of it that may be a secret.
fn near(text: &str) -> Option<String> {
    let Some((scheme, _)) = text.split_once(':') else {
        let is_file = text.contains('/') || [".db", ".sqlite", ".sqlite3"].iter().any(|end| text.ends_with(end));
        return (is_file && !text.contains('@')).then(|| format!("did you mean sqlite:{text}?"));
    };
    let scheme = scheme.to_ascii_lowercase();
    let alike = |(known, _): &(&str, _)| scheme.get(..2) == known.get(..2) && scheme.len().abs_diff(known.len()) <= 2;
    let forms = [("redis", "redis://HOST:PORT/DB"), ("sqlite", "sqlite:PATH"), ("memory", "memory:")];
    forms.into_iter().find(alike).map(|(_, form)| format!("did you mean {form}?"))
}

impl FromStr for StoreUrl {
    type Err = InvalidUrl;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |why: &str| {
            // Whatever stands before an @ may be a secret, also where the rest is no URL.
            let shown = text.rsplit_once('@').map_or_else(|| text.to_owned(), |(_, host)| format!("***@{host}"));
            InvalidUrl { text: shown.chars().take(120).collect(), why: why.to_owned(), next: FORMS.to_owned() }
        };
        let unknown = |why| InvalidUrl { next: near(text).unwrap_or_else(|| FORMS.to_owned()), ..refuse(why) };
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(unknown("it names no scheme"));
        };
        match scheme {
            "memory" if rest.is_empty() => Ok(Self::Memory),
            "memory" => Err(refuse("memory: takes nothing behind it")),
            "sqlite" => {
                let path = rest.strip_prefix("//").unwrap_or(rest);
                if path.is_empty() || path.contains('\0') {
                    return Err(refuse("sqlite: needs the path of a file"));
                }
                if path.contains(":memory:") {
                    return Err(refuse("sqlite: is a file, and what is in memory is memory:"));
                }
                if path.contains('?') {
                    return Err(refuse("sqlite: takes a path and no options, so no ? is in it"));
                }
                Ok(Self::Sqlite(PathBuf::from(path)))
            }
            "redis" | "rediss" => {
                let url = Url::parse(text).map_err(|error| refuse(&error.to_string()))?;
                if url.host_str().is_none_or(str::is_empty) {
                    return Err(refuse("it names no host"));
                }
                if url.fragment().is_some() {
                    return Err(refuse("nothing is known by a # in it; in a password it is %23"));
                }
                let db = url.path().trim_start_matches('/');
                if !db.is_empty() && db.parse::<u32>().is_err() {
                    return Err(refuse("the part behind the host is not a database number"));
                }
                Ok(Self::Redis(url))
            }
            _ => Err(unknown("unknown scheme")),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Redis(url) => f.write_str(&without_password(url)),
            Self::Memory => f.write_str("memory:"),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn without_password(url: &Url) -> String {
    let mut shown = url.clone();
    if shown.password().is_some() && shown.set_password(Some("***")).is_err() {
        return format!("{}://***", url.scheme());
    }
    shown.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_with_what_was_probably_meant() {
        let told = |text: &str| text.parse::<StoreUrl>().unwrap_err().to_string();
        assert!(told("jobs.db").ends_with("; did you mean sqlite:jobs.db?"), "{}", told("jobs.db"));
        assert!(told("reddis://u:secret@h").ends_with("; did you mean redis://HOST:PORT/DB?"));
        for other in ["elsewhere", "u:secret@h/x.db", "secret@h/x.db", "mysql://h"] {
            assert!(told(other).ends_with(FORMS) && !told(other).contains("secret"), "{}", told(other));
        }
    }

    #[test]
    fn addresses_are_read_and_shown_without_secrets() {
        for (text, shown) in [
            ("memory:", "memory:"),
            ("sqlite:data/a.db", "sqlite:data/a.db"),
            ("sqlite:///tmp/a.db", "sqlite:/tmp/a.db"),
            ("redis://127.0.0.1:6379/2", "redis://127.0.0.1:6379/2"),
            ("rediss://u:secret@h/", "rediss://u:***@h/"),
        ] {
            assert_eq!(text.parse::<StoreUrl>().unwrap().to_string(), shown);
        }
        for text in [
            "",
            "sqlite:",
            "sqlite::memory:",
            "sqlite:x.db?mode=ro",
            "mysql://h/",
            "redis://",
            "redis://h/x",
            "redis://h/0#frag",
            "memory:x",
            "just text",
            "redis://h:99999/",
        ] {
            let error = text.parse::<StoreUrl>().unwrap_err().to_string();
            assert!(error.contains("use sqlite:PATH"), "{error}");
        }
        for text in [
            "redis://u:secret@h/x",
            "redis://u:secret@h:99999/",
            "redis//u:secret@h",
            "u:secret@h@",
            "redis://u:secret@h/#x",
        ] {
            assert!(!text.parse::<StoreUrl>().unwrap_err().to_string().contains("secret"), "{text}");
        }
    }
}
