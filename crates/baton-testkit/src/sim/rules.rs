//! The rules of a simulated fleet, looked at every 100 ms while the store answers.
//!
//! * A message that is due and not begun, of a queue that is not paused, with a node that works its queue and has had a
//!   free place all along, is begun within [`BEGUN_WITHIN`] ms. If its holder died, fell silent or was forgotten, that
//!   time begins so that it ends half a second after the holder's lease. Suspects are exempt: they wait for a session
//!   that holds none.
//! * A source that a live node offers, and that has not ended, is generated within a lease, 0.3 s and a beat: the
//!   reaper's beat finds the dead holder, the next beat of a node that offers it finds the baton. One that failed rests
//!   for a second longer.
//! * A node that was asked to finish has left a second after its last handler.
//! * At rest, a node makes [`AT_REST`] calls a second besides its beats, at most.

use super::{
    ledger::{Entry, State},
    scene::{Member, Scene},
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
    let able: Vec<Option<u64>> = scene.members.iter().map(|member| able_since(scene, member, now)).collect();
    for (queue, free) in longest_free(scene, &able, now).into_iter().enumerate() {
        if let Some(free) = free {
            begun_in_time(scene, queue, free, now);
        }
    }
    let longest = |of: fn(&Member) -> u64| scene.members.iter().map(of).max().unwrap_or(0);
    let (lease, beat) = (longest(|member| member.lease_ms), longest(|member| member.heartbeat_ms));
    for source in 0..scene.wells.len() {
        generated_in_time(scene, source, &able, (lease, beat), now);
    }
    left_in_time(scene, now);
    if now.is_multiple_of(1_000) {
        quiet_at_rest(scene, topology, now);
    }
}

/// Since when a node has been able to do something, if it is.
fn able_since(scene: &Scene, member: &Member, now: u64) -> Option<u64> {
    let joined = member.session.and_then(|session| scene.sittings.get(&session)).is_some_and(|sitting| !sitting.gone);
    let able = member.alive && !member.paused && member.leaving_since.is_none() && joined;
    (able && member.disturbed_until <= now).then(|| member.joined_ms.max(member.disturbed_until).max(scene.clear_since))
}

/// For each queue since when a node has been free for it, and which: the one that has been the longest is to be asked.
fn longest_free(scene: &Scene, able: &[Option<u64>], now: u64) -> Vec<Option<(u64, usize)>> {
    let mut longest: Vec<Option<(u64, usize)>> = vec![None; scene.ledgers.len()];
    for (nth, member) in scene.members.iter().enumerate().filter(|(_, member)| member.role != Role::Generator) {
        let Some(able) = able[nth] else { continue };
        for (queue, handlers) in &member.handlers {
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
    if entry.losses >= 2 {
        return None;
    }
    let State::Held { session, .. } = entry.state else { return entry.waits(now).then_some(entry.since) };
    let sitting = scene.sittings.get(&session)?;
    let holder = sitting.member.and_then(|member| scene.members.get(member));
    let forgotten = holder.is_none_or(|holder| !holder.alive || holder.session != Some(session));
    let disturbed = holder.is_some_and(|holder| holder.paused || holder.disturbed_until > now);
    if forgotten || disturbed {
        let found_out = sitting.touched_ms.max(scene.clear_since) + sitting.lease_ms;
        return Some(entry.since.max((found_out + 500).saturating_sub(BEGUN_WITHIN)));
    }
    let recovered = holder.map_or(0, |holder| holder.disturbed_until);
    entry.waits(now).then_some(entry.since.max(recovered))
}

/// Notes which sources are generated now: open on a node that is alive and reaches the store.
fn generated(scene: &mut Scene, now: u64) {
    let Scene { wells, members, .. } = scene;
    for well in wells {
        let lives = |(member, life): &(usize, u32)| {
            let member = &members[*member];
            member.alive && member.life == *life && !member.paused
        };
        if well.open.iter().any(lives) {
            well.generated_ms = now;
        }
    }
}

fn generated_in_time(scene: &mut Scene, source: usize, able: &[Option<u64>], (lease, beat): (u64, u64), now: u64) {
    let well = &scene.wells[source];
    if well.ended {
        return;
    }
    let offers = |member: &Member| member.role != Role::Worker && member.offers.contains(&source);
    let offered = scene.members.iter().zip(able).filter(|(member, _)| offers(member)).filter_map(|(_, able)| *able);
    let Some(offered_since) = offered.min() else { return };
    let held_until = well.holder.and_then(|holder| scene.sittings.get(&holder)).map_or(0, |sitting| sitting.touched_ms);
    let silent = well.holder.is_some_and(|holder| {
        !scene.members.iter().any(|member| member.session == Some(holder) && member.alive && !member.paused)
    });
    let since = offered_since.max(well.generated_ms).max(if silent { held_until } else { 0 });
    let rest = if well.failed_ms.is_some_and(|failed| failed + 2_500 > now) { 1_000 + beat } else { 0 };
    let bound = lease + 300 + beat + rest + EVERY_MS;
    if now.saturating_sub(since) > bound {
        let rule = format!(
            "an offered source is generated within {bound} ms: s{source} is not since {since} ms (epoch {}, holder {:?})",
            well.epoch, well.holder
        );
        scene.violated(rule, None);
    }
}

fn left_in_time(scene: &mut Scene, now: u64) {
    let late = scene.members.iter().enumerate().find_map(|(nth, member)| {
        let asked = member.leaving_since.filter(|_| member.alive && !member.paused)?;
        let since = asked.max(member.busy_until).max(member.disturbed_until).max(scene.clear_since);
        (now.saturating_sub(since) > 1_000).then_some((nth, asked, member.busy_until))
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
    for (nth, member) in scene.members.iter_mut().enumerate() {
        let (calls, bound) = (std::mem::take(&mut member.calls), AT_REST + 1_000 / member.heartbeat_ms + 1);
        if rest && member.alive && !member.paused && member.disturbed_until + 2_500 < now && calls > bound {
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
