//! Random calls to the store in Redis and to the one in memory: every answer and the books must be the same.
//! `BATON_SEED` repeats a run, `BATON_STEPS` sets its length.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod redis_server;

use std::collections::BTreeMap;

use baton::{message::*, store::*};
use bytes::Bytes;
use redis_server::RedisServer;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 20) % sides
    }
    fn chance(&mut self, percent: u64) -> bool {
        self.roll(100) < percent
    }
    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len() as u64) as usize].clone()
    }
}

#[derive(Default, Clone)]
struct Known {
    claims: BTreeMap<u64, (Name, Vec<Range>)>,
    high: u64,
    settle_no: u64,
    submit_no: u64,
    dispose_no: u64,
    epoch: BTreeMap<Name, (u64, u64, String)>,
}

struct World {
    dice: Dice,
    now: u64,
    sessions: Vec<SessionId>,
    joined: u128,
    known: BTreeMap<SessionId, Known>,
    marks: BTreeMap<u64, Place>,
    expired: Vec<SessionId>,
    drainers: BTreeMap<Name, SessionId>,
    nodes: u64,
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

impl World {
    fn queue(&mut self) -> Name {
        name(self.dice.pick(&["a", "a", "a", "a-b", "b"]))
    }
    fn source(&mut self) -> Name {
        name(self.dice.pick(&["s1", "s2", "s3"]))
    }
    fn session(&mut self) -> SessionId {
        if self.sessions.is_empty() || self.dice.chance(2) {
            return SessionId::from_u128(999_999);
        }
        let sessions = self.sessions.clone();
        self.dice.pick(&sessions)
    }
    fn parcel(&mut self) -> Parcel {
        let mut builder = ParcelBuilder::default();
        let most = self.dice.pick(&[1, 1, 3, 40]);
        for _ in 0..=self.dice.roll(most) {
            let len = self.dice.pick(&[0, 1, 3, 10, 50, 300]);
            let byte = b'a' + self.dice.roll(26) as u8;
            builder.add(&vec![byte; len as usize]).unwrap();
        }
        let parcel = builder.finish().unwrap();
        if self.dice.chance(20) && parcel.len() > 2 {
            return parcel.cut(1, parcel.len() - 2).unwrap();
        }
        parcel
    }
    fn lot(&mut self) -> Lot {
        let queue = self.queue();
        if self.dice.chance(30) {
            let body = vec![b'k'; self.dice.roll(2) as usize];
            let key = Key::new(&format!("key {}", self.dice.roll(12))).unwrap();
            let parcel = Parcel::single(&body).unwrap();
            return Lot { queue, parcel, key: Some(LotKey { key, digest: Digest::of(&body) }) };
        }
        Lot { queue, parcel: self.parcel(), key: None }
    }
    fn max_backlog(&mut self) -> u64 {
        self.dice.pick(&[u64::MAX, u64::MAX, 1 << 40, 3000, 400])
    }
    fn number(&mut self, last: u64) -> u64 {
        match self.dice.roll(20) {
            0 => last,
            1 => last.saturating_sub(self.dice.roll(20)),
            2 => last + 2,
            3 if self.dice.chance(10) => u64::MAX,
            _ => last + 1,
        }
    }

    fn request(&mut self) -> Request {
        let step = self.dice.pick(&[0, 0, 1, 1, 7, 100, 300, 300, 600]);
        self.now += step;
        match self.dice.roll(400) {
            0 => self.now += 3_600_000,
            1 => self.now += 25 * 3_600_000,
            2 => self.now -= 5_000,
            3 => self.now -= 3_600_000,
            _ => {}
        }
        if self.sessions.len() < 3 || self.dice.chance(1) {
            return self.join();
        }
        let session = self.session();
        let known = self.known.get(&session).cloned().unwrap_or_default();
        match self.dice.roll(100) {
            0..=9 => Beat { session, report: Bytes::from(format!("r{}", self.dice.roll(9))) }.request(),
            10 => Leave { session }.request(),
            11..=14 => Take { session, source: self.source() }.request(),
            15 => {
                let source = self.source();
                let epoch = known.epoch.get(&source).map_or(7, |it| it.0);
                Resign { session, source, epoch }.request()
            }
            16..=27 => {
                let source = self.source();
                let holder =
                    self.sessions.iter().find(|id| self.known.get(id).is_some_and(|it| it.epoch.contains_key(&source)));
                let session = if self.dice.roll(10) > 0 { holder.copied().unwrap_or(session) } else { session };
                let known = self.known.get(&session).cloned().unwrap_or_default();
                let (epoch, batch_no, cursor) = known.epoch.get(&source).cloned().unwrap_or((3, 0, String::new()));
                let from = if self.dice.chance(95) { cursor } else { "elsewhere".to_owned() };
                let parcels = (0..self.dice.roll(4)).map(|_| self.parcel()).collect();
                let to = format!("at {}", self.dice.roll(1000));
                let (end, max_backlog) = (self.dice.chance(2), self.max_backlog());
                let batch_no = self.number(batch_no);
                Push { session, source, epoch, batch_no, from, to, parcels, end, max_backlog }.request()
            }
            28 => Rewind { source: self.source() }.request(),
            29..=38 => {
                let lots: Vec<Lot> = (0..=self.dice.roll(3)).map(|_| self.lot()).collect();
                let bookmark = self.dice.chance(20).then(|| {
                    let no = self.dice.roll(2);
                    let from = *self.marks.get(&no).unwrap_or(&Place::START);
                    let to = Place { lines: from.lines + 1, digest: from.digest.then(b"x") };
                    MoveBookmark { key: Key::new(&format!("m{no}")).unwrap(), from, to }
                });
                let (max_backlog, max_keys) = (self.max_backlog(), self.dice.pick(&[1_000_000, 4, 6]));
                let submit_no = self.number(known.submit_no);
                Submit { session, submit_no, lots, bookmark, max_backlog, max_keys }.request()
            }
            39..=58 => {
                let claim_no = match self.dice.roll(12) {
                    0 => self.dice.roll(known.high + 1).max(1),
                    1 => known.high + self.dice.roll(90) + 1,
                    2 => known.high + 3,
                    3 => known.claims.keys().next().copied().unwrap_or(1),
                    _ => known.high + 1,
                };
                let n = self.dice.pick(&[1, 2, 5, 30, 200, 65_536]);
                let max_bytes = self.dice.pick(&[0, 1, 20, 300, 4000, u64::MAX]);
                let queues = (0..=self.dice.roll(3)).map(|_| self.queue()).collect();
                Claim { session, claim_no, n, max_bytes, queues }.request()
            }
            59..=78 => {
                let runs = (0..self.dice.roll(5)).map(|_| self.run(&known)).collect();
                let settle_no = self.number(known.settle_no);
                Settle { session, settle_no, runs }.request()
            }
            79..=83 => {
                let expired = self.expired.clone();
                let target =
                    if expired.is_empty() || self.dice.chance(20) { self.session() } else { self.dice.pick(&expired) };
                Reap { session, target }.request()
            }
            84..=86 => DrainBegin { session, queue: self.queue() }.request(),
            87..=88 => {
                let after = self.dice.roll(30);
                let upto = self.dice.pick(&[u64::MAX, 5, 20, 60]);
                let (limit, max_bytes) =
                    (self.dice.pick(&[0, 1, 5, 1000, u32::MAX]), self.dice.pick(&[0, 50, 700, u64::MAX]));
                Peek { queue: self.queue(), after, upto, limit, max_bytes }.request()
            }
            89..=92 => {
                let queue = self.queue();
                let session =
                    if self.dice.chance(80) { *self.drainers.get(&queue).unwrap_or(&session) } else { session };
                let known = self.known.get(&session).cloned().unwrap_or_default();
                let ids = (0..self.dice.roll(40)).map(|_| self.dice.roll(300)).collect();
                let disposal = self.dice.pick(&[Disposal::Drain, Disposal::Requeue]);
                let dispose_no = self.number(known.dispose_no);
                Dispose { session, dispose_no, queue, ids, disposal }.request()
            }
            93 => {
                let queue = self.queue();
                match self.dice.roll(12) {
                    0 => Order::Stop(Stop::Drain).request(),
                    1 => Order::Stop(Stop::Now).request(),
                    2..=4 => Order::Pause(queue).request(),
                    _ => Order::Resume(queue).request(),
                }
            }
            94..=96 => ReadResult { queue: self.queue(), id: self.dice.roll(300) }.request(),
            97 => ReadBookmark { key: Key::new(&format!("m{}", self.dice.roll(3))).unwrap() }.request(),
            98 if self.dice.chance(30) => Purge.request(),
            _ => Beat { session, report: Bytes::new() }.request(),
        }
    }

    fn run(&mut self, known: &Known) -> Run {
        let claims: Vec<_> = known.claims.iter().collect();
        let (claim_no, queue, mut range) = if claims.is_empty() || self.dice.chance(4) {
            let first = self.dice.pick(&[1, 5, 40, u64::MAX - 1]);
            (self.dice.roll(9) + 1, self.queue(), Range { first, len: 1 + self.dice.roll(4) as u32 })
        } else {
            let (no, (queue, ranges)) = self.dice.pick(&claims);
            (*no, queue.clone(), self.dice.pick(ranges))
        };
        if self.dice.chance(30) && range.len > 1 {
            let skip = self.dice.roll(u64::from(range.len)) as u32;
            range = Range {
                first: range.first.saturating_add(u64::from(skip)),
                len: 1 + self.dice.roll(u64::from(range.len - skip)) as u32,
            };
        }
        if self.dice.chance(3) {
            range.len += 1;
        }
        let outcome = match self.dice.roll(12) {
            0..=3 => Outcome::DONE,
            4 => {
                let single = self.dice.chance(80);
                if single {
                    range.len = 1;
                }
                let result = single.then(|| Bytes::from(format!("{{{}}}", self.dice.roll(99))));
                Outcome::Done { result, follow_ups: (0..self.dice.roll(3)).map(|_| self.lot()).collect() }
            }
            5..=6 => Outcome::Retry { after_ms: self.dice.pick(&[0, 10, 700, 5000, 366 * 24 * 3_600_000]) },
            7..=8 => Outcome::Dead { error: format!("failed: {}", "é".repeat(self.dice.roll(9) as usize)) },
            _ => Outcome::Back,
        };
        Run { claim_no, queue, range, outcome }
    }

    fn join(&mut self) -> Request {
        self.joined += 1;
        let session = SessionId::from_u128(self.joined * 0x1_0000_0001);
        let mut offers: Vec<Offer> = Vec::new();
        for _ in 0..self.dice.roll(4) {
            let source = self.source();
            let queue = name(if self.dice.chance(90) { "a" } else { "b" });
            let definition = Digest::of(if self.dice.chance(97) { b"one" } else { b"two" });
            offers.push(Offer { source, queue, definition });
        }
        let kind = if self.dice.chance(self.nodes) { Kind::Node } else { Kind::Client };
        let lease_ms = self.dice.pick(&[1000, 1000, 333, 5001]);
        let queues = (0..self.dice.roll(3)).map(|_| self.queue()).collect();
        let session = if self.dice.chance(3) { self.session() } else { session };
        Join { session, kind, host: "höst".into(), pid: 7, queues, lease_ms, heartbeat_ms: 100, offers }.request()
    }

    fn learn(&mut self, request: &Request, answer: &Result<Answer, StoreError>) {
        let Some(session) = request.session() else {
            if let (Request::Purge(_), Ok(_)) = (request, answer) {
                self.sessions.clear();
                self.marks.clear();
            }
            return;
        };
        if matches!((request, answer), (Request::Join(_), Ok(_))) && !self.sessions.contains(&session) {
            self.sessions.push(session);
        }
        if let (Request::Leave(_), Ok(_)) = (request, answer) {
            self.sessions.retain(|id| *id != session);
        }
        if let (Request::Reap(it), Ok(Answer::Reap(Reaped::Taken { .. }))) = (request, answer) {
            // Keep some of the dead around: their calls must be refused.
            if !self.joined.is_multiple_of(3) {
                self.sessions.retain(|id| *id != it.target);
            }
        }
        if self.sessions.len() > 6 {
            self.sessions.remove(0);
        }
        let known = self.known.entry(session).or_default();
        match (request, answer) {
            (Request::Take(it), Ok(Answer::Take(taken))) => {
                known.epoch.insert(it.source.clone(), (taken.epoch, taken.batch_no, taken.cursor.clone()));
            }
            (Request::Push(it), Ok(Answer::Push(pushed))) if !pushed.duplicate => {
                known.epoch.insert(it.source.clone(), (it.epoch, it.batch_no, it.to.clone()));
            }
            (Request::Submit(it), Ok(_)) => {
                known.submit_no = known.submit_no.max(it.submit_no);
                if let Some(mark) = &it.bookmark {
                    let no = mark.key.as_str()[1..].parse().unwrap();
                    self.marks.insert(no, mark.to);
                }
            }
            (Request::Claim(it), Ok(Answer::Claim(Claimed::Some { queue, pieces }))) => {
                known.high = known.high.max(it.claim_no);
                let ranges = pieces.iter().map(|(piece, _)| piece.range).collect();
                known.claims.insert(it.claim_no, (queue.clone(), ranges));
            }
            (Request::Claim(it), Err(_)) => {
                known.claims.remove(&it.claim_no);
            }
            (_, Ok(Answer::Beat(it))) => self.expired.clone_from(&it.expired),
            (Request::DrainBegin(it), Ok(_)) => {
                self.drainers.insert(it.queue.clone(), session);
            }
            (Request::Settle(it), Ok(_)) => known.settle_no = known.settle_no.max(it.settle_no),
            (Request::Dispose(it), Ok(_)) => known.dispose_no = known.dispose_no.max(it.dispose_no),
            _ => {}
        }
    }
}

fn without_incarnation(answer: Result<Answer, StoreError>) -> Result<Answer, StoreError> {
    answer.map(|answer| match answer {
        Answer::Join(it) => Answer::Join(Joined { incarnation: String::new(), ..it }),
        other => other,
    })
}

#[tokio::test]
async fn redis_answers_as_memory_does() {
    let start = std::env::var("BATON_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = start.unwrap_or_else(|| u64::from(std::process::id()) * 7919 + 1);
    let steps: u64 = std::env::var("BATON_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(3000);
    println!("BATON_SEED={seed}");
    let server = RedisServer::start(&[]);
    let mut behind = server.connection();
    let options = RedisOptions { test_clock: true, ..RedisOptions::default() };
    let ours = RedisStore::open(&server.url(), &name("fleet"), options).unwrap();
    let paging = RedisOptions { test_clock: true, recount_at_once: 7 };
    let paging = RedisStore::open(&server.url(), &name("fleet"), paging).unwrap();
    let now = 1_790_000_000_000;
    let clock = Clock::manual(now);
    let model = MemoryStore::new(clock.clone());
    let mut world = World {
        dice: Dice(seed * 2 + 1),
        now,
        sessions: vec![],
        joined: 0,
        known: BTreeMap::new(),
        marks: BTreeMap::new(),
        expired: vec![],
        drainers: BTreeMap::new(),
        nodes: [75, 75, 20, 0][(seed % 4) as usize],
    };
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for step in 0..steps {
        let request = world.request();
        clock.set(world.now);
        let _: () = redis::cmd("SET").arg(ours.test_clock_key()).arg(world.now).query(&mut behind).unwrap();
        let want = without_incarnation(model.call(request.clone()).await);
        let got = without_incarnation(ours.call(request.clone()).await);
        assert_eq!(got, want, "step {step} of seed {seed}: {request:?}");
        let what = format!("{request:?}");
        let what = what.split('(').next().unwrap().to_owned();
        let outcome = match &want {
            Ok(Answer::Claim(Claimed::Some { .. })) => "some".to_owned(),
            Ok(Answer::Claim(_)) => "empty".to_owned(),
            Ok(Answer::Reap(Reaped::Taken { back, dead })) => format!("back {} dead {}", back > &0, dead > &0),
            Ok(Answer::Reap(it)) => format!("{it:?}"),
            Ok(Answer::Settle(it)) => format!("refused {}", it.refused.len()),
            Ok(_) => "ok".to_owned(),
            Err(StoreError::Refused(it)) => format!("{it:?}").split([' ', '(']).next().unwrap().to_owned(),
            Err(_) => "error".to_owned(),
        };
        *seen.entry(format!("{what} {outcome}")).or_default() += 1;
        let books = TakeSurvey.request();
        assert_eq!(
            ours.call(books.clone()).await,
            model.call(books).await,
            "survey after step {step} of seed {seed}: {request:?}"
        );
        if step % 20 == 0 {
            let recount = Recount { max_hold_ms: 1000 }.request();
            let got = ours.call(recount.clone()).await.unwrap();
            assert_eq!(got, model.call(recount).await.unwrap(), "recount after step {step} of seed {seed}");
            let Answer::Recount(it) = got else { panic!() };
            assert!(it.queues.iter().all(QueueRecount::balance), "books after step {step} of seed {seed}");
            if step % 500 == 0 {
                let paged = ask(&paging, Recount { max_hold_ms: 60_000 }).await.unwrap();
                assert_eq!(paged.queues, it.queues, "recount in pages after step {step} of seed {seed}");
            }
        }
        world.learn(&request, &want);
    }
    println!("{seen:#?}");
}
