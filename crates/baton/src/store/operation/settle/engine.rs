//! Taking reports: each run is judged by its token, and its effects are kept in the same step.

use std::collections::BTreeMap;

use super::{kept, open_claim::OpenClaim};
use crate::{
    message::{BodyPlace, CallRole, Calling, IdSum, MessageId, Name, Outcome, Parcel, Range, Run, SessionId, Span},
    store::{
        RESULT_TTL_MS, Refusal, Settle, Settled, StoreError,
        agreed::{EXPIRED_AT_ONCE, MISSING_BODY},
        engine::{
            BodyKey, Cut, Effect, Moved, QueueRecord, Series, SessionRecord, Tables,
            bodies::{cut, release},
            calls::{self, Fate},
            clock::visit,
            errors, intake,
            queues::OpenQueues,
            results, returns,
            returns::suspects,
        },
    },
};

impl Effect for Settle {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<Settled> {
        settle(tables, now, self)
    }
}

fn settle<T: Tables>(tables: &mut T, now: u64, it: &Settle) -> Moved<Settled> {
    let session = match visit(tables, it.session) {
        Err(gone @ StoreError::Refused(Refusal::Stale)) => {
            count_late(tables, &it.runs)?;
            return Err(gone);
        }
        session => session?,
    };
    if it.settle_no != session.settle_no + 1 {
        let answer = tables.answer(it.session, Series::Settle, it.settle_no)?;
        let answer = answer.ok_or(Refusal::OutOfTurn { last: session.settle_no })?;
        return Ok(Settled { refused: kept::parse_refused(&answer)? });
    }
    let mut settling = Settling {
        tables,
        now,
        id: it.session,
        session,
        claim: None,
        queues: OpenQueues::default(),
        back: BTreeMap::new(),
        of_calls: 0,
        max_results: it.max_results,
    };
    let mut refused = Vec::new();
    for run in &it.runs {
        if !settling.run(run)? {
            refused.push((run.queue.clone(), run.claim_no, run.range));
        }
    }
    let mut session = settling.finish()?;
    session.settle_no = it.settle_no;
    tables.put_session(it.session, &session)?;
    tables.put_answer(it.session, Series::Settle, it.settle_no, 1, &kept::refused(&refused))?;
    Ok(Settled { refused })
}

/// Counts messages whose outcomes come after their session.
fn count_late<T: Tables>(tables: &mut T, runs: &[Run]) -> Moved<()> {
    let mut queues = OpenQueues::default();
    for run in runs {
        if let Some(queue) = queues.known(tables, &run.queue)? {
            queue.books.stale_settles += u64::from(run.range.len);
        }
    }
    queues.close(tables)
}

/// One settle at work: the records it has open, and what goes back at its end.
struct Settling<'a, T> {
    tables: &'a mut T,
    now: u64,
    id: SessionId,
    session: SessionRecord,
    /// The claim of the last run, kept open while runs name the same.
    claim: Option<OpenClaim>,
    queues: OpenQueues,
    back: BTreeMap<Name, Vec<Span>>,
    /// Messages of calls that were settled.
    of_calls: u32,
    max_results: u64,
}

impl<T: Tables> Settling<'_, T> {
    /// Carries out one run; false if its token does not hold all of its messages.
    fn run(&mut self, run: &Run) -> Moved<bool> {
        self.open_claim(&run.queue, run.claim_no)?;
        let Some(settled) = self.claim.as_mut().and_then(|claim| claim.take_out(run.range)) else {
            return self.refuse(run);
        };
        let freed = suspects(settled.iter());
        if freed > 0 {
            // Those who hold a suspect pass others by: one may be waiting for this session.
            self.session.suspects -= freed;
            self.queues.open(self.tables, &run.queue)?.wakes = 1;
        }
        for span in &settled {
            self.of_calls += u32::from(span.role.is_some());
            self.apply(&run.queue, span, &run.outcome)?;
        }
        if let Outcome::Done { result, follow_ups } = &run.outcome {
            let mut call = None;
            if follow_ups.iter().any(|submission| submission.call == Some(Calling::Joins))
                && let Some(span) = settled.first()
            {
                call = calls::joinable(self.tables, &run.queue, span)?;
            }
            if let Some(result) = result {
                let (id, expires_ms) = (MessageId(run.range.first), self.now + RESULT_TTL_MS);
                self.tables.expire_results(self.now, EXPIRED_AT_ONCE)?;
                results::keep(self.tables, &run.queue, id, expires_ms, result, self.max_results)?;
            }
            for submission in follow_ups {
                if submission.key.is_some() {
                    self.tables.expire_keys(self.now, EXPIRED_AT_ONCE)?;
                }
                let queue = self.queues.open(self.tables, &submission.queue)?;
                if intake::seen_before(self.tables, self.now, submission)?.is_none() {
                    let joins = call.as_ref().filter(|_| submission.call == Some(Calling::Joins));
                    let part = joins.map(|_| CallRole::Joined);
                    let first = intake::deposit(self.tables, self.now, queue, &submission.parcel, part)?;
                    if let Some(call) = joins {
                        calls::join(self.tables, call, &submission.queue, first)?;
                    }
                    intake::keep_key(self.tables, self.now, &submission.queue, first, submission.key.as_ref())?;
                }
            }
            // Those that joined count before it leaves.
            for span in settled.iter().filter(|span| span.role.is_some()) {
                let fate = Fate::Done(result.as_ref());
                calls::ended(self.tables, self.now, &run.queue, span, fate)?;
            }
        }
        Ok(true)
    }

    fn apply(&mut self, name: &Name, span: &Span, outcome: &Outcome) -> Moved<()> {
        let queue = self.queues.open(self.tables, name)?;
        let count = u64::from(span.range.len);
        let is_retry = matches!(outcome, Outcome::Retry { .. });
        if span.role.is_some()
            && (is_retry || *outcome == Outcome::Back)
            && calls::is_withheld(self.tables, name, span)?
        {
            queue.books.in_flight -= 1;
            return calls::cancel_message(self.tables, self.now, queue, span);
        }
        match outcome {
            Outcome::Done { .. } => {
                queue.books.in_flight -= count;
                queue.books.done += count;
                queue.books.done_sum = queue.books.done_sum.plus(IdSum::of(span.range));
                release(self.tables, queue, span)
            }
            Outcome::Retry { after_ms, error } => {
                let due = self.now.saturating_add(*after_ms);
                if retry(self.tables, queue, span, due, error)? {
                    calls::returned(self.tables, name, span, Some(due))?;
                    queue.books.in_flight -= count;
                    queue.books.delayed += count;
                    queue.wakes = 1;
                    return Ok(());
                }
                let tried = Span { attempts: span.attempts + 1, ..*span };
                let node = errors::node_name(&self.session);
                errors::bury(self.tables, self.now, queue, &tried, &node, MISSING_BODY)
            }
            Outcome::Failed { error } => {
                let tried = Span { attempts: span.attempts + 1, ..*span };
                let node = errors::node_name(&self.session);
                errors::bury(self.tables, self.now, queue, &tried, &node, error)
            }
            Outcome::Back => {
                calls::returned(self.tables, name, span, None)?;
                self.back.entry(name.clone()).or_default().push(*span);
                Ok(())
            }
        }
    }

    fn refuse(&mut self, run: &Run) -> Moved<bool> {
        if let Some(queue) = self.queues.known(self.tables, &run.queue)? {
            queue.books.stale_settles += u64::from(run.range.len);
        }
        Ok(false)
    }

    fn open_claim(&mut self, queue: &Name, claim_no: u64) -> Moved<()> {
        if self.claim.as_ref().is_none_or(|claim| !claim.is(queue, claim_no)) {
            self.close_claim()?;
            self.claim = self.tables.claim(self.id, queue, claim_no)?.map(|claim| OpenClaim::new(claim_no, claim));
        }
        Ok(())
    }

    fn close_claim(&mut self) -> Moved<()> {
        match self.claim.take().and_then(OpenClaim::close) {
            Some((no, claim)) if claim.spans.is_empty() => self.tables.drop_claim(self.id, &claim.queue, no),
            Some((no, claim)) => self.tables.put_claim(self.id, no, &claim),
            None => Ok(()),
        }
    }

    /// Writes everything back.
    fn finish(mut self) -> Moved<SessionRecord> {
        self.close_claim()?;
        for (name, spans) in std::mem::take(&mut self.back) {
            let queue = self.queues.open(self.tables, &name)?;
            returns::to_front(self.tables, queue, spans)?;
        }
        self.queues.close(self.tables)?;
        if self.of_calls > 0 {
            calls::make_room(self.tables, self.of_calls, self.max_results)?;
        }
        Ok(self.session)
    }
}

/// Delays each message of a span in a copy of its own, with why it failed. It came back alive, so its crashes are
/// forgotten. False, with nothing done, if there is nothing to copy.
fn retry<T: Tables>(tables: &mut T, queue: &mut QueueRecord, span: &Span, due: u64, error: &str) -> Moved<bool> {
    let name = queue.books.queue.clone();
    for id in span.range.ids() {
        let one = span.over(Range::one(id));
        // The messages of a span have one home: either all of them are there, or none.
        let Cut::Some(before) = cut(tables, &name, &one, u64::MAX)? else { return Ok(false) };
        let headers = before.headers(0);
        let failed = headers.failed_again(error)?;
        let changed = (failed != headers).then(|| Parcel::of_stored(&failed, &before.body(0).unwrap_or_default()));
        let changed = changed.transpose()?;
        if one.place != BodyPlace::Own || changed.is_some() {
            if one.place == BodyPlace::Own {
                queue.books.bytes -= tables.drop_bodies(&name, BodyKey::Own(id))?;
            }
            let copy = changed.unwrap_or(before);
            queue.books.bytes += copy.bytes().len() as u64;
            tables.put_bodies(&name, BodyKey::Own(id), &copy)?;
        }
        let delayed = Span { place: BodyPlace::Own, attempts: span.attempts + 1, crashes: 0, ..one };
        tables.put_delayed(&name, due, &delayed)?;
    }
    if span.place != BodyPlace::Own {
        release(tables, queue, span)?;
    }
    Ok(true)
}
