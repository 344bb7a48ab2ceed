//! What nodes leave to others. Leaving too much costs less time than a start may take, since whoever generates works too when
//! the front of a queue has waited; so the rules of time do not see it, and these two do.
//!
//! * A node asks whether others see to its queues only while it is busy generating: it has pushed within [`PUSHED_WITHIN`] ms.
//! * The store says that others see to a queue only if a session without a baton works for it.

use baton::store::{Beat, Beaten};

use super::scene::{Caller, Scene, number};

/// More than the second that a node looks back on, and the beats until it has asked.
const PUSHED_WITHIN: u64 = 2_000;

impl Scene {
    /// A push is on its way, or has come to its end.
    pub(super) fn pushes(&mut self, caller: Caller) {
        let now = self.now();
        if let Some((node, life)) = caller
            && let Some(node) = self.living(node, life)
        {
            node.pushed_ms = now;
        }
    }

    /// A beat is on its way.
    pub(super) fn asks(&mut self, caller: Caller, beat: &Beat) {
        let (now, clear_since) = (self.now(), self.clear_since);
        let Some((nth, life)) = caller.filter(|_| !beat.asks.is_empty() && !self.stalled) else { return };
        let Some(node) = self.living(nth, life).filter(|node| !node.paused && node.leaving_since.is_none()) else {
            return;
        };
        let pushed_ms = node.pushed_ms;
        if pushed_ms.max(node.disturbed_until).max(clear_since) + PUSHED_WITHIN < now {
            let rule = format!(
                "only a node that is busy generating leaves queues to others: node {nth} asks, its last push was at \
                 {pushed_ms} ms"
            );
            self.violated(rule, None);
        }
    }

    /// The store has said who is helped.
    pub(super) fn helped(&mut self, caller: Caller, beaten: &Beaten) {
        for queue in beaten.helped.iter().filter_map(|name| number(name.as_str())) {
            let has_baton = |session| self.sources.iter().any(|source| source.holder == Some(session));
            let helps = self
                .sessions
                .iter()
                .any(|(session, known)| !known.gone && known.works.contains(&queue) && !has_baton(*session));
            if !helps {
                let node = caller.map(|(node, _)| node);
                self.violated(
                    format!("a queue is left only to nodes without a baton: q{queue} by node {node:?}"),
                    None,
                );
            }
        }
    }
}
