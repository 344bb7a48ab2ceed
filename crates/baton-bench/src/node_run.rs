//! One node in this process that works off a full queue.

use std::time::{Duration, Instant};

use baton::{Handler, QueuePolicy, Role, Shutdown};

use super::target::Target;
use crate::failure::Failure;

/// Messages a second of a node with this handler, from a queue that is full at the start.
pub(super) async fn rate(
    target: &Target, queue: &str, policy: QueuePolicy, handler: impl Handler, count: u64,
) -> Result<f64, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(error.to_string(), "run the command again");
    let fleet = target.fleet();
    target.pause(queue, true).await?;
    fleet.queue::<u64>(queue).push_all(0..count).await.map_err(|error| failed(&error))?;
    target.note(queue, count);
    let goal = target.books(queue).await?.pushed;
    let node = fleet.node().role(Role::Worker).policy(policy).handle_with(queue, handler);
    let shutdown = Shutdown::new();
    let node = tokio::spawn(node.run(shutdown.clone()));
    let begun = Instant::now();
    target.pause(queue, false).await?;
    while target.books(queue).await?.done < goal && !node.is_finished() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let rate = count as f64 / begun.elapsed().as_secs_f64();
    shutdown.graceful();
    let ended = node.await.map_err(|error| failed(&error))?;
    ended.map_err(|error| failed(&error))?;
    Ok(rate)
}
