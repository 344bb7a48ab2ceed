//! Requests and values drawn from the numbers of a step.

use baton::{
    Key, Name,
    store::{
        Claim, KEY_TTL_MS, Operation, Order, Request, Settle, Stop,
        message::{
            Body, Digest, Fields, LAST_ERROR, Outcome, Parcel, ParcelBuilder, Range, Run, Submission, SubmissionKey,
        },
    },
};
use bytes::Bytes;

use super::{calls::joining, known_session::KnownSession};

pub(super) fn claim(known: &KnownSession, a: u16, b: u16, c: u16) -> Request {
    let queue = queue(a ^ b);
    let used = known.claim_nos.get(&queue).copied().unwrap_or(0);
    let claim_no = match b % 16 {
        0 => used.max(1),
        1 => used + 3,
        2 => used.saturating_sub(u64::from(c % 6)).max(1),
        3 => used + 60 + u64::from(c % 20),
        4 => known.claims.keys().find(|(of, _)| *of == queue).map_or(1, |(_, claim_no)| *claim_no),
        _ => used + 1,
    };
    Claim {
        session: known.id,
        queue,
        claim_no,
        n: [1, 3, 8, 30, 200][a as usize % 5],
        max_bytes: [0, 60, 400, 1 << 20][c as usize % 4],
    }
    .request()
}

pub(super) fn settle(known: &KnownSession, a: u16, b: u16, c: u16) -> Request {
    let mut runs = Vec::new();
    for (nth, ((queue_name, claim_no), spans)) in (0_u16..).zip(&known.claims).skip(usize::from(a % 2)) {
        for (from, span) in (0_u16..).zip(spans.iter().take(1 + b as usize % 4)) {
            let seed = c.wrapping_mul(7).wrapping_add(nth * 3 + from);
            let len = match seed % 4 {
                0 => 1,
                1 => span.range.len.div_ceil(2),
                _ => span.range.len,
            };
            let start = if seed % 5 == 1 { u64::from(span.range.len - len) } else { 0 };
            let first = span.range.first + start + u64::from(seed % 53 == 7);
            runs.push(Run {
                claim_no: claim_no + u64::from(seed % 47 == 3),
                queue: if seed % 59 == 4 { queue(seed) } else { queue_name.clone() },
                range: Range { first, len },
                outcome: outcome(seed, len),
            });
        }
    }
    let settle_no = match c % 24 {
        1 => known.settle_no,
        2 => known.settle_no + 2,
        _ => known.settle_no + 1,
    };
    Settle { session: known.id, settle_no, runs, max_results: [1 << 30, 280, 600][usize::from(b % 3)] }.request()
}

fn outcome(seed: u16, len: u32) -> Outcome {
    match seed / 3 % 12 {
        0 => Outcome::Retry { after_ms: u64::from(seed % 700), error: reason(seed) },
        1 => Outcome::Failed { error: format!("failed for reason {seed}; \"quoted\", ünïcode | ,") },
        2 | 3 => Outcome::Back,
        4 => Outcome::Done {
            result: (len == 1).then(|| Bytes::from(format!("{{\"r\":{seed}}}"))),
            follow_ups: vec![Submission { queue: queue(seed), parcel: parcel(seed), key: None, call: None }],
        },
        6 if len == 1 => Outcome::Done {
            result: seed.is_multiple_of(2).then(|| Bytes::from(format!("[{seed}]"))),
            follow_ups: (0..1 + seed % 2).map(|nth| joining(seed + nth)).collect(),
        },
        5 => {
            let (key, lives_ms) = (Key::new("follow").unwrap(), if seed.is_multiple_of(2) { 300 } else { KEY_TTL_MS });
            let key = SubmissionKey { key, digest: Digest::of(b"1"), lives_ms };
            let submission = Submission {
                queue: queue(seed),
                parcel: Parcel::single(Body::new(b"1").unwrap()),
                key: Some(key),
                call: None,
            };
            Outcome::Done { result: None, follow_ups: vec![submission] }
        }
        _ => Outcome::DONE,
    }
}

/// Why a message is retried; one in three says nothing.
fn reason(seed: u16) -> String {
    if seed.is_multiple_of(3) { String::new() } else { format!("reason {}", "ü".repeat(seed as usize % 300)) }
}

pub(super) fn order(a: u16, b: u16) -> Request {
    let order = match b % 8 {
        0 => Order::Pause(queue(a)),
        1 => Order::Stop(Stop::Graceful, (b > 9_000).then_some(u64::from(a % 9))),
        2 => Order::Stop(Stop::Now, None),
        _ => Order::Resume(queue(a)),
    };
    order.request()
}

/// Queues that a beat asks about.
pub(super) fn asks(number: u16) -> Vec<Name> {
    (0..number % 4).map(queue).collect()
}

pub(super) fn queue(number: u16) -> Name {
    Name::new(["a", "b:x", "c.y"][number as usize % 3]).unwrap()
}

pub(super) fn source(number: u16) -> Name {
    Name::new(["s0", "s1", "s2"][number as usize % 3]).unwrap()
}

pub(super) fn parcel(seed: u16) -> Parcel {
    let mut builder = ParcelBuilder::default();
    let count = [1, 2, 5, 18, 40][seed as usize % 5];
    // One in six is so long that a store may treat it differently.
    let longer = if seed.is_multiple_of(6) { 150 } else { 1 };
    // One in four has headers, its own or shared ones or both, some of them of a later release.
    let headed = seed.is_multiple_of(4);
    let field = |tag: u8, has: bool| Fields::default().with(tag, has.then_some(&b"value"[..])).unwrap();
    builder = builder.shared(field(77, headed && seed.is_multiple_of(8)));
    for nth in 0..count {
        let pad = (seed as usize * 7 + nth * 13) % 40 * longer;
        let body = format!("{{\"n\":{nth},\"pad\":\"{}\"}}", "x".repeat(pad));
        builder
            .add_with(
                &field(if nth % 2 == 0 { LAST_ERROR } else { 201 }, headed && nth % 3 == 0),
                Body::new(body.as_bytes()).unwrap(),
            )
            .unwrap();
    }
    builder.finish().unwrap()
}
