//! The query of a request. What is given twice, or is not known, is refused by name: a slip in it would go unnoticed.

use std::borrow::Cow;

use crate::problem::Problem;

/// Names and values, decoded.
pub(super) struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, Problem> {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decoded(name)?, decoded(value)?))
        });
        let pairs: Option<Vec<_>> = pairs.collect();
        pairs.map(Self).ok_or_else(|| Problem::bad("bad-query", "the query is not UTF-8 text, or a % in it is no code"))
    }

    /// Refuses names that are none of these.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), Problem> {
        if self.0.iter().all(|(name, _)| known.contains(&name.as_ref())) {
            return Ok(());
        }
        Err(Problem::bad(
            "bad-query",
            format!("the query has a name that is not known; the names are: {}", known.join(", ")),
        ))
    }

    /// Refuses every name, where there is none; `in_headers` has names that are headers here.
    pub(super) fn none(text: Option<&'a str>, in_headers: &[(&str, &str)]) -> Result<(), Problem> {
        let query = Self::parse(text.unwrap_or_default())?;
        if query.0.is_empty() {
            return Ok(());
        }
        let given = |name: &str| query.0.iter().any(|(it, _)| it.replace('_', "-").eq_ignore_ascii_case(name));
        let meant = in_headers.iter().find(|(name, _)| given(name));
        let meant = meant.map(|(_, header)| format!(": send the header `{header}`")).unwrap_or_default();
        Err(Problem::bad("bad-query", format!("the query has a name that is not known; this path has none{meant}")))
    }

    /// The value of a name that may be given once.
    pub(super) fn get(&self, name: &str) -> Result<Option<&str>, Problem> {
        let mut given = self.0.iter().filter(|(it, _)| it == name);
        match (given.next(), given.next()) {
            (_, Some(_)) => Err(Problem::bad("bad-query", format!("{name} is given more than once"))),
            (one, None) => Ok(one.map(|(_, value)| value.as_ref())),
        }
    }
}

/// A part of a query as it was before it was written so: `+` is a space, `%` begins two digits of a byte.
fn decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.bytes().any(|byte| matches!(byte, b'+' | b'%')) {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_decoded_and_slips_are_refused() {
        let query = Query::parse("data=%5B1%2C+2%5D&sum=-3&&x").unwrap();
        assert_eq!(query.get("data").unwrap(), Some("[1, 2]"));
        assert_eq!(query.get("sum").unwrap(), Some("-3"));
        assert_eq!((query.get("x").unwrap(), query.get("y").unwrap()), (Some(""), None));
        assert!(query.only(&["data", "sum"]).is_err() && query.only(&["data", "sum", "x"]).is_ok());
        assert!(Query::parse("a=1&a=2").unwrap().get("a").is_err());
        let headers = [("wait", "Prefer: wait=N")];
        assert!(Query::none(None, &headers).is_ok() && Query::none(Some("&"), &headers).is_ok());
        let said = |text| Query::none(Some(text), &headers).unwrap_err().json()["detail"].to_string();
        assert!(said("a=1&Wait=5").contains("send the header `Prefer: wait=N`"), "{}", said("wait=5"));
        assert!(said("secret").contains("this path has none\"") && !said("secret").contains("secret"));
        for bad in ["a=%", "a=%4", "a=%zz", "a=%ff"] {
            assert!(Query::parse(bad).is_err(), "{bad}");
        }
    }
}
