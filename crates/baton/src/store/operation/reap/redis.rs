//! Reaping as `reap.lua` does it: as many calls as it takes to take everything back, each of them bounded. One that is cut
//! off in between leaves the rest to whoever is told of it by a beat.

use super::RETURNED_AT_ONCE;
use crate::store::{
    Kind, Lost, Reap, Reaped, StoreError,
    agreed::A_CLAIM,
    redis::{Coded, Number, RedisState, Reply, Steps, numbers, parsed},
};

impl Coded for Reap {
    const NUMBERS: &'static [Number] = numbers![RETURNED_AT_ONCE, A_CLAIM];

    fn steps<'a>(&'a self, server: &'a RedisState) -> Option<Steps<'a, Reaped>> {
        Some(Box::pin(reap(server, self)))
    }
}

async fn reap(shared: &RedisState, it: &Reap) -> Result<Reaped, StoreError> {
    let mut taken: Option<Lost> = None;
    loop {
        let (session, target) = (it.session.to_string(), it.target.to_string());
        let mut reply = shared.run(&shared.scripts.reap, |to| to.arg(session).arg(target)).await?;
        match reply.text()?.as_str() {
            "OK" => {
                let is_all = reply.text()?.is_empty();
                let part = lost(reply)?;
                match &mut taken {
                    Some(taken) => taken.add(part),
                    None => taken = Some(part),
                }
                if is_all {
                    return Ok(taken.map_or(Reaped::Gone, Reaped::Taken));
                }
            }
            "ALIVE" => return Ok(Reaped::Alive),
            // Another one came to the end.
            "GONE" => return Ok(taken.map_or(Reaped::Gone, Reaped::Taken)),
            code => return Err(reply.refusal(code)),
        }
    }
}

/// Reads who was lost and what went back in one call.
fn lost(mut reply: Reply) -> Result<Lost, StoreError> {
    let kind = if reply.text()? == "n" { Kind::Node } else { Kind::Client };
    let (node, silent, failed) = (reply.text()?, reply.text()?, reply.parsed()?);
    let silent_ms = if silent.is_empty() { None } else { Some(parsed(&silent)?) };
    let back = reply.rest(|reply| Ok((reply.parsed()?, reply.parsed()?)))?.into_iter().collect();
    Ok(Lost { kind, node, silent_ms, back, failed })
}
