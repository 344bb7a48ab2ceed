//! What waits in a queue is removed, so much at a time.

use super::{MOST_PURGED, Purged, kept};
use crate::{
    message::{IdSum, MessageId, Range, Span},
    store::{
        Purge, Refusal,
        agreed::OF_A_CALL,
        engine::{
            Effect, Line, Moved, QueueRecord, Series, Tables,
            bodies::release,
            calls::{self, Fate},
            clock::{alive, visit},
        },
    },
};

impl Effect for Purge {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<Purged> {
        let mut session = visit(tables, self.session)?;
        if self.dispose_no != session.dispose_no + 1 {
            let answer = tables.answer(self.session, Series::Dispose, self.dispose_no)?;
            // What cannot be read is the answer to a disposal.
            let kept = answer.and_then(|answer| kept::read(&answer).ok());
            return Ok(kept.ok_or(Refusal::OutOfTurn { last: session.dispose_no })?);
        }
        let mut purged = Purged { removed: 0, failed: 0, upto: self.upto.unwrap_or(0), left: false };
        if let Some(mut queue) = tables.queue(&self.queue)? {
            if let Some(holder) = alive(tables, queue.drainer)?.filter(|it| self.failed && *it != self.session) {
                return Err(Refusal::RemovalBusy { holder }.into());
            }
            purged.upto = self.upto.unwrap_or(queue.books.pushed);
            let mut step = Step { now, weight: 0, removed: 0 };
            let is_whole = step.lines(tables, &mut queue, purged.upto)? && step.delayed(tables, &mut queue)?;
            let waited = step.removed;
            let is_whole = is_whole && (!self.failed || step.failed(tables, &mut queue)?);
            (purged.removed, purged.failed, purged.left) = (step.removed, step.removed - waited, !is_whole);
            tables.put_queue(&queue)?;
        }
        session.dispose_no = self.dispose_no;
        tables.put_session(self.session, &session)?;
        tables.put_answer(self.session, Series::Dispose, self.dispose_no, 1, &kept::write(&purged))?;
        Ok(purged)
    }
}

/// One step: what it has done so far. Each part says whether it came to the end.
struct Step {
    now: u64,
    weight: u64,
    removed: u64,
}

impl Step {
    fn lines<T: Tables>(&mut self, tables: &mut T, queue: &mut QueueRecord, upto: u64) -> Moved<bool> {
        let name = queue.books.queue.clone();
        for line in [Line::Suspects, Line::Ready] {
            // What was pushed after the purge began stands behind what waited then.
            while let Some(span) = tables.front(&name, line)?.filter(|span| span.range.first <= upto) {
                if self.weight >= MOST_PURGED {
                    return Ok(false);
                }
                tables.advance(&name, line, None)?;
                queue.books.ready -= u64::from(span.range.len);
                self.remove(tables, queue, &span)?;
            }
        }
        Ok(true)
    }

    fn delayed<T: Tables>(&mut self, tables: &mut T, queue: &mut QueueRecord) -> Moved<bool> {
        let name = queue.books.queue.clone();
        while let Some((due, span)) = tables.next_delayed(&name)? {
            if self.weight >= MOST_PURGED {
                return Ok(false);
            }
            tables.drop_delayed(&name, due, MessageId(span.range.first))?;
            queue.books.delayed -= 1;
            self.remove(tables, queue, &span)?;
        }
        Ok(true)
    }

    fn failed<T: Tables>(&mut self, tables: &mut T, queue: &mut QueueRecord) -> Moved<bool> {
        let name = queue.books.queue.clone();
        let most = u32::try_from(MOST_PURGED.saturating_sub(self.weight)).unwrap_or(0);
        let ids = tables.first_errors(&name, most)?;
        for id in &ids {
            tables.take_error(&name, *id)?;
            queue.books.failed -= 1;
            self.count(queue, Range::one(*id));
        }
        Ok(queue.books.failed == 0)
    }

    /// A message of a call ends as cancelled: its follower is to hear that it will not run.
    fn remove<T: Tables>(&mut self, tables: &mut T, queue: &mut QueueRecord, span: &Span) -> Moved<()> {
        self.weight += if span.role.is_some() { OF_A_CALL } else { 1 };
        self.count(queue, span.range);
        release(tables, queue, span)?;
        let name = queue.books.queue.clone();
        calls::ended(tables, self.now, &name, span, Fate::Cancelled)
    }

    fn count(&mut self, queue: &mut QueueRecord, range: Range) {
        self.removed += u64::from(range.len);
        queue.books.removed += u64::from(range.len);
        queue.books.removed_sum = queue.books.removed_sum.plus(IdSum::of(range));
    }
}
