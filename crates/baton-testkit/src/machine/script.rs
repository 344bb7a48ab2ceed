//! Giving steps a meaning: from small numbers and what is known so far to requests.

use baton::{
    CallId, Key, MessageId, Name, SessionId,
    store::{
        Answer, Beat, Claimed, Destroy, Disposal, Dispose, Emitted, Join, KEY_TTL_MS, Kind, Leave, Look, MoveBookmark,
        Offer, Operation, Pass, Peek, Place, Purge, Push, ReadBookmark, ReadResult, Reap, Refusal, RemovalBegin,
        Remove, RemoveQueue, Request, Resign, Rewind, StoreError, SubmissionVerdict, Submit, Take,
        message::{Body, Digest, Outcome, Parcel, Submission, SubmissionKey},
    },
};
use bytes::Bytes;

use super::{
    Step,
    cache::cache,
    calls::{about, beginning, emit, recent},
    draw::{asks, claim, order, parcel, queue, settle, source},
    known_session::{Baton, KnownSession},
};

const SESSIONS: usize = 5;
/// A kind of step that joins.
const JOIN: u16 = 7;

/// What a step turns out to be.
pub(super) enum Move {
    /// The clock is set.
    Time(u64),
    /// A request is made.
    Call(Request),
}

/// Everything known so far.
pub(super) struct Script {
    sessions: Vec<KnownSession>,
    joined: u128,
    /// Sessions whose owner went away without leaving.
    abandoned: Vec<SessionId>,
    results: Vec<(Name, MessageId)>,
    drainer: Option<(SessionId, Name)>,
    /// The last purge, and up to which id it went.
    purged: Option<(Name, u64)>,
    history: Vec<Request>,
    places: [Place; 2],
    dead: Vec<(Name, MessageId)>,
    calls: Vec<CallId>,
}

impl Script {
    pub(super) fn new() -> Self {
        let unknown = |slot| KnownSession { over: true, ..KnownSession::new(SessionId::from_u128(slot)) };
        Self {
            sessions: (0..SESSIONS as u128).map(unknown).collect(),
            joined: SESSIONS as u128,
            abandoned: Vec::new(),
            results: Vec::new(),
            drainer: None,
            purged: None,
            history: Vec::new(),
            places: [Place::START; 2],
            dead: Vec::new(),
            calls: Vec::new(),
        }
    }

    pub(super) fn history(&self) -> &[Request] {
        &self.history
    }

    /// A call to look at after a step.
    pub(super) fn call(&self, step: &Step) -> Option<CallId> {
        (!self.calls.is_empty()).then(|| recent(&self.calls, step[1]))
    }

    /// The request a step stands for.
    pub(super) fn request(&mut self, step: &Step, now: u64) -> Move {
        let [kind, who, a, b, c, _] = *step;
        let slot = who as usize % SESSIONS;
        let known = self.sessions[slot].clone();
        let session = known.id;
        let kind = if known.over && !b.is_multiple_of(5) { JOIN } else { kind % 134 };
        let request = match kind {
            0..6 => {
                let ahead = [1, 40, 150, 260, 600, 5_000, 30_000, 200][a as usize % 8];
                return Move::Time(now + ahead);
            }
            6 => return Move::Time(now.saturating_sub(u64::from(a % 3_000))),
            JOIN..10 => self.join(slot, a, b, c),
            10..17 => Beat { session, report: Bytes::from(format!("{b}")), asks: asks(c) }.request(),
            17 => Leave { session }.request(),
            18..25 => Reap { session, target: self.target(a) }.request(),
            25..33 => Take { session, source: source(a) }.request(),
            33 => Resign { session, source: source(a), epoch: self.baton(slot, a).epoch }.request(),
            34 if b.is_multiple_of(3) => Remove { source: source(a) }.request(),
            34 => Rewind { source: source(a), goes_on: c.is_multiple_of(2) }.request(),
            35..46 => self.push(slot, a, b, c),
            46..57 => self.submit(slot, a, b, c),
            57..69 => claim(&known, a, b, c),
            69 => Pass { session, queue: queue(a) }.request(),
            70..73 => Look { session }.request(),
            73..88 => settle(&known, a, b, c),
            88..90 => RemovalBegin { session, queue: queue(a) }.request(),
            90 => Peek { queue: queue(a), after: u64::from(b % 5), upto: u64::MAX >> 12, limit: 7, max_bytes: 90 }
                .request(),
            91..94 => self.dispose(&known, a, b),
            94 => order(a, b),
            95 => {
                let (queue, id) = self.results.last().cloned().unwrap_or((queue(a), MessageId(1)));
                ReadResult { queue, id }.request()
            }
            96 => ReadBookmark { key: Key::new(["k0", "k1"][a as usize % 2]).unwrap() }.request(),
            97 if b.is_multiple_of(4) => Destroy.request(),
            98 if b.is_multiple_of(2) => self.purge(&known, a, b),
            99 if b.is_multiple_of(2) => RemoveQueue { queue: queue(a) }.request(),
            100 if b.is_multiple_of(3) => return Move::Time(now + 3_600_000),
            100..108 => {
                // Mostly one that holds a message of a call.
                let holds = |known: &&KnownSession| known.claims.values().flatten().any(|span| span.role.is_some());
                let holder = self.sessions.iter().find(holds).filter(|_| !b.is_multiple_of(8));
                emit(holder.unwrap_or(&known), a, b, c)
            }
            108..118 => about(recent(&self.calls, a), session, kind - 108, b, c),
            118..134 => cache(session, kind - 118, a, b, c),
            _ => {
                self.held_up(a, b).unwrap_or_else(|| Beat { session, report: Bytes::new(), asks: Vec::new() }.request())
            }
        };
        self.history.push(request.clone());
        Move::Call(request)
    }

    /// What the caller learns from an answer.
    pub(super) fn learn(&mut self, request: &Request, answer: Result<Answer, StoreError>) {
        let session = request.session();
        let answer = match answer {
            Ok(answer) => answer,
            Err(StoreError::Refused(Refusal::Stale)) => {
                let known = self.sessions.iter_mut().find(|known| Some(known.id) == session);
                return known.into_iter().for_each(|known| known.over = true);
            }
            Err(_) => return,
        };
        let known = self.sessions.iter_mut().find(|known| Some(known.id) == session);
        match (request, answer, known) {
            (Request::Take(it), Answer::Take(taken), Some(known)) => {
                let baton = Baton { epoch: taken.epoch, batch_no: taken.batch_no, cursor: taken.cursor };
                known.batons.insert(it.source.clone(), baton);
            }
            (Request::Push(it), Answer::Push(pushed), Some(known)) => {
                let baton = known.batons.entry(it.source.clone()).or_default();
                if !pushed.duplicate && baton.epoch == it.epoch {
                    baton.batch_no = it.batch_no;
                    baton.cursor.clone_from(&it.to);
                }
            }
            (Request::Emit(it), Answer::Emit(Emitted::Kept), Some(known)) => {
                let told = known.told.entry((it.queue.clone(), it.id.0, it.claim_no)).or_default();
                *told = (it.number + it.events.len() as u64 - 1).max(*told);
            }
            (Request::Submit(it), Answer::Submit(submitted), known) => {
                for (submission, verdict) in it
                    .submissions
                    .iter()
                    .zip(&submitted.submissions)
                    .filter(|(submission, _)| submission.call.is_some())
                {
                    if let SubmissionVerdict::Begun { first, born } = verdict {
                        let (queue, id) = (submission.queue.clone(), MessageId(*first));
                        self.calls.push(CallId { queue, id, born: Some(*born) });
                    }
                }
                if let Some(known) = known {
                    known.submit_no = known.submit_no.max(it.submit_no);
                }
                if let Some(mark) = &it.bookmark {
                    self.places[usize::from(mark.key.as_str() == "k1")] = mark.to;
                }
            }
            (Request::Claim(it), Answer::Claim(Claimed { queue, spans, .. }), Some(known)) if !spans.is_empty() => {
                let used = known.claim_nos.entry(queue.clone()).or_default();
                *used = it.claim_no.max(*used);
                let spans = spans.into_iter().map(|(span, _)| span).collect();
                known.claims.insert((queue, it.claim_no), spans);
            }
            (Request::Settle(it), Answer::Settle(settled), Some(known)) => {
                known.settle_no = known.settle_no.max(it.settle_no);
                for run in &it.runs {
                    if settled.refused.contains(&(run.queue.clone(), run.claim_no, run.range)) {
                        continue;
                    }
                    if matches!(run.outcome, Outcome::Done { result: Some(_), .. }) {
                        self.results.push((run.queue.clone(), MessageId(run.range.first)));
                    }
                    if matches!(run.outcome, Outcome::Failed { .. }) {
                        self.dead.extend(run.range.ids().map(|id| (run.queue.clone(), id)));
                    }
                    if let Some(spans) = known.claims.get_mut(&(run.queue.clone(), run.claim_no)) {
                        let rest = spans.iter().flat_map(|span| match span.range.overlap(run.range) {
                            Some(part) => span.without(part).into_iter().flatten().collect::<Vec<_>>(),
                            None => vec![*span],
                        });
                        *spans = rest.collect();
                    }
                }
                known.claims.retain(|_, spans| !spans.is_empty());
            }
            (Request::RemovalBegin(it), Answer::RemovalBegin(_), _) => {
                self.drainer = Some((it.session, it.queue.clone()));
            }
            (Request::Purge(it), Answer::Purge(purged), Some(known)) => {
                known.dispose_no = known.dispose_no.max(it.dispose_no);
                self.purged = Some((it.queue.clone(), purged.upto));
            }
            (Request::Dispose(it), Answer::Dispose(_), Some(known)) => {
                known.dispose_no = known.dispose_no.max(it.dispose_no);
                self.dead.retain(|(name, id)| *name != it.queue || !it.ids.contains(id));
            }
            _ => {}
        }
    }

    fn join(&mut self, slot: usize, a: u16, b: u16, c: u16) -> Request {
        self.joined += 1;
        self.abandoned.push(self.sessions[slot].id);
        let kind = if a.is_multiple_of(4) { Kind::Client } else { Kind::Node };
        self.sessions[slot] = KnownSession::new(SessionId::from_u128(self.joined));
        let lease_ms = [1_000, 300, 700, 2_000][b as usize % 4];
        let offers = (0..3).filter(|bit| c >> bit & 1 == 1).map(|bit| Offer {
            source: source(bit),
            queue: queue(if b % 36 == 7 { bit + 1 } else { bit }),
            definition: Digest::of(if b % 24 == 5 { b"other" } else { b"this" }),
            adopts: a % 8 > 4,
        });
        Join {
            session: self.sessions[slot].id,
            kind,
            host: format!("host{slot}"),
            pid: u32::from(c),
            queues: vec![queue(a), queue(b)],
            lease_ms,
            heartbeat_ms: if b.is_multiple_of(97) { lease_ms } else { 100 },
            offers: offers.collect(),
            former: (b % 7 == 3).then_some(u64::from(a % 5) + 1),
        }
        .request()
    }

    /// A session to reap: one of the sessions, or one that was abandoned.
    fn target(&self, a: u16) -> SessionId {
        let recent = self.abandoned.len().saturating_sub(4);
        let all = self.sessions.iter().map(|known| known.id).chain(self.abandoned[recent..].iter().copied());
        let all: Vec<SessionId> = all.collect();
        all[a as usize % all.len()]
    }

    fn baton(&self, slot: usize, a: u16) -> Baton {
        self.sessions[slot].batons.get(&source(a)).cloned().unwrap_or_default()
    }

    fn push(&self, slot: usize, a: u16, b: u16, c: u16) -> Request {
        // Mostly a baton that somebody holds, sometimes one that somebody held.
        let holder = self.sessions.iter().find(|known| known.batons.contains_key(&source(a)));
        let known = holder.filter(|_| !b.is_multiple_of(8)).unwrap_or(&self.sessions[slot]);
        let baton = known.batons.get(&source(a)).cloned().unwrap_or_default();
        let parcels: Vec<Parcel> = (0..c % 4).map(|nth| parcel(c.wrapping_mul(31).wrapping_add(nth))).collect();
        let odd = |nth: u16, value: u64| if b % 32 == nth { value } else { 0 };
        Push {
            session: known.id,
            source: source(a),
            epoch: baton.epoch + odd(1, 1),
            batch_no: (baton.batch_no + 1 + odd(2, 1)).saturating_sub(odd(3, 2)),
            from: if b % 32 == 4 { "elsewhere".to_owned() } else { baton.cursor },
            to: format!("c{}", self.history.len()),
            parcels,
            end: b % 31 == 5,
            max_queue_bytes: if b % 16 == 6 { 300 } else { 1 << 30 },
        }
        .request()
    }

    fn submit(&self, slot: usize, a: u16, b: u16, c: u16) -> Request {
        let known = &self.sessions[slot];
        // None now and then.
        let submissions = (0..if c % 29 == 7 { 0 } else { 1 + a % 4 }).map(|nth| {
            let seed = b.wrapping_mul(17).wrapping_add(nth);
            if c.wrapping_add(nth) % 4 == 1 {
                return beginning(seed);
            }
            if c.wrapping_add(nth) % 5 != 0 {
                return Submission { queue: queue(seed), parcel: parcel(seed), key: None, call: None };
            }
            let body = format!("{{\"keyed\":{}}}", seed % 3);
            let key = Key::new(&format!("key{}", seed / 7 % 4)).unwrap();
            let lives_ms = [KEY_TTL_MS, 300, 1][usize::from(c / 5 % 3)];
            let key = Some(SubmissionKey { key, digest: Digest::of(body.as_bytes()), lives_ms });
            let call = beginning(seed).call.filter(|_| seed.is_multiple_of(2));
            Submission { queue: queue(seed), parcel: Parcel::single(Body::new(body.as_bytes()).unwrap()), key, call }
        });
        let mark = usize::from(b % 2);
        let bookmark = (c % 7 == 1).then(|| MoveBookmark {
            key: Key::new(["k0", "k1"][mark]).unwrap(),
            from: if c % 21 == 1 { Place::START } else { self.places[mark] },
            to: Place { lines: u64::from(b) + 1, digest: Digest::of(&b.to_le_bytes()) },
        });
        let submit_no = match c % 40 {
            2 => known.submit_no + 2,
            3 => known.submit_no,
            4 => known.submit_no.saturating_sub(u64::from(a % 20)),
            _ => known.submit_no + 1,
        };
        Submit {
            session: known.id,
            submit_no,
            submissions: submissions.collect(),
            bookmark,
            max_queue_bytes: if c % 11 == 5 { 400 } else { 1 << 30 },
            max_keys: if c.is_multiple_of(3) { 2 } else { 1_000 },
        }
        .request()
    }

    fn dispose(&self, known: &KnownSession, a: u16, b: u16) -> Request {
        // Mostly the drainer of a queue, sometimes anyone.
        let drainer = self.drainer.as_ref().filter(|_| !b.is_multiple_of(8));
        let drains = drainer.and_then(|(id, name)| Some((self.sessions.iter().find(|it| it.id == *id)?, name.clone())));
        let (known, name) = drains.unwrap_or_else(|| (known, queue(a)));
        let of_queue = self.dead.iter().filter(|(queue, _)| *queue == name).map(|(_, id)| *id);
        Dispose {
            session: known.id,
            dispose_no: (known.dispose_no + 1 + u64::from(b % 16 == 1)).saturating_sub(u64::from(b % 16 == 2)),
            ids: of_queue.skip(b as usize % 3).take(b as usize % 9).chain([MessageId(99_999)]).collect(),
            queue: name,
            disposal: if b % 3 == 1 { Disposal::Requeue } else { Disposal::Remove },
        }
        .request()
    }

    fn purge(&self, known: &KnownSession, a: u16, b: u16) -> Request {
        let queue = queue(a);
        // A purge that goes on, or a new one.
        let upto = self.purged.as_ref().filter(|(name, _)| *name == queue && b % 4 == 2).map(|(_, upto)| *upto);
        let dispose_no = (known.dispose_no + 1 + u64::from(b % 16 == 4)).saturating_sub(u64::from(b % 16 == 6));
        Purge { session: known.id, dispose_no, queue, upto, failed: b.is_multiple_of(3) }.request()
    }

    /// A copy of an old request that the network held up.
    fn held_up(&self, a: u16, b: u16) -> Option<Request> {
        let recent = if b.is_multiple_of(2) { self.history.len().saturating_sub(12) } else { 0 };
        let pool = &self.history[recent..];
        pool.get(a as usize % pool.len().max(1)).cloned()
    }
}
