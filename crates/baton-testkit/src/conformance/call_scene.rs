//! What the cases about calls do again and again.

use baton::{
    Key, MessageId, SessionId,
    store::{
        CallState, CallView, CancelCall, Cancelling, Emit, EventPage, FollowCall, NewEvent, ReadCall, ReadEvents,
        SubmissionVerdict,
        message::{CallId, Calling, Outcome, Span, Submission},
    },
};
use bytes::Bytes;

use super::scene::{Scene, name, parcel, queue, run, submission};

/// How a store writes an event without key and message.
pub(super) fn stored(event: &str, data: &str) -> Bytes {
    [&[0, event.len() as u8][..], event.as_bytes(), data.as_bytes()].concat().into()
}

/// The same with a key, as a handler's event is written.
pub(super) fn stored_under(key: &str, event: &str, data: &str) -> NewEvent {
    let head = [&[1, event.len() as u8][..], event.as_bytes(), &[key.len() as u8], key.as_bytes()].concat();
    NewEvent { key: Some(Key::new(key).unwrap()), bytes: [&head[..], data.as_bytes()].concat().into() }
}

pub(super) fn told(event: &str, data: &str) -> NewEvent {
    NewEvent { key: None, bytes: stored(event, data) }
}

pub(super) fn call_id(id: u64) -> CallId {
    CallId { queue: queue(), id: MessageId(id), born: None }
}

/// A call as stores file it, and as beats tell of it.
pub(super) fn filed(call: &CallId) -> CallId {
    CallId { born: None, ..call.clone() }
}

pub(super) fn a_call(linger_ms: Option<u64>) -> Submission {
    Submission { call: Some(Calling::Begins { linger_ms, share: false }), ..submission(parcel(1)) }
}

pub(super) fn joining(at: &str) -> Submission {
    Submission { queue: name(at), call: Some(Calling::Joins), ..submission(parcel(1)) }
}

pub(super) fn retry(after_ms: u64) -> Outcome {
    Outcome::Retry { after_ms, error: "not now".to_owned() }
}

pub(super) fn done(result: &str) -> Outcome {
    Outcome::Done { result: Some(Bytes::copy_from_slice(result.as_bytes())), follow_ups: Vec::new() }
}

/// A message of a call in the hands of a session.
pub(super) struct Held {
    pub(super) session: SessionId,
    pub(super) claim_no: u64,
    pub(super) span: Span,
}

impl Held {
    /// How the store writes an event of it, as one that has joined a call.
    pub(super) fn stored(&self, event: &str, data: &str) -> Bytes {
        let name = format!("q/{}@{}", self.span.range.first, self.span.born);
        let head = [&[2, event.len() as u8][..], event.as_bytes(), &[name.len() as u8], name.as_bytes()].concat();
        [&head[..], data.as_bytes()].concat().into()
    }

    pub(super) fn emit(&self, number: u64, events: Vec<NewEvent>) -> Emit {
        let (session, claim_no, id) = (self.session, self.claim_no, MessageId(self.span.range.first));
        Emit { session, claim_no, queue: queue(), id, number, events, max_log: 1 << 20, force: false }
    }
}

impl Scene {
    /// Begins a call; its id.
    pub(super) async fn begin(&mut self, session: SessionId, linger_ms: Option<u64>) -> CallId {
        let submit = self.a_submit(session, vec![a_call(linger_ms)]);
        match self.ask(submit).await.unwrap().submissions[..] {
            [SubmissionVerdict::Begun { first, born }] => CallId { born: Some(born), ..call_id(first) },
            ref other => panic!("not stored: {other:?}"),
        }
    }

    /// Claims the one message that waits.
    pub(super) async fn hold(&mut self, session: SessionId) -> Held {
        let (claim_no, spans) = self.claim(session, 1).await;
        let [(span, _)] = &spans[..] else { panic!("{spans:?}") };
        Held { session, claim_no, span: *span }
    }

    pub(super) async fn end(&mut self, held: &Held, outcome: Outcome) {
        self.settle(held.session, vec![run(held.claim_no, held.span.range, outcome)]).await;
    }

    pub(super) async fn view(&self, call: &CallId) -> CallView {
        self.ask(ReadCall { call: call.clone() }).await.unwrap().expect("the call is kept")
    }

    pub(super) async fn state(&self, call: &CallId) -> CallState {
        self.view(call).await.state
    }

    /// Which of these calls are kept.
    pub(super) async fn kept(&self, calls: &[CallId]) -> Vec<usize> {
        let mut kept = Vec::new();
        for (nth, call) in calls.iter().enumerate() {
            if self.ask(ReadCall { call: call.clone() }).await.unwrap().is_some() {
                kept.push(nth);
            }
        }
        kept
    }

    pub(super) async fn events(&self, call: &CallId, from: u64) -> Vec<Bytes> {
        let page = self.ask(ReadEvents { call: call.clone(), from, max_bytes: 1 << 30 }).await.unwrap();
        assert_eq!(page.from, from);
        page.events
    }

    pub(super) async fn follow(&self, session: SessionId, call: &CallId, from: u64) -> EventPage {
        let follow = FollowCall { session, call: call.clone(), from, number: 7, max_bytes: 1 << 30 };
        self.ask(follow).await.unwrap()
    }

    pub(super) async fn cancel(&self, call: &CallId) -> Cancelling {
        self.ask(CancelCall { call: call.clone(), if_forsaken: false }).await.unwrap()
    }

    pub(super) async fn forsaken(&self, call: &CallId) -> Cancelling {
        self.ask(CancelCall { call: call.clone(), if_forsaken: true }).await.unwrap()
    }
}
