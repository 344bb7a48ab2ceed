//! What links tell the scene: calls, those that are lost, and what the store answers.

use baton::{
    SessionId,
    store::{
        Answer, Cancelling, Claimed, Join, Kind, Order, Reaped, Refusal, Request, StoreError, SubmissionVerdict,
        message::Outcome,
    },
};

use super::{
    chance::digest,
    known::KnownSession,
    scene::{Caller, Scene, number},
};

/// Calls at one instant that only something that spins makes.
const SPINNING: u64 = 100_000;

impl Scene {
    /// A call is on its way.
    pub(super) fn called(&mut self, caller: Caller, request: &Request) {
        let now = self.now();
        self.calls_at_once = if now == self.last_call_ms { self.calls_at_once + 1 } else { 0 };
        self.last_call_ms = now;
        self.journal.say(now, caller.map(|(node, _)| node), || label(request));
        if self.calls_at_once > SPINNING {
            self.violated(format!("nobody spins: {SPINNING} calls at one instant, the last {}", label(request)), None);
        }
        if let Some((node, life)) = caller
            && let Some(node) = self.living(node, life)
        {
            node.calls += 1;
        }
        match request {
            Request::Push(_) => self.pushes(caller),
            Request::Beat(beat) => self.asks(caller, beat),
            _ => {}
        }
    }

    /// A call or its reply was lost: its node repeats it after a pause, which grows to half a second.
    pub(super) fn lost(&mut self, caller: Caller, request: &Request, what: &'static str) {
        let now = self.now();
        self.note(caller.map(|(node, _)| node), what, label(request));
        if let Some((node, life)) = caller
            && let Some(node) = self.living(node, life)
        {
            node.disturbed_until = node.disturbed_until.max(now + 700);
        }
    }

    /// A copy of an old call reaches the store now.
    pub(super) fn copied(&mut self, caller: Caller, request: &Request) {
        self.note(caller.map(|(node, _)| node), "a late copy arrives:", label(request));
    }

    /// The store has carried a request out.
    pub(super) fn executed(&mut self, caller: Caller, request: &Request, answer: &Result<Answer, StoreError>) {
        let now = self.now();
        let by = caller.map(|(node, _)| node);
        if matches!(request, Request::Push(_)) {
            self.pushes(caller);
        }
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
            if let Some(known) = self.sessions.get_mut(&session) {
                known.touched_ms = now;
            }
        }
        if matches!(answer, Err(StoreError::Refused(Refusal::Full { .. }))) {
            // A source that finds its queue full tries again and again: that is no rest.
            self.moved_ms = now;
            if let Request::Push(push) = request
                && let Some(source) = number(push.source.as_str())
            {
                self.sources[source].generated_ms = now;
            }
        }
        if let Request::Progress(progress) = request
            && let Some(source) = progress.source.as_ref().and_then(|source| number(source.as_str()))
        {
            // Its generator asks for room before it tries again: that is no rest either.
            self.moved_ms = now;
            self.sources[source].generated_ms = now;
        }
        let Ok(answer) = answer else { return };
        match (request, answer) {
            (Request::Join(join), Answer::Join(_)) => self.joined(caller, join),
            (Request::Beat(_), Answer::Beat(beaten)) => self.helped(caller, beaten),
            (Request::Leave(leave), _) => self.session_gone(leave.session, false),
            (Request::Reap(reap), Answer::Reap(Reaped::Taken(_))) => {
                self.note(by, "reaps", self.name_of(reap.target));
                self.session_gone(reap.target, true);
            }
            (Request::Submit(submit), Answer::Submit(submitted)) => {
                for (submission, verdict) in submit.submissions.iter().zip(&submitted.submissions) {
                    if let SubmissionVerdict::Stored { first } | SubmissionVerdict::Begun { first, .. } = verdict {
                        let digests: Vec<u64> = submission.parcel.bodies().map(|body| digest(&body)).collect();
                        self.stored(by, submission.queue.as_str(), *first, &digests);
                    }
                }
            }
            (Request::Push(push), Answer::Push(pushed)) if !pushed.duplicate => {
                let Some(source) = number(push.source.as_str()) else { return };
                let queue = format!("q{}", self.sources[source].queue);
                for (parcel, first) in push.parcels.iter().zip(&pushed.firsts) {
                    let digests: Vec<u64> = parcel.bodies().map(|body| digest(&body)).collect();
                    self.stored(by, &queue, *first, &digests);
                    self.sources[source].position += digests.len() as u64;
                }
                self.moved_ms = now;
                self.sources[source].ended = push.end;
                let (position, cursor) = (self.sources[source].position, push.to.clone());
                if cursor != position.to_string() {
                    let rule = format!(
                        "a source has no gap and no repeat: s{source} stands at {cursor} after {position} messages"
                    );
                    self.violated(rule, None);
                }
                let end = self.sources[source].end;
                if push.end && end != Some(position) {
                    let rule = format!("a source ends where its messages do: s{source} at {position}, they at {end:?}");
                    self.violated(rule, None);
                }
                if push.end {
                    self.note(by, "ends source", push.source.to_string());
                }
            }
            (Request::Claim(claim), Answer::Claim(Claimed { queue, spans, .. })) if !spans.is_empty() => {
                let Some(queue_no) = number(queue.as_str()) else { return };
                self.moved_ms = now;
                for (span, _) in spans {
                    self.note_messages(by, "claims", queue_no, span.range.first, u64::from(span.range.len));
                    if let Err((rule, id)) = self.ledgers[queue_no].claimed(claim.session, claim.claim_no, span, now) {
                        self.violated(rule, Some((queue_no, id)));
                    }
                }
            }
            (Request::Settle(settle), Answer::Settle(settled)) => {
                let Some(known) = self.sessions.get_mut(&settle.session) else { return };
                if settle.settle_no <= known.settle_no {
                    return;
                }
                known.settle_no = settle.settle_no;
                (self.moved_ms, self.settles) = (now, self.settles + 1);
                for run in &settle.runs {
                    let Some(queue_no) = number(run.queue.as_str()) else { continue };
                    let refused = settled.refused.contains(&(run.queue.clone(), run.claim_no, run.range));
                    let kind = match (&run.outcome, refused) {
                        (_, true) => "is refused",
                        (Outcome::Done { .. }, _) => "has done",
                        (Outcome::Retry { .. }, _) => "retries",
                        (Outcome::Failed { .. }, _) => "buries",
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
                        for submission in follow_ups {
                            let Some(to) = number(submission.queue.as_str()) else { continue };
                            let digests: Vec<u64> = submission.parcel.bodies().map(|body| digest(&body)).collect();
                            self.stored(by, submission.queue.as_str(), self.ledgers[to].pushed() + 1, &digests);
                        }
                    }
                }
            }
            (Request::Take(take), Answer::Take(taken)) => {
                let Some(source) = number(take.source.as_str()) else { return };
                self.moved_ms = now;
                if self.sources[source].epoch > taken.epoch {
                    self.violated(format!("epochs of a source never decrease: s{source}"), None);
                }
                self.note(by, "takes the baton of", take.source.to_string());
                (self.sources[source].holder, self.sources[source].epoch) = (Some(take.session), taken.epoch);
            }
            (Request::Resign(resign), _) => {
                let Some(source) = number(resign.source.as_str()) else { return };
                self.moved_ms = now;
                let known = &mut self.sources[source];
                if (known.holder, known.epoch) == (Some(resign.session), resign.epoch) {
                    known.holder = None;
                    self.note(by, "gives back the baton of", resign.source.to_string());
                }
            }
            (Request::Cancel(cancel), Answer::Cancel(Cancelling::Marked | Cancelling::More)) => {
                let Some(queue_no) = number(cancel.call.queue.as_str()) else { return };
                self.note(by, "cancels", cancel.call.to_string());
                self.ledgers[queue_no].marked(cancel.call.id.0);
            }
            // Of a purge in several steps the queue is paused, so that nothing is claimed between them.
            (Request::Purge(purge), Answer::Purge(purged)) if !purged.left => {
                let Some(queue_no) = number(purge.queue.as_str()) else { return };
                self.moved_ms = now;
                self.note(None, "a person purges", purge.queue.to_string());
                self.ledgers[queue_no].purged(purged.upto);
            }
            (Request::Order(Order::Pause(queue) | Order::Resume(queue)), _) => {
                let Some(queue_no) = number(queue.as_str()) else { return };
                self.moved_ms = now;
                let paused = matches!(request, Request::Order(Order::Pause(_)));
                self.ledgers[queue_no].paused = paused;
                self.ledgers[queue_no].begin_anew(now);
                self.note(None, if paused { "a person pauses" } else { "a person resumes" }, queue.to_string());
            }
            _ => {}
        }
    }

    fn joined(&mut self, caller: Caller, join: &Join) {
        let (now, session) = (self.now(), join.session);
        self.moved_ms = now;
        if let Some(ghost) = self.sessions.get_mut(&session) {
            // A late copy after it had left: nobody is behind it.
            if ghost.gone {
                (ghost.gone, ghost.node, ghost.touched_ms) = (false, None, now);
            }
            return;
        }
        let node = caller.map(|(node, _)| node).filter(|_| join.kind == Kind::Node);
        let works =
            join.queues.iter().filter(|_| join.kind == Kind::Node).filter_map(|queue| number(queue.as_str())).collect();
        let known = KnownSession { node, works, lease_ms: join.lease_ms, touched_ms: now, gone: false, settle_no: 0 };
        self.sessions.insert(session, known);
        if let Some((node, life)) = caller
            && let Some(living) = self.living(node, life)
        {
            (living.session, living.joined_ms) = (Some(session), now);
        }
        self.note(node, "joins", self.name_of(session));
    }

    fn session_gone(&mut self, session: SessionId, lost: bool) {
        let now = self.now();
        let Some(known) = self.sessions.get_mut(&session).filter(|known| !known.gone) else { return };
        known.gone = true;
        let touched_ms = known.touched_ms;
        self.moved_ms = now;
        // What it held is due again at the latest when it would have been without anybody's hurry.
        let floor = if lost { (known.touched_ms + known.lease_ms).saturating_sub(500).min(now) } else { 0 };
        for ledger in &mut self.ledgers {
            ledger.returned(session, lost, now, floor);
        }
        for known in self.sources.iter_mut().filter(|known| known.holder == Some(session)) {
            known.holder = None;
            // Its lease ran from its last call on.
            known.generated_ms = known.generated_ms.max(touched_ms);
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
