//! Why a script failed: the key of the fleet under which another program keeps something, the right that a user lacks.
//!
//! Joins, and calls that name a queue for the first time, look before they write. This is for the rest: an operation that
//! ran into such a key, and a destruction, which removes nothing of another program's.

use super::{RedisState, conn::Link, failure::is_unnamed_right, reply::Reply};
use crate::store::StoreError;

/// The most names that are looked at in one step.
const NAMES_AT_ONCE: usize = 250;

/// Refuses a fleet with such a key, by its name.
pub(in crate::store) async fn refuse(shared: &RedisState) -> Result<(), StoreError> {
    let mut link = shared.link().await?;
    look(shared, &mut link).await
}

async fn look(shared: &RedisState, link: &mut Link) -> Result<(), StoreError> {
    let mut reply = step(shared, link, None, &[]).await?;
    for kind in ["queues", "sources"] {
        let names = reply.list()?.rest(Reply::text)?;
        for names in names.chunks(NAMES_AT_ONCE) {
            step(shared, link, Some(kind), names).await?;
        }
    }
    Ok(())
}

async fn step(shared: &RedisState, link: &mut Link, kind: Option<&str>, names: &[String]) -> Result<Reply, StoreError> {
    let mut command = shared.scripts.foreign.command();
    command.arg(shared.root.as_str()).arg(kind).arg(names);
    let value = shared.scripts.foreign.call(command).run(&mut link.connection).await;
    let mut reply = Reply::new(value.map_err(|error| shared.failed(link, &error))?)?;
    match reply.text()?.as_str() {
        "OK" => Ok(reply),
        code => Err(reply.refusal(code)),
    }
}

impl RedisState {
    /// Why a script failed; where it ran into a key of another kind, or a right was missing, which one.
    pub(super) async fn explained(&self, link: &mut Link, error: &redis::RedisError) -> StoreError {
        let is_unnamed = error.code() == Some("WRONGTYPE") || is_unnamed_right(error);
        let named = if is_unnamed { Box::pin(look(self, link)).await.err() } else { None };
        named.unwrap_or_else(|| self.failed(link, error))
    }
}
