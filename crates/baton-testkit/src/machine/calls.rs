//! Requests about calls, drawn from the numbers of a step.

use baton::{
    Key, MessageId, SessionId,
    store::{
        CancelCall, Emit, FollowCall, NewEvent, Operation, ReadCall, ReadEvents, Request, UnfollowCall,
        message::{Body, CallId, Calling, Parcel, Submission},
    },
};

use super::{draw::queue, known_session::KnownSession};

/// A submission that begins a call: short, long, or so long that it has a key of its own.
pub(super) fn beginning(seed: u16) -> Submission {
    let pad = [0, 30, 700, 5_000][usize::from(seed % 4)];
    let body = format!("\"{}\"", "x".repeat(pad));
    let linger_ms = [None, None, Some(0), Some(300), Some(2_000)][usize::from(seed % 5)];
    let call = Some(Calling::Begins { linger_ms, share: seed.is_multiple_of(3) });
    Submission { queue: queue(seed), parcel: Parcel::single(Body::new(body.as_bytes()).unwrap()), key: None, call }
}

/// A follow-up that joins the call of the message it comes from.
pub(super) fn joining(seed: u16) -> Submission {
    Submission { call: Some(Calling::Joins), ..beginning(seed) }
}

/// A message of a call, or any other, tells something.
pub(super) fn emit(known: &KnownSession, a: u16, b: u16, c: u16) -> Request {
    let of_calls = known.claims.iter().flat_map(|((queue, claim_no), spans)| {
        let spans = spans.iter().filter(|span| span.role.is_some() || a.is_multiple_of(16));
        spans.map(move |span| (queue.clone(), *claim_no, span.range.first))
    });
    let held: Vec<_> = of_calls.collect();
    let (queue, claim_no, id) =
        held.get(usize::from(a) % held.len().max(1)).cloned().unwrap_or((queue(a), 1, u64::from(b % 9) + 1));
    let told = known.told.get(&(queue.clone(), id, claim_no)).copied().unwrap_or(0);
    let number = match b % 12 {
        0 => told.max(1),
        1 => told + 2,
        2 => told.saturating_sub(1).max(1),
        _ => told + 1,
    };
    let events = (0..1 + c % 3).map(|nth| {
        let seed = c.wrapping_add(nth * 5);
        let key = seed.is_multiple_of(2).then(|| Key::new(&format!("e{}", seed % 9)).unwrap());
        NewEvent { key, bytes: format!("\0\u{1}e{}", "y".repeat(usize::from(seed % 150))).into() }
    });
    let (max_log, force) = ([150, 600, 1 << 20][usize::from(b % 3)], b.is_multiple_of(7));
    let (session, id, events) = (known.id, MessageId(id), events.collect());
    let claim_no = claim_no + u64::from(b % 29 == 5);
    Emit { session, claim_no, queue, id, number, events, max_log, force }.request()
}

/// One of the calls that began last.
pub(super) fn recent(calls: &[CallId], a: u16) -> CallId {
    let last = calls.len().saturating_sub(6);
    let recent = calls.get(last..).unwrap_or_default();
    let any = CallId { queue: queue(a), id: MessageId(u64::from(a % 5) + 1), born: None };
    let mut call = recent.get(usize::from(a) % recent.len().max(1)).cloned().unwrap_or(any);
    // Now and then by hand, or a message from before a loss of data.
    match a % 23 {
        0 => call.born = None,
        1 => call.born = call.born.map(|born| born + 1),
        _ => {}
    }
    call
}

/// Somebody follows, no longer follows, reads, looks or cancels.
pub(super) fn about(call: CallId, session: SessionId, kind: u16, b: u16, c: u16) -> Request {
    let (from, number) = (u64::from(b % 9), u64::from(c % 3));
    let max_bytes = [0, 100, 1 << 20][usize::from(c % 3)];
    match kind {
        0..6 => FollowCall { session, call, from, number, max_bytes }.request(),
        6 => UnfollowCall { session, call, number }.request(),
        7 => ReadEvents { call, from, max_bytes }.request(),
        8 => ReadCall { call }.request(),
        _ => CancelCall { call, if_forsaken: !b.is_multiple_of(3) }.request(),
    }
}
