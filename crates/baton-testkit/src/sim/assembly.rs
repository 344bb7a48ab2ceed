//! A node as its plan wants it, with the handlers and sources of a drawn fleet: the same in simulated and in real time.

use std::{sync::Arc, time::Duration};

use baton::{Node, QueuePolicy};

use super::{
    drawn_source::DrawnSource,
    topology::{NodePlan, Topology},
    witness::{Life, Witness},
    work::Working,
};

/// Gives a node its role, times, sources and handlers.
pub(crate) fn assemble(
    mut node: Node, topology: &Topology, plan: &NodePlan, of: Life, witness: &Arc<dyn Witness>,
) -> Node {
    let Topology { seed, ref queues, ref sources, .. } = *topology;
    node = node
        .role(plan.role)
        .lease(Duration::from_millis(plan.lease_ms), Duration::from_millis(plan.heartbeat_ms))
        .max_queue_bytes(plan.max_queue_bytes);
    for &source in &plan.offers {
        let plan = Arc::new(sources[source].clone());
        let (queue, name) = (format!("q{}", plan.queue), plan.name.clone());
        node = node.source_into(&queue, &name, DrawnSource { witness: witness.clone(), seed, of, source, plan });
    }
    for &(queue, concurrency) in &plan.works {
        let policy = QueuePolicy {
            concurrency,
            retries: queues[queue].retries,
            backoff: Duration::from_millis(queues[queue].backoff_ms),
            max_backoff: Duration::from_secs(5),
            ..QueuePolicy::default()
        };
        let working = Working { witness: witness.clone(), seed, of, queue, work: queues[queue].work };
        node = node.policy(policy).handle_with(&format!("q{queue}"), working);
    }
    node
}
