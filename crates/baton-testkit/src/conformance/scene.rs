//! What the cases are written in: sessions, bodies and short names for operations.

use std::collections::BTreeMap;

use baton::{
    Key, MessageId, Name, SessionId,
    store::{
        Beat, Beaten, Books, Claim, Claimed, Disposal, Dispose, ErrorRecord, Join, KEY_TTL_MS, Kind, Lacking, Leave,
        Offer, Operation, Peek, Push, Pushed, QueueRecount, Reap, Reaped, Recount, Refusal, RemovalBegin, Rest, Settle,
        StoreError, SubmissionVerdict, Submit, Survey, Take, TakeSurvey, Taken, ask,
        message::{Body, Digest, Outcome, Parcel, ParcelBuilder, Range, Run, Span, Submission, SubmissionKey},
    },
};
use bytes::Bytes;

use crate::subject::Subject;

/// The lease of sessions in a scene.
pub(super) const LEASE: u64 = 1_000;

/// A store and the sessions that use it.
pub struct Scene {
    pub(super) subject: Subject,
    joined: u128,
    numbers: BTreeMap<(SessionId, &'static str), u64>,
}

impl Scene {
    /// A scene on an empty store.
    #[must_use]
    pub const fn new(subject: Subject) -> Self {
        Self { subject, joined: 0, numbers: BTreeMap::new() }
    }

    pub(super) async fn ask<O: Operation>(&self, operation: O) -> Result<O::Answer, StoreError> {
        ask(&*self.subject.store, operation).await
    }

    /// The refusal that an operation must meet.
    pub(super) async fn refusal<O: Operation<Answer: std::fmt::Debug>>(&self, operation: O) -> Refusal {
        match self.ask(operation).await {
            Err(StoreError::Refused(refusal)) => refusal,
            other => panic!("a refusal was due, not {other:?}"),
        }
    }

    /// The next number of a series of a session.
    pub(super) fn next(&mut self, session: SessionId, series: &'static str) -> u64 {
        let number = self.numbers.entry((session, series)).or_default();
        *number += 1;
        *number
    }

    pub(super) fn a_join(&mut self, kind: Kind, offers: Vec<Offer>) -> Join {
        self.joined += 1;
        Join {
            session: SessionId::from_u128(self.joined),
            kind,
            host: "host".to_owned(),
            pid: 7,
            queues: vec![queue()],
            lease_ms: LEASE,
            heartbeat_ms: 200,
            offers,
            former: None,
        }
    }

    pub(super) async fn node(&mut self) -> SessionId {
        let join = self.a_join(Kind::Node, vec![offer("s")]);
        let session = join.session;
        self.ask(join).await.unwrap();
        session
    }

    pub(super) async fn beat(&self, session: SessionId) -> Result<Beaten, StoreError> {
        self.ask(Beat { session, report: Bytes::new(), asks: Vec::new() }).await
    }

    /// Lets `ms` pass while these sessions beat, as often as the fleet clock needs to see all of it.
    pub(super) async fn live(&mut self, ms: u64, sessions: &[SessionId]) {
        let mut left = ms;
        while left > 0 {
            let step = left.min(200);
            self.subject.pass(step).await;
            left -= step;
            for session in sessions {
                self.beat(*session).await.unwrap();
            }
        }
    }

    /// Reaps a session that is silent while `by` lives on.
    pub(super) async fn lose(&mut self, by: SessionId, target: SessionId) -> Reaped {
        self.live(LEASE + 1, &[by]).await;
        self.ask(Reap { session: by, target }).await.unwrap()
    }

    pub(super) async fn take(&self, session: SessionId) -> Taken {
        self.ask(Take { session, source: name("s") }).await.unwrap()
    }

    pub(super) fn a_push(session: SessionId, taken: &Taken, bodies: u32) -> Push {
        let count: u64 = taken.cursor.parse().unwrap_or(0);
        Push {
            session,
            source: name("s"),
            epoch: taken.epoch,
            batch_no: taken.batch_no + 1,
            from: taken.cursor.clone(),
            to: (count + u64::from(bodies)).to_string(),
            parcels: if bodies == 0 { Vec::new() } else { vec![parcel(bodies)] },
            end: false,
            max_queue_bytes: 1 << 30,
        }
    }

    pub(super) async fn push(&self, push: Push) -> Result<Pushed, StoreError> {
        self.ask(push).await
    }

    pub(super) fn a_submit(&mut self, session: SessionId, submissions: Vec<Submission>) -> Submit {
        let submit_no = self.next(session, "submit");
        Submit { session, submit_no, submissions, bookmark: None, max_queue_bytes: 1 << 30, max_keys: 1_000 }
    }

    /// Submits a parcel of this many messages to the queue; its first id.
    pub(super) async fn fill(&mut self, session: SessionId, count: u32) -> u64 {
        let submit = self.a_submit(session, vec![submission(parcel(count))]);
        match self.ask(submit).await.unwrap().submissions[..] {
            [SubmissionVerdict::Stored { first }] => first,
            ref other => panic!("not stored: {other:?}"),
        }
    }

    pub(super) fn a_claim(&mut self, session: SessionId, n: u32) -> Claim {
        let claim_no = self.next(session, "claim");
        Claim { session, queue: queue(), claim_no, n, max_bytes: 1 << 30 }
    }

    /// Claims up to `n` messages; the number and the spans, none if it was empty.
    pub(super) async fn claim(&mut self, session: SessionId, n: u32) -> (u64, Vec<(Span, Parcel)>) {
        let claim = self.a_claim(session, n);
        let claim_no = claim.claim_no;
        (claim_no, spans(self.ask(claim).await.unwrap()))
    }

    pub(super) fn a_settle(&mut self, session: SessionId, runs: Vec<Run>) -> Settle {
        Settle { session, settle_no: self.next(session, "settle"), runs, max_results: baton::store::MAX_RESULTS }
    }

    /// Settles runs that must all be accepted.
    pub(super) async fn settle(&mut self, session: SessionId, runs: Vec<Run>) {
        let settle = self.a_settle(session, runs);
        assert_eq!(self.ask(settle).await.unwrap().refused, []);
    }

    /// Claims `n` messages and settles all of them alike.
    pub(super) async fn finish(&mut self, session: SessionId, n: u32, outcome: Outcome) -> Vec<Range> {
        let (claim_no, spans) = self.claim(session, n).await;
        let ranges: Vec<Range> = spans.iter().map(|(span, _)| span.range).collect();
        let runs = ranges.iter().map(|range| run(claim_no, *range, outcome.clone())).collect();
        self.settle(session, runs).await;
        ranges
    }

    pub(super) async fn drain(&self, session: SessionId) -> u64 {
        self.ask(RemovalBegin { session, queue: queue() }).await.unwrap().upto
    }

    pub(super) async fn peek(&self, after: u64, limit: u32) -> Vec<ErrorRecord> {
        let peek = Peek { queue: queue(), after, upto: 1 << 40, limit, max_bytes: 1 << 30 };
        self.ask(peek).await.unwrap().errors
    }

    pub(super) fn a_dispose(&mut self, session: SessionId, ids: &[u64], disposal: Disposal) -> Dispose {
        Dispose {
            session,
            dispose_no: self.next(session, "dispose"),
            queue: queue(),
            ids: ids.iter().copied().map(MessageId).collect(),
            disposal,
        }
    }

    pub(super) async fn leave(&self, session: SessionId) {
        self.ask(Leave { session }).await.unwrap();
    }

    pub(super) async fn survey(&self) -> Survey {
        self.ask(TakeSurvey).await.unwrap()
    }

    pub(super) async fn books(&self) -> Books {
        let books = self.survey().await.queues.into_iter().find(|books| books.queue == queue());
        books.unwrap_or_else(|| Books::new(queue()))
    }

    /// The promise that holds at every instant: the data and the ledger agree on every id.
    pub async fn balanced(&self) {
        let recounted = self.ask(Recount { max_hold_ms: 60_000 }).await.unwrap();
        for queue in recounted.queues {
            assert!(queue.balance(), "unbalanced: {queue:?}");
            assert!(queue.bytes() == queue.books.bytes || self.subject.has_lost(), "bytes are off: {queue:?}");
        }
    }
}

impl Scene {
    /// The same while messages without a body are still waiting.
    pub(super) async fn balanced_but_for_bodies(&self) {
        let recounted = self.ask(Recount { max_hold_ms: 60_000 }).await.unwrap();
        for queue in recounted.queues {
            let queue = QueueRecount { lacking: Lacking::default(), ..queue };
            assert!(queue.balance(), "unbalanced: {queue:?}");
        }
    }
}

pub(super) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(super) fn queue() -> Name {
    name("q")
}

pub(super) fn offer(source: &str) -> Offer {
    Offer { source: name(source), queue: queue(), definition: Digest::of(b"a source"), adopts: false }
}

/// A parcel of this many messages with bodies `0`, `1`, `2` …
pub(super) fn parcel(count: u32) -> Parcel {
    let mut builder = ParcelBuilder::default();
    for body in 0..count {
        builder.add(Body::new(body.to_string().as_bytes()).unwrap()).unwrap();
    }
    builder.finish().unwrap()
}

pub(super) const fn range(first: u64, len: u32) -> Range {
    Range { first, len }
}

pub(super) fn submission(parcel: Parcel) -> Submission {
    Submission { queue: queue(), parcel, key: None, call: None }
}

pub(super) fn keyed(key: &str, body: &str) -> Submission {
    let key =
        Some(SubmissionKey { key: Key::new(key).unwrap(), digest: Digest::of(body.as_bytes()), lives_ms: KEY_TTL_MS });
    Submission { queue: queue(), parcel: Parcel::single(Body::new(body.as_bytes()).unwrap()), key, call: None }
}

pub(super) fn run(claim_no: u64, range: Range, outcome: Outcome) -> Run {
    Run { claim_no, queue: queue(), range, outcome }
}

pub(super) fn dead(error: &str) -> Outcome {
    Outcome::Failed { error: error.to_owned() }
}

pub(super) fn spans(claimed: Claimed) -> Vec<(Span, Parcel)> {
    claimed.spans
}

/// The answer to a claim of the queue that found nothing.
pub(super) fn nothing(next_due_ms: Option<u64>) -> Claimed {
    Claimed { queue: queue(), spans: Vec::new(), rest: Rest::Nothing { next_due_ms } }
}

pub(super) fn ranges(spans: &[(Span, Parcel)]) -> Vec<Range> {
    spans.iter().map(|(span, _)| span.range).collect()
}
