//! Random calls, one by one and in groups: the SQLite store gives the answers of the store in memory.

use baton::{
    Key, MessageId, Name, SessionId,
    store::{
        Answer, Beat, Claim, Claimed, Clock, Destroy, Disposal, Dispose, Join, KEY_TTL_MS, Kind, Leave, MemoryStore,
        MoveBookmark, Offer, Operation as _, Order, Peek, Place, Push, ReadBookmark, ReadResult, Reap, Recount,
        Refusal, RemovalBegin, Request, Resign, Rewind, Settle, SqliteOptions, SqliteStore, Stop, Store as _,
        StoreError, Submit, Take, TakeSurvey,
        message::{Body, Digest, Fields, Outcome, ParcelBuilder, Range, Run, Span, Submission, SubmissionKey},
    },
};
use bytes::Bytes;

use crate::name;

/// A caller as the generator knows it: what it holds and which numbers come next.
#[derive(Debug)]
struct Caller {
    id: SessionId,
    claims: Vec<(u64, Name, Vec<Span>)>,
    next_claim: u64,
    settle_no: u64,
    submit_no: u64,
    dispose_no: u64,
}

struct Generator {
    state: u64,
    joined: u128,
    callers: Vec<Caller>,
    /// Sessions that went silent: left to be reaped.
    silent: Vec<SessionId>,
    /// Who holds the baton, its epoch, the cursor and the last batch.
    baton: (Option<SessionId>, u64, String, u64),
    /// Who drains which queue, and what it found there.
    drain: Option<(SessionId, Name, Vec<MessageId>)>,
    place: Place,
}

impl Generator {
    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) % bound
    }

    fn one_in(&mut self, odds: u64) -> bool {
        self.below(odds) == 0
    }

    fn queue(&mut self) -> Name {
        name(["a", "b", "c"][self.below(3) as usize])
    }

    fn parcel(&mut self) -> baton::store::message::Parcel {
        let headed = self.one_in(3);
        let field = |tag: u8, has: bool| Fields::default().with(tag, has.then_some(&b"value"[..])).unwrap();
        let mut builder = ParcelBuilder::default().shared(field(9, headed && self.one_in(2)));
        for _ in 0..=[0, 3, 40, 200][self.below(4) as usize] {
            let len = if self.one_in(20) { 5_000 } else { self.below(120) };
            let byte = b'a' + self.below(26) as u8;
            builder
                .add_with(&field(byte, headed && self.one_in(3)), Body::new(&vec![byte; len as usize]).unwrap())
                .unwrap();
        }
        let parcel = builder.finish().unwrap();
        // A cut of a parcel is a parcel too, with a base of its own.
        if self.one_in(4) { parcel.cut(parcel.len() / 2, parcel.len().div_ceil(2)).unwrap() } else { parcel }
    }

    fn submission(&mut self) -> Submission {
        let queue = self.queue();
        if self.one_in(3) {
            let body = [b'0' + self.below(2) as u8];
            let key = Key::new(["k", "l", "m", "n", "o", "p"][self.below(6) as usize]).unwrap();
            let lives_ms = if self.one_in(2) { KEY_TTL_MS } else { 1 + self.below(500) };
            let key = Some(SubmissionKey { key, digest: Digest::of(&body), lives_ms });
            return Submission { queue, parcel: crate::parcel(&[&body]), key, call: None };
        }
        Submission { queue, parcel: self.parcel(), key: None, call: None }
    }

    fn join(&mut self) -> Request {
        self.joined += 1;
        let id = SessionId::from_u128(self.joined * 0x1234_5678_9abc_def1_0000_0001);
        let caller = Caller { id, claims: Vec::new(), next_claim: 1, settle_no: 1, submit_no: 1, dispose_no: 1 };
        if self.callers.len() >= 4 {
            let gone = self.below(4) as usize;
            self.silent.push(self.callers.remove(gone).id);
        }
        self.callers.push(caller);
        let offers = vec![Offer { source: name("s"), queue: name("a"), definition: Digest::of(b"s"), adopts: false }];
        let kind = if self.one_in(3) { Kind::Client } else { Kind::Node };
        let queues = vec![name("a"), name("c")];
        let lease_ms = 300 + self.below(400);
        Join { session: id, kind, host: "h".into(), pid: 1, queues, lease_ms, heartbeat_ms: 100, offers, former: None }
            .request()
    }

    fn runs(&mut self, caller: usize) -> Vec<Run> {
        let mut runs = Vec::new();
        for _ in 0..=self.below(3) {
            let held = self.callers[caller].claims.len() as u64;
            if held == 0 {
                break;
            }
            let at = self.below(held) as usize;
            let (claim_no, queue, spans) = self.callers[caller].claims[at].clone();
            let range = spans[self.below(spans.len() as u64) as usize].range;
            let start = if self.one_in(2) { 0 } else { self.below(u64::from(range.len)) as u32 };
            let len =
                if self.one_in(2) { range.len - start } else { 1 + self.below(u64::from(range.len - start)) as u32 };
            let range = Range { first: range.first + u64::from(start), len };
            let outcome = match self.below(8) {
                0 => {
                    let after_ms = if self.one_in(9) { u64::from(u32::MAX) } else { self.below(400) };
                    let error = if self.one_in(3) { String::new() } else { "again ".repeat(self.below(60) as usize) };
                    Outcome::Retry { after_ms, error }
                }
                1 => Outcome::Failed { error: "no".repeat(self.below(9) as usize) },
                2 => Outcome::Back,
                3 => Outcome::Done { result: None, follow_ups: vec![self.submission()] },
                4 if len == 1 => Outcome::Done { result: Some(Bytes::from_static(b"{}")), follow_ups: Vec::new() },
                _ => Outcome::DONE,
            };
            runs.push(Run { claim_no, queue, range, outcome });
        }
        runs
    }

    fn submit(&mut self, session: SessionId, submit_no: u64) -> Request {
        let submissions = (0..=self.below(4)).map(|_| self.submission()).collect();
        let bookmark = self.one_in(4).then(|| {
            let from = if self.one_in(5) { Place::START } else { self.place };
            let to = Place { lines: self.place.lines + 1, digest: self.place.digest.then(b"x") };
            MoveBookmark { key: Key::new("mark").unwrap(), from, to }
        });
        let max_queue_bytes = if self.one_in(4) { 20_000 } else { 1 << 30 };
        Submit { session, submit_no, submissions, bookmark, max_queue_bytes, max_keys: 4 }.request()
    }

    /// A call, mostly in order, sometimes repeated or out of turn.
    fn request(&mut self) -> Request {
        if self.callers.len() < 2 || self.one_in(25) {
            return self.join();
        }
        let at = self.below(self.callers.len() as u64) as usize;
        let session = self.callers[at].id;
        let slip = if self.one_in(8) { self.below(3) } else { 1 };
        let source = name("s");
        match self.below(40) {
            0..=6 => {
                let no = self.callers[at].submit_no + slip - 1;
                self.submit(session, no)
            }
            7..=14 => {
                let no = if self.one_in(6) { self.below(9) + 1 } else { self.callers[at].next_claim };
                let n = [1, 3, 30, 500][self.below(4) as usize];
                let max_bytes = [0, 50, 2_000, 1 << 40][self.below(4) as usize];
                Claim { session, queue: self.queue(), claim_no: no, n, max_bytes }.request()
            }
            15..=23 => {
                let settle_no = self.callers[at].settle_no + slip - 1;
                Settle { session, settle_no, runs: self.runs(at), max_results: baton::store::MAX_RESULTS }.request()
            }
            24 => Take { session, source }.request(),
            25..=27 => {
                let (holder, epoch, from, batch_no) = self.baton.clone();
                let session = holder.filter(|_| !self.one_in(9)).unwrap_or(session);
                let to = if self.one_in(9) { from.clone() } else { format!("{from}.") };
                let parcels = (0..self.below(3)).map(|_| self.parcel()).collect();
                let batch_no = batch_no + slip;
                let end = self.one_in(30);
                let max_queue_bytes = if self.one_in(4) { 100_000 } else { 1 << 30 };
                Push { session, source, epoch, batch_no, from, to, parcels, end, max_queue_bytes }.request()
            }
            28 if self.one_in(4) => Resign { session, source, epoch: self.baton.1 }.request(),
            29 if self.one_in(3) => Rewind { source, goes_on: self.one_in(2) }.request(),
            30 | 31 => {
                let at = self.below(self.silent.len().max(1) as u64) as usize;
                let target = self.silent.get(at).copied().unwrap_or(session);
                Reap { session, target }.request()
            }
            32 => RemovalBegin { session, queue: self.queue() }.request(),
            33 | 34 => {
                let found = self.drain.clone().filter(|_| !self.one_in(5));
                let (session, queue, ids) = found.unwrap_or((session, self.queue(), [1, 2, 3].map(MessageId).to_vec()));
                let caller = self.callers.iter().find(|caller| caller.id == session);
                let dispose_no = caller.map_or(1, |caller| caller.dispose_no) + slip - 1;
                let disposal = if self.one_in(2) { Disposal::Remove } else { Disposal::Requeue };
                Dispose { session, dispose_no, queue, ids, disposal }.request()
            }
            35 => match self.below(8) {
                0 => Order::Pause(self.queue()).request(),
                1 => Order::Stop(Stop::Graceful, None).request(),
                _ => Order::Resume(self.queue()).request(),
            },
            36 if self.one_in(6) => Leave { session }.request(),
            36 if self.one_in(20) => Destroy.request(),
            36 | 37 => {
                let limit = 1 + self.below(20) as u32;
                let queue = self.drain.as_ref().map_or_else(|| name("a"), |(_, queue, _)| queue.clone());
                let queue = if self.one_in(3) { self.queue() } else { queue };
                Peek { queue, after: self.below(3), upto: u64::MAX, limit, max_bytes: 500 }.request()
            }
            38 => ReadResult { queue: self.queue(), id: MessageId(1 + self.below(200)) }.request(),
            39 => ReadBookmark { key: Key::new("mark").unwrap() }.request(),
            _ => Beat { session, report: Bytes::from(vec![7; self.below(3) as usize]), asks: vec![self.queue()] }
                .request(),
        }
    }

    /// Learns from an answer what the next calls may be.
    fn learn(&mut self, request: &Request, answer: &Result<Answer, StoreError>) {
        let caller = self.callers.iter_mut().find(|caller| Some(caller.id) == request.session());
        if let (Err(StoreError::Refused(Refusal::Stale)), Some(session)) = (answer, request.session()) {
            self.callers.retain(|caller| caller.id != session);
            return;
        }
        match (request, answer, caller) {
            (Request::Claim(it), Ok(Answer::Claim(Claimed { queue, spans, .. })), Some(caller))
                if !spans.is_empty() =>
            {
                caller.next_claim = caller.next_claim.max(it.claim_no + 1);
                caller.claims.retain(|(no, of, _)| (*no, of) != (it.claim_no, queue));
                let spans: Vec<Span> = spans.iter().map(|(span, _)| *span).collect();
                caller.claims.push((it.claim_no, queue.clone(), spans));
            }
            (Request::Submit(it), Ok(_), Some(caller)) => {
                caller.submit_no = caller.submit_no.max(it.submit_no + 1);
            }
            (Request::Settle(it), Ok(_), Some(caller)) => {
                caller.settle_no = caller.settle_no.max(it.settle_no + 1);
                for run in &it.runs {
                    for (_, _, spans) in
                        caller.claims.iter_mut().filter(|(no, of, _)| (*no, of) == (run.claim_no, &run.queue))
                    {
                        let rest = spans.iter().flat_map(|span| match span.range.overlap(run.range) {
                            Some(part) => span.without(part).into_iter().flatten().collect(),
                            None => vec![*span],
                        });
                        *spans = rest.collect();
                    }
                }
                caller.claims.retain(|(_, _, spans)| !spans.is_empty());
            }
            (Request::Dispose(it), Ok(_), Some(caller)) => {
                caller.dispose_no = caller.dispose_no.max(it.dispose_no + 1);
            }
            (Request::Take(it), Ok(Answer::Take(taken)), _) => {
                self.baton = (Some(it.session), taken.epoch, taken.cursor.clone(), taken.batch_no);
            }
            (Request::Push(it), Ok(Answer::Push(pushed)), _) if !pushed.duplicate => {
                self.baton = (Some(it.session), it.epoch, it.to.clone(), it.batch_no);
            }
            (Request::RemovalBegin(it), Ok(_), _) => self.drain = Some((it.session, it.queue.clone(), Vec::new())),
            (Request::Peek(it), Ok(Answer::Peek(page)), _) => {
                if let Some((_, _, ids)) = self.drain.as_mut().filter(|(_, queue, _)| *queue == it.queue) {
                    *ids = page.errors.iter().map(|error| error.id).collect();
                }
            }
            (Request::Bookmark(_), Ok(Answer::Bookmark(place)), _) => self.place = *place,
            _ => {}
        }
    }
}

/// Answers without what is random by design.
fn plain(answer: Result<Answer, StoreError>) -> Result<Answer, StoreError> {
    answer.map(|answer| match answer {
        Answer::Join(mut joined) => {
            joined.incarnation.clear();
            Answer::Join(joined)
        }
        other => other,
    })
}

async fn compare(seed: u64, steps: u64) {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(1_000_000);
    let options = SqliteOptions { clock: clock.clone(), create: true };
    let model = MemoryStore::new(clock.clone());
    let sqlite = SqliteStore::open(&folder.path().join("x.db"), name("baton"), options).unwrap();
    let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = Generator {
        state,
        joined: 0,
        callers: Vec::new(),
        silent: Vec::new(),
        baton: Default::default(),
        drain: None,
        place: Place::START,
    };
    let mut now = 1_000_000;
    for step in 0..steps {
        now = match random.below(200) {
            0 => now + 25 * 3_600_000,
            1..=4 => now - 50,
            _ => now + random.below(60) * random.below(10),
        };
        clock.set(now);
        let mut group: Vec<Request> = (0..=random.below(3)).map(|_| random.request()).collect();
        if step % 20 == 0 {
            group = vec![TakeSurvey.request(), Recount { max_hold_ms: 0 }.request()];
        }
        // Only calls of one thread keep their order, so a group ends with the first that goes another way.
        let other_way = |r: &Request| {
            !matches!(
                r,
                Request::Submit(_) | Request::Claim(_) | Request::Settle(_) | Request::Push(_) | Request::Join(_)
            )
        };
        let together = group.iter().position(other_way).unwrap_or(group.len());
        let (together, apart) = group.split_at(together);
        let mut pairs = Vec::new();
        for request in together {
            pairs.push((request, model.call(request.clone()).await, sqlite.call(request.clone())));
        }
        for (request, wanted, got) in pairs {
            let got = got.await;
            random.learn(request, &got);
            assert_eq!(plain(got), plain(wanted), "seed {seed}, step {step}: {request:?}");
        }
        for request in apart {
            let wanted = model.call(request.clone()).await;
            let got = sqlite.call(request.clone()).await;
            random.learn(request, &got);
            if let Ok(Answer::Recount(recounted)) = &got {
                assert!(recounted.queues.iter().all(baton::store::QueueRecount::balance), "seed {seed}, step {step}");
            }
            assert_eq!(plain(got), plain(wanted), "seed {seed}, step {step}: {request:?}");
        }
    }
}

#[tokio::test]
async fn random_calls_get_the_answers_of_the_model() {
    let seeds = std::env::var("BATON_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(3);
    for seed in 1..=seeds {
        compare(seed, 300).await;
    }
}
