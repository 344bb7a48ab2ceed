//! Removing a fleet: marked first, its keys in many small steps, its meta record last.
//!
//! While the mark stands, a join is refused, so that nothing new comes between the steps. A purge that was cut off
//! leaves the mark; run again, it finishes.

use std::collections::HashMap;

use crate::store::{
    Purge, StoreError,
    redis::{Coded, LIBRARIES, Shared, Steps},
};

/// Keys looked at in one step.
const STEP: usize = 1_000;

impl Coded for Purge {
    fn steps<'a>(&'a self, server: &'a Shared) -> Option<Steps<'a, bool>> {
        Some(Box::pin(purge(server)))
    }
}

/// Removes everything the fleet has stored; whether it was this one that did.
async fn purge(shared: &Shared) -> Result<bool, StoreError> {
    let removed = step(shared, "begin", &[]).await? && remove_keys(shared).await?;
    // Functions that it may not remove disturb nobody.
    remove_libraries(shared).await.ok();
    Ok(removed)
}

/// Removes what was marked; whether this one has finished it.
async fn remove_keys(shared: &Shared) -> Result<bool, StoreError> {
    let keep = [shared.root.as_str().to_owned(), shared.root.test_clock()];
    let mut cursor = "0".to_owned();
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(&cursor).arg("MATCH").arg(shared.root.pattern()).arg("COUNT").arg(STEP);
        let (next, mut keys): (String, Vec<String>) = shared.command(&scan).await?;
        keys.retain(|key| !keep.contains(key));
        if !keys.is_empty() && !step(shared, "remove", &keys).await? {
            return Ok(false);
        }
        if next == "0" {
            break;
        }
        cursor = next;
    }
    step(shared, "finish", &[]).await
}

/// Removes the functions of all releases, which no database of the server owns: who still needs them loads them again.
async fn remove_libraries(shared: &Shared) -> Result<(), StoreError> {
    let mut list = redis::cmd("FUNCTION");
    list.arg("LIST").arg("LIBRARYNAME").arg(format!("{LIBRARIES}*"));
    let libraries: Vec<HashMap<String, redis::Value>> = shared.command(&list).await?;
    for library in libraries {
        if let Some(redis::Value::BulkString(name)) = library.get("library_name") {
            let mut delete = redis::cmd("FUNCTION");
            delete.arg("DELETE").arg(&name[..]);
            shared.command::<()>(&delete).await.ok();
        }
    }
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
