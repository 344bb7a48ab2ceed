//! Reaping as `reap.lua` does it: as many calls as it takes to take everything back, each of them bounded. One that is cut
//! off in between leaves the rest to whoever is told of it by a beat.

use super::RETURNED_AT_ONCE;
use crate::store::{
    Reap, Reaped, StoreError,
    agreed::A_CLAIM,
    redis::{Coded, Number, RedisState, Steps, numbers},
};

impl Coded for Reap {
    const NUMBERS: &'static [Number] = numbers![RETURNED_AT_ONCE, A_CLAIM];

    fn steps<'a>(&'a self, server: &'a RedisState) -> Option<Steps<'a, Reaped>> {
        Some(Box::pin(reap(server, self)))
    }
}

async fn reap(shared: &RedisState, it: &Reap) -> Result<Reaped, StoreError> {
    let mut taken = None;
    loop {
        let (session, target) = (it.session.to_string(), it.target.to_string());
        let mut reply = shared.run(&shared.scripts.reap, |to| to.arg(session).arg(target)).await?;
        match reply.text()?.as_str() {
            "OK" => {
                let (before, failed_before) = taken.unwrap_or_default();
                let (back, failed) = (before + reply.parsed::<u64>()?, failed_before + reply.parsed::<u64>()?);
                if reply.text()?.is_empty() {
                    return Ok(Reaped::Taken { back, failed });
                }
                taken = Some((back, failed));
            }
            "ALIVE" => return Ok(Reaped::Alive),
            // Another one came to the end.
            "GONE" => return Ok(taken.map_or(Reaped::Gone, |(back, failed)| Reaped::Taken { back, failed })),
            code => return Err(reply.refusal(code)),
        }
    }
}
