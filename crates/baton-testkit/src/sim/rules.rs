//! The rules of a simulated fleet, looked at every 100 ms while the store answers.
//!
//! * A message that is due and not begun, of a queue that is not paused, with a node that works its queue and has had a
//!   free place all along, is begun within [`BEGUN_WITHIN`] ms. If its holder died, fell silent or was forgotten, that
//!   time begins so that it ends half a second after the holder's lease. Suspects are exempt: they wait for a session
//!   that holds none.
//! * A source that a live node offers, and that has not ended, is generated within a lease, 0.3 s and a beat: the
//!   reaper's beat finds the dead holder, the next beat of a node that offers it finds the baton. One that failed rests
//!   for a second longer.
//! * A source is ended in the store where it has no more messages, and nowhere else.
//! * A node says that a source has ended only when the store has its last message.
//! * A node that was asked to finish has left a second after its last handler.
//! * A node leaves queues to others only as [`super::gates`] says.
//! * At rest, a node makes [`AT_REST`] calls a second besides its beats, at most.

use super::{
    known::KnownNode,
    ledger::{Entry, State},
    scene::Scene,
    topology::Topology,
};
use baton::Role;

/// Milliseconds between two looks.
pub(super) const EVERY_MS: u64 = 100;
/// Milliseconds within which what is due is begun.
const BEGUN_WITHIN: u64 = 1_000;
/// Calls a second besides beats of a node with nothing to do.
const AT_REST: u64 = 5;

/// Looks at everything once.
pub(super) fn look(scene: &mut Scene, topology: &Topology) {
    let now = scene.now();
    generated(scene, now);
    if scene.stalled || scene.broken.is_some() {
        return;
    }
    let able: Vec<Option<u64>> = scene.nodes.iter().map(|node| able_since(scene, node, now)).collect();
    for (queue, free) in longest_free(scene, &able, now).into_iter().enumerate() {
        if let Some(free) = free {
            begun_in_time(scene, queue, free, now);
        }
    }
    let longest = |of: fn(&KnownNode) -> u64| scene.nodes.iter().map(of).max().unwrap_or(0);
    let (lease, beat) = (longest(|node| node.lease_ms), longest(|node| node.heartbeat_ms));
    for source in 0..scene.sources.len() {
        generated_in_time(scene, source, &able, (lease, beat), now);
    }
    left_in_time(scene, now);
    if now.is_multiple_of(1_000) {
        quiet_at_rest(scene, topology, now);
    }
}

/// Since when a node has been able to do something, if it is.
fn able_since(scene: &Scene, node: &KnownNode, now: u64) -> Option<u64> {
    let joined = node.session.and_then(|session| scene.sessions.get(&session)).is_some_and(|known| !known.gone);
    let able = node.alive && !node.paused && node.leaving_since.is_none() && joined;
    (able && node.disturbed_until <= now).then(|| node.joined_ms.max(node.disturbed_until).max(scene.clear_since))
}

/// For each queue since when a node has been free for it, and which: the one that has been the longest is to be asked.
fn longest_free(scene: &Scene, able: &[Option<u64>], now: u64) -> Vec<Option<(u64, usize)>> {
    let mut longest: Vec<Option<(u64, usize)>> = vec![None; scene.ledgers.len()];
    for (nth, node) in scene.nodes.iter().enumerate().filter(|(_, node)| node.role != Role::Generator) {
        let Some(able) = able[nth] else { continue };
        for (queue, handlers) in &node.handlers {
            let free = (able.max(handlers.free_since), nth);
            if free.0 <= now && longest[*queue].is_none_or(|known| free < known) {
                longest[*queue] = Some(free);
            }
        }
    }
    longest
}

fn begun_in_time(scene: &mut Scene, queue: usize, (free_since, nth): (u64, usize), now: u64) {
    let ledger = &scene.ledgers[queue];
    if ledger.paused || ledger.open.is_empty() || now - free_since <= BEGUN_WITHIN {
        return;
    }
    let late = ledger.open.iter().find_map(|id| {
        let entry = ledger.entry(*id)?;
        let since = due_since(scene, entry, now)?.max(free_since);
        (now.saturating_sub(since) > BEGUN_WITHIN).then_some((*id, since, *entry))
    });
    if let Some((id, since, entry)) = late {
        let rule = format!(
            "what is due is begun within {BEGUN_WITHIN} ms while a node has a free place: q{queue}/{id} could have been \
             begun by node {nth} since {since} ms (free since {free_since} ms); it is {:?}, due since {} ms",
            entry.state, entry.since
        );
        scene.violated(rule, Some((queue, id)));
    }
}

/// Since when a message should have been begun, if it should.
fn due_since(scene: &Scene, entry: &Entry, now: u64) -> Option<u64> {
    if entry.crashes >= 2 {
        return None;
    }
    let State::Held { session, .. } = entry.state else { return entry.waits(now).then_some(entry.since) };
    let known = scene.sessions.get(&session)?;
    let holder = known.node.and_then(|node| scene.nodes.get(node));
    let forgotten = holder.is_none_or(|holder| !holder.alive || holder.session != Some(session));
    let disturbed = holder.is_some_and(|holder| holder.paused || holder.disturbed_until > now);
    if forgotten || disturbed {
        let found_out = known.touched_ms.max(scene.clear_since) + known.lease_ms;
        return Some(entry.since.max((found_out + 500).saturating_sub(BEGUN_WITHIN)));
    }
    let recovered = holder.map_or(0, |holder| holder.disturbed_until);
    entry.waits(now).then_some(entry.since.max(recovered))
}

/// Notes which sources are generated now: open on a node that is alive and reaches the store.
fn generated(scene: &mut Scene, now: u64) {
    let Scene { sources, nodes, .. } = scene;
    for known in sources {
        let lives = |(node, life): &(usize, u32)| {
            let node = &nodes[*node];
            node.alive && node.life == *life && !node.paused
        };
        if known.open.iter().any(lives) {
            known.generated_ms = now;
        }
    }
}

fn generated_in_time(scene: &mut Scene, source: usize, able: &[Option<u64>], (lease, beat): (u64, u64), now: u64) {
    let known = &scene.sources[source];
    if known.ended {
        return;
    }
    let offers = |node: &KnownNode| node.role != Role::Worker && node.offers.contains(&source);
    let offered = scene.nodes.iter().zip(able).filter(|(node, _)| offers(node)).filter_map(|(_, able)| *able);
    let Some(offered_since) = offered.min() else { return };
    let held_until = known.holder.and_then(|holder| scene.sessions.get(&holder)).map_or(0, |known| known.touched_ms);
    let silent = known.holder.is_some_and(|holder| {
        !scene.nodes.iter().any(|node| node.session == Some(holder) && node.alive && !node.paused)
    });
    let since = offered_since.max(known.generated_ms).max(if silent { held_until } else { 0 });
    let rest = if known.failed_ms.is_some_and(|failed| failed + 2_500 > now) { 1_000 + beat } else { 0 };
    let bound = lease + 300 + beat + rest + EVERY_MS;
    if now.saturating_sub(since) > bound {
        let rule = format!(
            "an offered source is generated within {bound} ms: s{source} is not since {since} ms (epoch {}, holder {:?})",
            known.epoch, known.holder
        );
        scene.violated(rule, None);
    }
}

fn left_in_time(scene: &mut Scene, now: u64) {
    let late = scene.nodes.iter().enumerate().find_map(|(nth, node)| {
        let asked = node.leaving_since.filter(|_| node.alive && !node.paused)?;
        let since = asked.max(node.busy_until).max(node.disturbed_until).max(scene.clear_since);
        (now.saturating_sub(since) > 1_000).then_some((nth, asked, node.busy_until))
    });
    if let Some((nth, asked, busy_until)) = late {
        let rule = format!(
            "a drain ends a second after its handlers: node {nth} was asked at {asked} ms, its last handler ended at \
             {busy_until} ms"
        );
        scene.violated(rule, None);
    }
}

fn quiet_at_rest(scene: &mut Scene, topology: &Topology, now: u64) {
    let due_soon = scene.ledgers.iter().any(|ledger| {
        ledger.open.iter().filter_map(|id| ledger.entry(*id)).any(|entry| match entry.state {
            State::Delayed { due } => due <= now + 1,
            State::Held { begun, .. } => !begun,
            _ => true,
        })
    });
    let rest = scene.moved_ms + 2_500 < now && scene.clear_since + 2_500 < now && !due_soon;
    let mut loud = None;
    for (nth, node) in scene.nodes.iter_mut().enumerate() {
        let (calls, bound) = (std::mem::take(&mut node.calls), AT_REST + 1_000 / node.heartbeat_ms + 1);
        if rest && node.alive && !node.paused && node.disturbed_until + 2_500 < now && calls > bound {
            loud = Some((nth, calls, bound));
        }
    }
    if let Some((nth, calls, bound)) = loud {
        let queues = topology.nodes.get(nth).map_or(0, |node| node.works.len());
        let rule =
            format!("at rest a node makes {bound} calls a second at most: node {nth} ({queues} queues) made {calls}");
        scene.violated(rule, None);
    }
}
