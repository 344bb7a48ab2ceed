//! Removing a queue: looked at, its results, keys and bookmarks removed in pages, its record last.
//!
//! Cut off in between, it is run again. The last step looks once more, because a push may have come meanwhile.

use crate::store::{
    RemoveQueue, StoreError,
    redis::{Coded, Number, RedisState, Steps, numbers},
};

/// About how many results, keys or bookmarks one step looks at.
const SWEPT_AT_ONCE: u64 = 500;

impl Coded for RemoveQueue {
    const NUMBERS: &'static [Number] = numbers![SWEPT_AT_ONCE];

    fn steps<'a>(&'a self, server: &'a RedisState) -> Option<Steps<'a, ()>> {
        Some(Box::pin(remove(server, self)))
    }
}

async fn remove(shared: &RedisState, it: &RemoveQueue) -> Result<(), StoreError> {
    step(shared, it, "look", "").await?;
    for kind in ["results", "keys", "marks"] {
        let mut cursor = "0".to_owned();
        loop {
            cursor = step(shared, it, kind, &cursor).await?;
            if cursor == "0" {
                break;
            }
        }
    }
    step(shared, it, "forget", "").await.map(drop)
}

/// One step; where the next one of its kind begins, `0` after the last.
async fn step(shared: &RedisState, it: &RemoveQueue, what: &str, cursor: &str) -> Result<String, StoreError> {
    let script = &shared.scripts.remove_queue;
    let mut reply = shared.run(script, |to| to.arg(it.queue.as_str()).arg(what).arg(cursor)).await?;
    match reply.text()?.as_str() {
        "OK" => reply.text(),
        code => Err(reply.refusal(code)),
    }
}
