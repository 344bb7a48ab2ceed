//! Removing a fleet: marked first, its keys in many small steps, its meta record last.
//!
//! While the mark stands, a join is refused, so that nothing new comes between the steps. A destruction that was cut off
//! leaves the mark; run again, it finishes.

use super::Removed;
use crate::store::{
    Destroy, StoreError, TakeSurvey,
    redis::{Coded, RedisState, Reply, Steps, refuse_foreign},
};

/// Keys looked at in one step.
const STEP: usize = 1_000;

impl Coded for Destroy {
    fn steps<'a>(&'a self, server: &'a RedisState) -> Option<Steps<'a, Option<Removed>>> {
        Some(Box::pin(destroy(server)))
    }
}

/// Removes everything the fleet has stored; what that was, if it was this one that did.
async fn destroy(shared: &RedisState) -> Result<Option<Removed>, StoreError> {
    // What another program keeps in the place of one of the fleet's keys is not this fleet's to remove.
    refuse_foreign(shared).await?;
    let Some(survey) = TakeSurvey.steps(shared) else { return Ok(None) };
    let Removed { queues, messages, errors } = Removed::from_books(survey.await?.queues.iter());
    let held = [queues, messages, errors].map(|it| it.to_string());
    let begun = step(shared, "begin", &held).await?.is_some();
    let removed = if begun { remove_keys(shared).await? } else { None };
    // Functions that it may not remove disturb nobody.
    shared.remove_libraries().await.ok();
    Ok(removed)
}

/// Removes what was marked; what the fleet held, if it was this one that finished it.
async fn remove_keys(shared: &RedisState) -> Result<Option<Removed>, StoreError> {
    let keep = [shared.root.as_str().to_owned(), shared.root.test_clock()];
    let mut cursor = "0".to_owned();
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(&cursor).arg("MATCH").arg(shared.root.pattern()).arg("COUNT").arg(STEP);
        let (next, mut keys): (String, Vec<String>) = shared.command(&scan).await?;
        keys.retain(|key| !keep.contains(key));
        if !keys.is_empty() && step(shared, "remove", &keys).await?.is_none() {
            return Ok(None);
        }
        if next == "0" {
            break;
        }
        cursor = next;
    }
    let Some(mut reply) = step(shared, "finish", &[]).await? else { return Ok(None) };
    let held = reply.text()?;
    let mut held = held.split(',').map(|it| it.parse().unwrap_or(0));
    let mut next = || held.next().unwrap_or(0);
    Ok(Some(Removed { queues: next(), messages: next(), errors: next() }))
}

/// The answer to one step; nothing if there is nothing (more) to remove.
async fn step(shared: &RedisState, what: &str, with: &[String]) -> Result<Option<Reply>, StoreError> {
    let mut reply = shared.run(&shared.scripts.destroy, |to| to.arg(what).arg(with)).await?;
    match reply.text()?.as_str() {
        "OK" => Ok(Some(reply)),
        "NONE" => Ok(None),
        code => Err(reply.refusal(code)),
    }
}
