//! A fleet of an older format brought up to this one: looked at, then converted in bounded steps, a session each.
//!
//! From the first step on every release refuses the fleet, older ones because they take it for newer; a migration that
//! was killed in between goes on where it was.

use super::{RedisState, reply::Reply};
use crate::store::{Conversion, Converted, Kind, SeenSession, Standing, StoreError};

/// What is stored, and who was seen last.
pub(super) async fn standing(shared: &RedisState) -> Result<Standing, StoreError> {
    let mut reply = shared.run(&shared.scripts.standing, |to| to).await?;
    match reply.text()?.as_str() {
        "OK" => {
            let format = Some(reply.text()?).filter(|format| !format.is_empty());
            let format = format.map(|format| super::reply::parsed(&format)).transpose()?;
            let stamp = reply.text()?;
            Ok(Standing { format, stamp, seen: reply.list()?.rest(|it| seen(it.list()?))? })
        }
        code => Err(reply.refusal(code)),
    }
}

fn seen(mut it: Reply) -> Result<SeenSession, StoreError> {
    let session = it.parsed()?;
    let kind = if it.text()? == "n" { Kind::Node } else { Kind::Client };
    let (host, pid, lease_ms) = (it.text()?, it.parsed()?, it.parsed()?);
    Ok(SeenSession { session, kind, host, pid, lease_ms, expires: it.parsed()?, beat_ms: it.parsed()? })
}

/// One step, unless somebody has called since.
pub(super) async fn convert(shared: &RedisState, since: &Standing) -> Result<Conversion, StoreError> {
    // Without a session to take out, the answer does not tell who ended it.
    if since.seen.is_empty() && !standing(shared).await?.is_older() {
        return Ok(Conversion::Nothing);
    }
    let mut reply = shared.run(&shared.scripts.convert, |to| to.arg(&since.stamp)).await?;
    match reply.text()?.as_str() {
        "OK" => {
            let done = Converted { sessions: reply.parsed()?, back: reply.parsed()?, failed: reply.parsed()? };
            let left = reply.parsed()?;
            let others = done.sessions == 0 && left == 0 && !since.seen.is_empty();
            Ok(if others { Conversion::Nothing } else { Conversion::Step { done, left } })
        }
        "DISTURBED" => Ok(Conversion::Disturbed),
        code => Err(reply.refusal(code)),
    }
}
