//! The scene: all that is known of a simulated fleet at one moment, by somebody who sees everything.
//!
//! Links, handlers and sources tell it what happens as it happens; [`super::rules`] looks at it all along. The first
//! rule that is broken is kept, with what led to it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use baton::{
    Message, Role, SessionId,
    store::{Answer, Claimed, Kind, LotVerdict, Order, Reaped, Refusal, Request, StoreError, message::Outcome},
};
use tokio::time::Instant;

use super::{
    chance::digest,
    journal::{Event, Journal},
    ledger::{QueueLedger, State},
    topology::Topology,
    witness::{Life, belongs},
    work::Begun,
};

/// The scene as all parts of a fleet share it.
pub(super) type Shared = Arc<Mutex<Scene>>;

/// Which life of which node calls; nothing for a caller from outside.
pub(super) type Caller = Option<(usize, u32)>;

/// Calls at one instant that only something that spins makes.
const SPINNING: u64 = 100_000;

/// A rule that was broken.
#[derive(Debug, Clone)]
pub(super) struct Broken {
    pub(super) at_ms: u64,
    pub(super) rule: String,
    /// The message it is about.
    pub(super) about: Option<(usize, u64)>,
}

/// A node, over all its lives.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) role: Role,
    pub(super) lease_ms: u64,
    pub(super) heartbeat_ms: u64,
    pub(super) offers: Vec<usize>,
    /// Its handlers, by queue.
    pub(super) handlers: BTreeMap<usize, Handlers>,
    pub(super) life: u32,
    pub(super) alive: bool,
    pub(super) paused: bool,
    /// When it was asked to finish and leave.
    pub(super) leaving_since: Option<u64>,
    pub(super) session: Option<SessionId>,
    pub(super) joined_ms: u64,
    /// Until when faults on its way to the store explain that it is slow.
    pub(super) disturbed_until: u64,
    /// When the last of its handlers ends.
    pub(super) busy_until: u64,
    /// Calls since the last look.
    pub(super) calls: u64,
}

/// The handlers of one queue in one node.
#[derive(Debug)]
pub(super) struct Handlers {
    pub(super) concurrency: usize,
    pub(super) running: usize,
    /// Since when there has been a free place, without a break.
    pub(super) free_since: u64,
}

/// A session as the store's answers tell of it.
#[derive(Debug)]
pub(super) struct Sitting {
    /// The node that began it.
    pub(super) member: Option<usize>,
    pub(super) lease_ms: u64,
    pub(super) touched_ms: u64,
    pub(super) gone: bool,
    settle_no: u64,
}

/// A source as it is seen from everywhere at once.
#[derive(Debug, Default)]
pub(super) struct Well {
    pub(super) queue: usize,
    pub(super) opens: u64,
    /// Where it is open.
    pub(super) open: Vec<(usize, u32)>,
    pub(super) generated_ms: u64,
    pub(super) failed_ms: Option<u64>,
    pub(super) holder: Option<SessionId>,
    pub(super) epoch: u64,
    pub(super) position: u64,
    pub(super) ended: bool,
}

/// Everything.
pub(super) struct Scene {
    began: Instant,
    pub(super) journal: Journal,
    pub(super) broken: Option<Broken>,
    pub(super) members: Vec<Member>,
    pub(super) sittings: BTreeMap<SessionId, Sitting>,
    pub(super) ledgers: Vec<QueueLedger>,
    pub(super) wells: Vec<Well>,
    pub(super) stalled: bool,
    /// Since when the store has answered and the fleet clock has run without a break.
    pub(super) clear_since: u64,
    pub(super) winding_down: bool,
    /// When a message or a role last moved.
    pub(super) moved_ms: u64,
    pub(super) settles: u64,
    half_lease_ms: u64,
    /// When a session last moved the fleet clock.
    last_touch_ms: u64,
    last_call_ms: u64,
    calls_at_once: u64,
}

impl Scene {
    pub(super) fn new(topology: &Topology) -> Self {
        let smallest = topology.nodes.iter().map(|node| node.lease_ms).min().unwrap_or(1_000);
        Self {
            began: Instant::now(),
            journal: Journal::default(),
            broken: None,
            members: Vec::new(),
            sittings: BTreeMap::new(),
            ledgers: topology.queues.iter().map(|_| QueueLedger::default()).collect(),
            wells: topology.sources.iter().map(|source| Well { queue: source.queue, ..Well::default() }).collect(),
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

    pub(super) fn note(&mut self, member: Option<usize>, kind: &'static str, note: String) {
        self.journal.add(Event { at_ms: self.now(), member, kind, note, ..Event::default() });
    }

    fn note_messages(&mut self, member: Option<usize>, kind: &'static str, queue: usize, first: u64, len: u64) {
        self.journal.add(Event { at_ms: self.now(), member, kind, queue: Some(queue), first, len, ..Event::default() });
    }

    pub(super) fn violated(&mut self, rule: String, about: Option<(usize, u64)>) {
        if self.broken.is_none() {
            self.broken = Some(Broken { at_ms: self.now(), rule, about });
        }
    }

    /// The node whose life this is, unless it has ended.
    fn living(&mut self, member: usize, life: u32) -> Option<&mut Member> {
        self.members.get_mut(member).filter(|member| member.life == life && member.alive)
    }

    // ---- what links tell

    /// A call is on its way.
    pub(super) fn called(&mut self, caller: Caller, request: &Request) {
        let now = self.now();
        self.calls_at_once = if now == self.last_call_ms { self.calls_at_once + 1 } else { 0 };
        self.last_call_ms = now;
        self.journal.say(now, caller.map(|(member, _)| member), || label(request));
        if self.calls_at_once > SPINNING {
            self.violated(format!("nobody spins: {SPINNING} calls at one instant, the last {}", label(request)), None);
        }
        if let Some((member, life)) = caller
            && let Some(member) = self.living(member, life)
        {
            member.calls += 1;
        }
    }

    /// A call or its reply was lost: its node repeats it after a pause, which grows to half a second.
    pub(super) fn lost(&mut self, caller: Caller, request: &Request, what: &'static str) {
        let now = self.now();
        self.note(caller.map(|(member, _)| member), what, label(request));
        if let Some((member, life)) = caller
            && let Some(member) = self.living(member, life)
        {
            member.disturbed_until = member.disturbed_until.max(now + 700);
        }
    }

    /// A copy of an old call reaches the store now.
    pub(super) fn copied(&mut self, caller: Caller, request: &Request) {
        self.note(caller.map(|(member, _)| member), "a late copy arrives:", label(request));
    }

    /// The store has carried a request out.
    pub(super) fn executed(&mut self, caller: Caller, request: &Request, answer: &Result<Answer, StoreError>) {
        let now = self.now();
        let by = caller.map(|(member, _)| member);
        let touched = match answer {
            Ok(_) => true,
            Err(StoreError::Refused(refusal)) => *refusal != Refusal::Stale,
            Err(_) => false,
        };
        if let Some(session) = request.session().filter(|_| touched) {
            if now.saturating_sub(self.last_touch_ms) > self.half_lease_ms {
                self.clear_since = now;
            }
            self.last_touch_ms = now;
            if let Some(sitting) = self.sittings.get_mut(&session) {
                sitting.touched_ms = now;
            }
        }
        if matches!(answer, Err(StoreError::Refused(Refusal::Full { .. }))) {
            // A source that finds its queue full tries again and again: that is no rest.
            self.moved_ms = now;
            if let Request::Push(push) = request
                && let Some(source) = number(push.source.as_str())
            {
                self.wells[source].generated_ms = now;
            }
        }
        let Ok(answer) = answer else { return };
        match (request, answer) {
            (Request::Join(join), Answer::Join(_)) => self.joined(caller, join.session, join.kind, join.lease_ms),
            (Request::Leave(leave), _) => self.session_gone(leave.session, false),
            (Request::Reap(reap), Answer::Reap(Reaped::Taken { .. })) => {
                self.note(by, "reaps", self.name_of(reap.target));
                self.session_gone(reap.target, true);
            }
            (Request::Submit(submit), Answer::Submit(submitted)) => {
                for (lot, verdict) in submit.lots.iter().zip(&submitted.lots) {
                    if let LotVerdict::Stored { first } = verdict {
                        let digests: Vec<u64> = lot.parcel.bodies().map(|body| digest(&body)).collect();
                        self.stored(by, lot.queue.as_str(), *first, &digests);
                    }
                }
            }
            (Request::Push(push), Answer::Push(pushed)) if !pushed.duplicate => {
                let Some(source) = number(push.source.as_str()) else { return };
                let queue = format!("q{}", self.wells[source].queue);
                for (parcel, first) in push.parcels.iter().zip(&pushed.firsts) {
                    let digests: Vec<u64> = parcel.bodies().map(|body| digest(&body)).collect();
                    self.stored(by, &queue, *first, &digests);
                    self.wells[source].position += digests.len() as u64;
                }
                self.moved_ms = now;
                self.wells[source].ended = push.end;
                let (position, cursor) = (self.wells[source].position, push.to.clone());
                if cursor != position.to_string() {
                    let rule = format!(
                        "a source has no gap and no repeat: s{source} stands at {cursor} after {position} messages"
                    );
                    self.violated(rule, None);
                }
                if push.end {
                    self.note(by, "ends source", push.source.to_string());
                }
            }
            (Request::Claim(claim), Answer::Claim(Claimed { queue, pieces, .. })) if !pieces.is_empty() => {
                let Some(queue_no) = number(queue.as_str()) else { return };
                self.moved_ms = now;
                for (piece, _) in pieces {
                    self.note_messages(by, "claims", queue_no, piece.range.first, u64::from(piece.range.len));
                    if let Err((rule, id)) = self.ledgers[queue_no].claimed(claim.session, claim.claim_no, piece, now) {
                        self.violated(rule, Some((queue_no, id)));
                    }
                }
            }
            (Request::Settle(settle), Answer::Settle(settled)) => {
                let Some(sitting) = self.sittings.get_mut(&settle.session) else { return };
                if settle.settle_no <= sitting.settle_no {
                    return;
                }
                sitting.settle_no = settle.settle_no;
                (self.moved_ms, self.settles) = (now, self.settles + 1);
                for run in &settle.runs {
                    let Some(queue_no) = number(run.queue.as_str()) else { continue };
                    let refused = settled.refused.contains(&(run.queue.clone(), run.claim_no, run.range));
                    let kind = match (&run.outcome, refused) {
                        (_, true) => "is refused",
                        (Outcome::Done { .. }, _) => "has done",
                        (Outcome::Retry { .. }, _) => "retries",
                        (Outcome::Dead { .. }, _) => "buries",
                        (Outcome::Back, _) => "hands back",
                    };
                    self.note_messages(by, kind, queue_no, run.range.first, u64::from(run.range.len));
                    if refused {
                        continue;
                    }
                    if let Err((rule, id)) = self.ledgers[queue_no].settled(settle.session, run, now) {
                        self.violated(rule, Some((queue_no, id)));
                    }
                    if let Outcome::Done { follow_ups, .. } = &run.outcome {
                        for lot in follow_ups {
                            let Some(to) = number(lot.queue.as_str()) else { continue };
                            let digests: Vec<u64> = lot.parcel.bodies().map(|body| digest(&body)).collect();
                            self.stored(by, lot.queue.as_str(), self.ledgers[to].pushed() + 1, &digests);
                        }
                    }
                }
            }
            (Request::Take(take), Answer::Take(taken)) => {
                let Some(source) = number(take.source.as_str()) else { return };
                self.moved_ms = now;
                if self.wells[source].epoch > taken.epoch {
                    self.violated(format!("epochs of a source never decrease: s{source}"), None);
                }
                self.note(by, "takes the baton of", take.source.to_string());
                (self.wells[source].holder, self.wells[source].epoch) = (Some(take.session), taken.epoch);
            }
            (Request::Resign(resign), _) => {
                let Some(source) = number(resign.source.as_str()) else { return };
                self.moved_ms = now;
                let well = &mut self.wells[source];
                if (well.holder, well.epoch) == (Some(resign.session), resign.epoch) {
                    well.holder = None;
                    self.note(by, "gives back the baton of", resign.source.to_string());
                }
            }
            (Request::Order(Order::Pause(queue) | Order::Resume(queue)), _) => {
                let Some(queue_no) = number(queue.as_str()) else { return };
                self.moved_ms = now;
                let paused = matches!(request, Request::Order(Order::Pause(_)));
                self.ledgers[queue_no].paused = paused;
                self.ledgers[queue_no].begin_anew(now);
                self.note(None, if paused { "an operator pauses" } else { "an operator resumes" }, queue.to_string());
            }
            _ => {}
        }
    }

    fn joined(&mut self, caller: Caller, session: SessionId, kind: Kind, lease_ms: u64) {
        let now = self.now();
        self.moved_ms = now;
        if let Some(ghost) = self.sittings.get_mut(&session) {
            // A late copy after it had left: nobody is behind it.
            if ghost.gone {
                (ghost.gone, ghost.member, ghost.touched_ms) = (false, None, now);
            }
            return;
        }
        let member = caller.map(|(member, _)| member).filter(|_| kind == Kind::Node);
        let sitting = Sitting { member, lease_ms, touched_ms: now, gone: false, settle_no: 0 };
        self.sittings.insert(session, sitting);
        if let Some((member, life)) = caller
            && let Some(living) = self.living(member, life)
        {
            (living.session, living.joined_ms) = (Some(session), now);
        }
        self.note(member, "joins", self.name_of(session));
    }

    fn session_gone(&mut self, session: SessionId, lost: bool) {
        let now = self.now();
        let Some(sitting) = self.sittings.get_mut(&session).filter(|sitting| !sitting.gone) else { return };
        sitting.gone = true;
        let touched_ms = sitting.touched_ms;
        self.moved_ms = now;
        // What it held is due again at the latest when it would have been without anybody's hurry.
        let floor = if lost { (sitting.touched_ms + sitting.lease_ms).saturating_sub(500).min(now) } else { 0 };
        for ledger in &mut self.ledgers {
            ledger.returned(session, lost, now, floor);
        }
        for well in self.wells.iter_mut().filter(|well| well.holder == Some(session)) {
            well.holder = None;
            // Its lease ran from its last call on.
            well.generated_ms = well.generated_ms.max(touched_ms);
        }
    }

    fn stored(&mut self, by: Option<usize>, queue: &str, first: u64, digests: &[u64]) {
        let now = self.now();
        let Some(queue_no) = number(queue) else { return };
        match self.ledgers[queue_no].stored(first, digests, now) {
            Ok(true) => {
                self.moved_ms = now;
                self.note_messages(by, "stores", queue_no, first, digests.len() as u64);
            }
            Ok(false) => {}
            Err((rule, id)) => self.violated(rule, Some((queue_no, id))),
        }
    }

    // ---- what handlers tell

    /// A handler begins.
    pub(super) fn begin(&mut self, begun: &Begun, message: &Message, key: &str, takes_ms: u64) {
        let (now, Life { member, life }) = (self.now(), &begun.of);
        let Begun { queue, id, .. } = begun;
        if self.living(*member, *life).is_none() {
            return;
        }
        if !belongs(message, key, *queue) {
            let text = String::from_utf8_lossy(&message.body).into_owned();
            let rule = format!(
                "no handler sees another queue's message: that of q{queue} on node {member} got {text} as {key}"
            );
            self.violated(rule, Some((*queue, *id)));
        }
        if self.ledgers[*queue].entry(*id).is_none_or(|entry| entry.digest != digest(&message.body)) {
            self.violated("a message has the body it was pushed with".to_owned(), Some((*queue, *id)));
        }
        self.note_messages(Some(*member), "begins", *queue, *id, 1);
        let session = self.members[*member].session;
        let Some(handlers) = self.members[*member].handlers.get_mut(queue) else { return };
        handlers.running += 1;
        let (running, concurrency) = (handlers.running, handlers.concurrency);
        if running >= concurrency {
            handlers.free_since = u64::MAX;
        }
        if running > concurrency {
            let rule = format!("at most {concurrency} handlers of q{queue} run at once on node {member}: {running} do");
            self.violated(rule, Some((*queue, *id)));
        }
        let member = &mut self.members[*member];
        member.busy_until = member.busy_until.max(now + takes_ms);
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
        if let Some(member) = self.living(begun.of.member, begun.of.life)
            && let Some(handlers) = member.handlers.get_mut(&begun.queue)
        {
            if handlers.running >= handlers.concurrency {
                handlers.free_since = now;
            }
            handlers.running = handlers.running.saturating_sub(1);
            self.note_messages(Some(begun.of.member), "ends", begun.queue, begun.id, 1);
        }
    }

    // ---- what sources tell

    /// A source is opened; how often it was before.
    pub(super) fn opened(&mut self, source: usize, member: usize, life: u32) -> u64 {
        let now = self.now();
        self.note(Some(member), "opens", format!("s{source}"));
        let well = &mut self.wells[source];
        well.open.push((member, life));
        (well.generated_ms, well.opens) = (now, well.opens + 1);
        well.opens - 1
    }

    /// A source fails or panics; what is open of it is of no more use.
    pub(super) fn source_failed(&mut self, source: usize, member: usize, how: &'static str) {
        let now = self.now();
        self.note(Some(member), "source", format!("s{source} {how}"));
        let well = &mut self.wells[source];
        well.open.retain(|(open, _)| *open != member);
        (well.failed_ms, well.generated_ms) = (Some(now), now);
    }

    /// A source is no longer open there.
    pub(super) fn closed(&mut self, source: usize, member: usize, life: u32) {
        let now = self.now();
        let well = &mut self.wells[source];
        if well.open.contains(&(member, life)) {
            well.open.retain(|open| *open != (member, life));
            well.generated_ms = now;
        }
    }

    // ---- names for people

    fn name_of(&self, session: SessionId) -> String {
        let short: String = session.to_string().chars().take(6).collect();
        match self.sittings.get(&session).and_then(|sitting| sitting.member) {
            Some(member) => format!("{short} of node {member}"),
            None => short,
        }
    }
}

/// The number in a name such as `q7`.
pub(super) fn number(name: &str) -> Option<usize> {
    name.get(1..)?.parse().ok()
}

/// A request in a few words.
fn label(request: &Request) -> String {
    match request {
        Request::Claim(claim) => format!("claim {} of {}", claim.claim_no, claim.queue),
        Request::Settle(settle) => format!("settle {}, {} runs", settle.settle_no, settle.runs.len()),
        Request::Push(push) => format!("push {} of {}", push.batch_no, push.source),
        Request::Submit(submit) => format!("submit {}", submit.submit_no),
        Request::Take(take) => format!("take {}", take.source),
        Request::Resign(resign) => format!("resign {}", resign.source),
        other => format!("{other:?}").split(['(', ' ']).next().unwrap_or_default().to_lowercase(),
    }
}
