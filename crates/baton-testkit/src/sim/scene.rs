//! The scene: all that is known of a simulated fleet at one moment, by somebody who sees everything.
//!
//! Links, handlers and sources tell it what happens as it happens; [`super::rules`] looks at it all along. The first
//! rule that is broken is kept, with what led to it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use baton::{Message, SessionId};
use tokio::time::Instant;

use super::{
    chance::digest,
    journal::{Event, Journal},
    known::{Broken, KnownNode, KnownSession, KnownSource},
    ledger::{QueueLedger, State},
    topology::Topology,
    witness::{Life, belongs},
    work::Begun,
};

/// The scene as all parts of a fleet share it.
pub(super) type Shared = Arc<Mutex<Scene>>;

/// Which life of which node calls; nothing for a caller from outside.
pub(super) type Caller = Option<(usize, u32)>;

/// Everything.
pub(super) struct Scene {
    began: Instant,
    pub(super) journal: Journal,
    pub(super) broken: Option<Broken>,
    pub(super) nodes: Vec<KnownNode>,
    pub(super) sessions: BTreeMap<SessionId, KnownSession>,
    pub(super) ledgers: Vec<QueueLedger>,
    pub(super) sources: Vec<KnownSource>,
    pub(super) stalled: bool,
    /// Since when the store has answered and the fleet clock has run without a break.
    pub(super) clear_since: u64,
    pub(super) winding_down: bool,
    /// When a message or a role last moved.
    pub(super) moved_ms: u64,
    pub(super) settles: u64,
    pub(super) half_lease_ms: u64,
    /// When a session last moved the fleet clock.
    pub(super) last_touch_ms: u64,
    pub(super) last_call_ms: u64,
    pub(super) calls_at_once: u64,
}

impl Scene {
    pub(super) fn new(topology: &Topology) -> Self {
        let smallest = topology.nodes.iter().map(|node| node.lease_ms).min().unwrap_or(1_000);
        Self {
            began: Instant::now(),
            journal: Journal::default(),
            broken: None,
            nodes: Vec::new(),
            sessions: BTreeMap::new(),
            ledgers: topology.queues.iter().map(|_| QueueLedger::default()).collect(),
            sources: topology
                .sources
                .iter()
                .map(|source| KnownSource { queue: source.queue, end: source.end, ..KnownSource::default() })
                .collect(),
            stalled: false,
            clear_since: 0,
            winding_down: false,
            moved_ms: 0,
            settles: 0,
            half_lease_ms: smallest / 2,
            last_touch_ms: 0,
            last_call_ms: 0,
            calls_at_once: 0,
        }
    }

    /// Milliseconds since it began.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(super) fn note(&mut self, node: Option<usize>, kind: &'static str, note: String) {
        self.journal.add(Event { at_ms: self.now(), node, kind, note, ..Event::default() });
    }

    pub(super) fn note_messages(
        &mut self, node: Option<usize>, kind: &'static str, queue: usize, first: u64, len: u64,
    ) {
        self.journal.add(Event { at_ms: self.now(), node, kind, queue: Some(queue), first, len, ..Event::default() });
    }

    pub(super) fn violated(&mut self, rule: String, about: Option<(usize, u64)>) {
        if self.broken.is_none() {
            self.broken = Some(Broken { at_ms: self.now(), rule, about });
        }
    }

    /// The node whose life this is, unless it has ended.
    pub(super) fn living(&mut self, node: usize, life: u32) -> Option<&mut KnownNode> {
        self.nodes.get_mut(node).filter(|node| node.life == life && node.alive)
    }

    // ---- what handlers tell

    /// A handler begins.
    pub(super) fn begin(&mut self, begun: &Begun, message: &Message, key: &str, takes_ms: u64) {
        let (now, Life { node, life }) = (self.now(), &begun.of);
        let Begun { queue, id, .. } = begun;
        if self.living(*node, *life).is_none() {
            return;
        }
        if !belongs(message, key, *queue) {
            let text = String::from_utf8_lossy(&message.body).into_owned();
            let rule =
                format!("no handler sees another queue's message: that of q{queue} on node {node} got {text} as {key}");
            self.violated(rule, Some((*queue, *id)));
        }
        if self.ledgers[*queue].entry(*id).is_none_or(|entry| entry.digest != digest(&message.body)) {
            self.violated("a message has the body it was pushed with".to_owned(), Some((*queue, *id)));
        }
        self.note_messages(Some(*node), "begins", *queue, *id, 1);
        let session = self.nodes[*node].session;
        let Some(handlers) = self.nodes[*node].handlers.get_mut(queue) else { return };
        handlers.running += 1;
        let (running, concurrency) = (handlers.running, handlers.concurrency);
        if running >= concurrency {
            handlers.free_since = u64::MAX;
        }
        if running > concurrency {
            let rule = format!("at most {concurrency} handlers of q{queue} run at once on node {node}: {running} do");
            self.violated(rule, Some((*queue, *id)));
        }
        let node = &mut self.nodes[*node];
        node.busy_until = node.busy_until.max(now + takes_ms);
        if let Some(entry) = self.ledgers[*queue].entry_mut(*id)
            && let State::Held { session: holder, begun, .. } = &mut entry.state
            && Some(*holder) == session
        {
            if *begun {
                self.violated("a session begins a message once".to_owned(), Some((*queue, *id)));
            } else {
                *begun = true;
            }
        }
    }

    /// A handler has ended, or was dropped.
    pub(super) fn end(&mut self, begun: &Begun) {
        let now = self.now();
        if let Some(node) = self.living(begun.of.node, begun.of.life)
            && let Some(handlers) = node.handlers.get_mut(&begun.queue)
        {
            if handlers.running >= handlers.concurrency {
                handlers.free_since = now;
            }
            handlers.running = handlers.running.saturating_sub(1);
            self.note_messages(Some(begun.of.node), "ends", begun.queue, begun.id, 1);
        }
    }

    // ---- what sources tell

    /// A source is opened; how often it was before.
    pub(super) fn opened(&mut self, source: usize, node: usize, life: u32) -> u64 {
        let now = self.now();
        self.note(Some(node), "opens", format!("s{source}"));
        let known = &mut self.sources[source];
        known.open.push((node, life));
        (known.generated_ms, known.opens) = (now, known.opens + 1);
        known.opens - 1
    }

    /// A source fails or panics; what is open of it is of no more use.
    pub(super) fn source_failed(&mut self, source: usize, node: usize, how: &'static str) {
        let now = self.now();
        self.note(Some(node), "source", format!("s{source} {how}"));
        let known = &mut self.sources[source];
        known.open.retain(|(open, _)| *open != node);
        (known.failed_ms, known.generated_ms) = (Some(now), now);
    }

    /// A source is no longer open there.
    pub(super) fn closed(&mut self, source: usize, node: usize, life: u32) {
        let now = self.now();
        let known = &mut self.sources[source];
        if known.open.contains(&(node, life)) {
            known.open.retain(|open| *open != (node, life));
            known.generated_ms = now;
        }
    }

    // ---- names for people

    pub(super) fn name_of(&self, session: SessionId) -> String {
        let short: String = session.to_string().chars().take(6).collect();
        match self.sessions.get(&session).and_then(|known| known.node) {
            Some(node) => format!("{short} of node {node}"),
            None => short,
        }
    }
}

/// The number in a name such as `q7`.
pub(super) fn number(name: &str) -> Option<usize> {
    name.get(1..)?.parse().ok()
}
