//! Beating: keeps the lease, and reaps whoever let theirs run out.

use std::time::Duration;

use bytes::Bytes;
use tokio::{sync::watch, time::MissedTickBehavior};

use super::caller::Caller;
use crate::store::{Beat, Beaten, Reap, Refusal, StoreError, ask};

/// Beats until the session is over or nobody holds it any more.
pub(super) async fn run(caller: Caller, heartbeat: Duration, beaten: watch::Sender<Option<Beaten>>) {
    let mut ticks = tokio::time::interval(heartbeat);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = caller.ended() => return,
            () = beaten.closed() => return,
        }
        match ask(caller.store(), Beat { session: caller.id(), report: Bytes::new() }).await {
            Ok(answer) => {
                for target in &answer.expired {
                    // Whoever comes second finds it gone; a store that is away is asked again at the next beat.
                    ask(caller.store(), Reap { session: caller.id(), target: *target }).await.ok();
                }
                beaten.send_replace(Some(answer));
            }
            Err(error @ StoreError::Refused(Refusal::Stale)) => caller.end(error),
            Err(_) => {}
        }
    }
}
