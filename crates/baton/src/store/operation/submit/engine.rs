//! Messages come in from outside, each submission judged on its own.

use std::collections::BTreeSet;

use super::{EXPIRED_A_KEY, kept};
use crate::message::{CallRole, Calling, Submission};
use crate::store::{
    Place, Refusal, SUBMIT_WINDOW, SubmissionVerdict, Submit, Submitted,
    agreed::EXPIRED_AT_ONCE,
    engine::{
        Effect, Moved, Series, Tables, calls,
        clock::visit,
        intake::{deposit, ids_used_up, is_full, keep_key, seen_before},
        queues::OpenQueues,
    },
};

impl Effect for Submit {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<Submitted> {
        let mut session = visit(tables, self.session)?;
        if self.submit_no != session.submit_no + 1 {
            let answer = tables.answer(self.session, Series::Submit, self.submit_no)?;
            let answer = answer.ok_or(Refusal::OutOfTurn { last: session.submit_no })?;
            return Ok(Submitted { submissions: kept::parse_verdicts(&answer)? });
        }
        if let Some(mark) = &self.bookmark {
            let Place { lines, digest } = tables.bookmark(&mark.key)?.unwrap_or(Place::START);
            if (Place { lines, digest }) != mark.from {
                return Err(Refusal::Bookmark { lines, digest }.into());
            }
            for name in self.submissions.iter().map(|submission| &submission.queue).collect::<BTreeSet<_>>() {
                let of_queue = self.submissions.iter().filter(|submission| submission.queue == *name);
                let bytes = of_queue.map(|submission| submission.parcel.bytes().len() as u64).sum();
                if let Some(queue) = tables.queue(name)?.filter(|queue| is_full(queue, bytes, self.max_queue_bytes)) {
                    return Err(Refusal::Full { queue: name.clone(), bytes: queue.books.bytes }.into());
                }
            }
            tables.put_bookmark(&mark.key, self.submissions.first().map(|first| &first.queue), &mark.to)?;
        }
        let in_exchange = make_room(tables, now, &self.submissions)?;
        let (mut full, mut queues) = (BTreeSet::new(), OpenQueues::default());
        let mut verdicts = Vec::with_capacity(self.submissions.len());
        for submission in &self.submissions {
            let queue = queues.open(tables, &submission.queue)?;
            if let Some(seen) = seen_before(tables, now, submission)? {
                verdicts.push(seen);
                continue;
            }
            if submission.key.is_some() && !in_exchange && tables.key_count()? >= self.max_keys {
                verdicts.push(SubmissionVerdict::KeysFull);
                continue;
            }
            let over =
                self.bookmark.is_none() && is_full(queue, submission.parcel.bytes().len() as u64, self.max_queue_bytes);
            if full.contains(&submission.queue) || over || ids_used_up(queue, u64::from(submission.parcel.len())) {
                full.insert(&submission.queue);
                verdicts.push(SubmissionVerdict::Full);
                continue;
            }
            let first = deposit(tables, now, queue, &submission.parcel, submission.call.map(|_| CallRole::First))?;
            keep_key(tables, now, &submission.queue, first, submission.key.as_ref())?;
            let Some(Calling::Begins { linger_ms, .. }) = submission.call else {
                verdicts.push(SubmissionVerdict::Stored { first });
                continue;
            };
            calls::begin(tables, now, &submission.queue, first, linger_ms)?;
            verdicts.push(SubmissionVerdict::Begun { first, born: now });
        }
        queues.close(tables)?;
        session.submit_no = self.submit_no;
        tables.put_session(self.session, &session)?;
        let answer = kept::verdicts(&verdicts);
        tables.put_answer(self.session, Series::Submit, self.submit_no, SUBMIT_WINDOW, &answer)?;
        Ok(Submitted { submissions: verdicts })
    }
}

/// Forgets keys that have expired, more than come. True if each that comes takes the place of one of these; otherwise
/// all that are left are alive, and count.
fn make_room<T: Tables>(tables: &mut T, now: u64, submissions: &[Submission]) -> Moved<bool> {
    let coming = submissions.iter().filter(|submission| submission.key.is_some()).count() as u32;
    let limit = EXPIRED_AT_ONCE.max(coming * EXPIRED_A_KEY);
    Ok(coming > 0 && tables.expire_keys(now, limit)? == limit)
}
