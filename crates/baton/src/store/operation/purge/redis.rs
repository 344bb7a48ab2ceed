//! Removing a fleet: marked first, its keys in many small steps, its meta record last.
//!
//! While the mark stands, a join is refused, so that nothing new comes between the steps. A purge that was cut off
//! leaves the mark; run again, it finishes.

use crate::store::{
    Purge, StoreError,
    redis::{Coded, Shared, Steps},
};

/// Keys looked at in one step.
const STEP: usize = 1_000;

impl Coded for Purge {
    fn steps<'a>(&'a self, server: &'a Shared) -> Option<Steps<'a, ()>> {
        Some(Box::pin(purge(server)))
    }
}

/// Removes everything the fleet has stored.
async fn purge(shared: &Shared) -> Result<(), StoreError> {
    if !step(shared, "begin", &[]).await? {
        return Ok(());
    }
    let keep = [shared.root.as_str().to_owned(), shared.root.test_clock()];
    let mut cursor = "0".to_owned();
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(&cursor).arg("MATCH").arg(shared.root.pattern()).arg("COUNT").arg(STEP);
        let (next, mut keys): (String, Vec<String>) = shared.command(&scan).await?;
        keys.retain(|key| !keep.contains(key));
        if !keys.is_empty() && !step(shared, "remove", &keys).await? {
            return Ok(());
        }
        if next == "0" {
            break;
        }
        cursor = next;
    }
    step(shared, "finish", &[]).await?;
    Ok(())
}

/// One step; false if there is nothing (more) to remove.
async fn step(shared: &Shared, what: &str, keys: &[String]) -> Result<bool, StoreError> {
    let mut reply = shared.run(&shared.scripts.purge, |to| to.arg(what).arg(keys)).await?;
    match reply.text()?.as_str() {
        "OK" => Ok(true),
        "NONE" => Ok(false),
        code => Err(reply.refusal(code)),
    }
}
