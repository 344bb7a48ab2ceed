//! Handing messages to a session: a suspect, then what is due, then what is ready.
//!
//! A claim that could have taken more enters its session among those that wait for the queue; one that leaves something
//! behind wakes another of them. So whoever has a free slot has either a claim under way or a place among those who wait.
//!
//! A message whose call was cancelled is not given: it ends as cancelled. A message whose body is not there cannot be run: it is buried with that reason, and the claim goes on with the next.

use crate::{
    message::{MessageId, Name, Parcel, Range, Span},
    store::{
        CLAIM_WINDOW, Claim, Claimed, MAX_SPANS, MOST_BURIED, Refusal, Rest,
        agreed::{MISSING_BODY, OF_A_CALL},
        engine::{
            ClaimNumbers, ClaimRecord, Cut, Effect, Line, Moved, QueueRecord, SessionRecord, Tables,
            bodies::cut,
            calls,
            clock::visit,
            errors::{bury, node_name},
            queues::known_queue,
            returns::suspects,
            waits,
        },
    },
};

impl Effect for Claim {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<Claimed> {
        claim(tables, now, self)
    }
}

fn claim<T: Tables>(tables: &mut T, now: u64, it: &Claim) -> Moved<Claimed> {
    let mut session = visit(tables, it.session)?;
    if let Some(record) = tables.claim(it.session, &it.queue, it.claim_no)? {
        return again(tables, now, it, session, record);
    }
    let mut numbers = tables.numbers(it.session, &it.queue)?;
    check_number(&numbers, it.claim_no)?;
    let mut gathered =
        Gathered { n: it.n, budget: it.max_bytes, spans: Vec::new(), weight: 0, stopped: false, buried: 0 };
    let queue = tables.queue(&it.queue)?.filter(|queue| !queue.books.paused);
    let Some(mut queue) = queue else {
        waits::enter(tables, now, it.session, &it.queue)?;
        return Ok(Claimed { queue: it.queue.clone(), spans: Vec::new(), rest: Rest::Nothing { next_due_ms: None } });
    };
    gathered.fill(tables, now, &mut queue, &session)?;
    let more = gathered.stopped || !gathered.has_room();
    if !gathered.spans.is_empty() || gathered.buried > 0 {
        tables.put_queue(&queue)?;
    }
    if !gathered.spans.is_empty() {
        let spans = gathered.spans.iter().map(|(span, _)| *span).collect();
        tables.put_claim(it.session, it.claim_no, &ClaimRecord { queue: it.queue.clone(), spans })?;
        for (span, _) in gathered.spans.iter().filter(|(span, _)| span.role.is_some()) {
            calls::claimed(tables, &it.queue, span, it.session, it.claim_no)?;
        }
        use_number(&mut numbers, it.claim_no);
        tables.put_numbers(it.session, &it.queue, &numbers)?;
        session.suspects += suspects(gathered.spans.iter().map(|(span, _)| span));
        tables.put_session(it.session, &session)?;
        waits::left_behind(tables, now, &queue, more)?;
    }
    let rest = if more {
        tables.drop_waiter(&it.queue, it.session)?;
        Rest::More
    } else {
        waits::enter(tables, now, it.session, &it.queue)?;
        let next_due = if queue.books.delayed > 0 { tables.next_delayed(&it.queue)? } else { None };
        Rest::Nothing { next_due_ms: next_due.map(|(due, _)| due.saturating_sub(now)) }
    };
    Ok(Claimed { queue: it.queue.clone(), spans: gathered.spans, rest })
}

/// The answer to a repeat: what is still in flight under the number, without what has lost its body since.
fn again<T: Tables>(
    tables: &mut T, now: u64, it: &Claim, mut session: SessionRecord, record: ClaimRecord,
) -> Moved<Claimed> {
    let ClaimRecord { queue: name, spans } = record;
    let (mut with_bodies, mut without) = (Vec::with_capacity(spans.len()), Vec::new());
    for span in spans {
        match cut(tables, &name, &span, u64::MAX)? {
            Cut::Some(parcel) => with_bodies.push((span, parcel)),
            Cut::NoneFits | Cut::Missing => without.push(span),
        }
    }
    if !without.is_empty() {
        let mut queue = known_queue(tables, &name)?;
        for span in &without {
            bury(tables, now, &mut queue, span, &node_name(&session), MISSING_BODY)?;
        }
        tables.put_queue(&queue)?;
        session.suspects -= suspects(without.iter());
        tables.put_session(it.session, &session)?;
        let spans: Vec<Span> = with_bodies.iter().map(|(span, _)| *span).collect();
        if spans.is_empty() {
            tables.drop_claim(it.session, &name, it.claim_no)?;
        } else {
            tables.put_claim(it.session, it.claim_no, &ClaimRecord { queue: name.clone(), spans })?;
        }
    }
    Ok(Claimed { queue: name, spans: with_bodies, rest: Rest::More })
}

fn check_number(numbers: &ClaimNumbers, claim_no: u64) -> Moved<()> {
    let lowest = numbers.holes.first().copied().unwrap_or(numbers.high + 1);
    if claim_no >= lowest + CLAIM_WINDOW {
        return Err(Refusal::OutOfTurn { last: numbers.high }.into());
    }
    if claim_no <= numbers.high && !numbers.holes.contains(&claim_no) {
        return Err(Refusal::Spent { claim_no }.into());
    }
    Ok(())
}

fn use_number(numbers: &mut ClaimNumbers, claim_no: u64) {
    if claim_no > numbers.high {
        numbers.holes.extend(numbers.high + 1..claim_no);
        numbers.high = claim_no;
    } else {
        numbers.holes.retain(|hole| *hole != claim_no);
    }
}

/// What a claim has gathered, and how much more it may.
struct Gathered {
    n: u32,
    budget: u64,
    spans: Vec<(Span, Parcel)>,
    /// What they cost, in spans without a call.
    weight: u64,
    /// Whether the bound of bytes kept it from taking more.
    stopped: bool,
    /// What those cost that it found without a body, or of calls that were cancelled.
    buried: u32,
}

impl Gathered {
    fn fill<T: Tables>(
        &mut self, tables: &mut T, now: u64, queue: &mut QueueRecord, session: &SessionRecord,
    ) -> Moved<()> {
        let name = queue.books.queue.clone();
        while session.suspects == 0
            && queue.books.ready > 0
            && self.has_room()
            && let Some(span) = tables.front(&name, Line::Suspects)?
        {
            if calls::is_withheld(tables, &name, &span)? {
                tables.advance(&name, Line::Suspects, None)?;
                queue.books.ready -= 1;
                self.withhold(tables, now, queue, &span)?;
                continue;
            }
            let taken = self.take(tables, &name, &span)?;
            tables.advance(&name, Line::Suspects, None)?;
            queue.books.ready -= u64::from(span.range.len);
            queue.books.in_flight += u64::from(span.range.len);
            if taken.is_some() {
                break;
            }
            self.bury(tables, now, queue, &span, session)?;
        }
        while queue.books.delayed > 0 && self.has_room() {
            let Some((due, span)) = tables.next_delayed(&name)?.filter(|(due, _)| *due <= now) else { break };
            if calls::is_withheld(tables, &name, &span)? {
                tables.drop_delayed(&name, due, MessageId(span.range.first))?;
                queue.books.delayed -= 1;
                self.withhold(tables, now, queue, &span)?;
                continue;
            }
            let taken = self.take(tables, &name, &span)?;
            if taken == Some(0) {
                self.stopped = true;
                return Ok(());
            }
            tables.drop_delayed(&name, due, MessageId(span.range.first))?;
            queue.books.delayed -= 1;
            queue.books.in_flight += 1;
            if taken.is_none() {
                self.bury(tables, now, queue, &span, session)?;
            }
        }
        while queue.books.ready > 0 && self.has_room() {
            let Some(span) = tables.front(&name, Line::Ready)? else { break };
            if calls::is_withheld(tables, &name, &span)? {
                tables.advance(&name, Line::Ready, None)?;
                queue.books.ready -= 1;
                self.withhold(tables, now, queue, &span)?;
                continue;
            }
            let len = span.range.len.min(self.n);
            let wanted = span.over(Range { len, ..span.range });
            let taken = self.take(tables, &name, &wanted)?;
            if taken == Some(0) {
                self.stopped = true;
                break;
            }
            let gone = Range { len: taken.unwrap_or_else(|| len.min(MOST_BURIED - self.buried)), ..span.range };
            let [_, rest] = span.without(gone);
            tables.advance(&name, Line::Ready, rest.as_ref())?;
            queue.books.ready -= u64::from(gone.len);
            queue.books.in_flight += u64::from(gone.len);
            if taken.is_none() {
                self.bury(tables, now, queue, &span.over(gone), session)?;
            } else if gone.len < len {
                self.stopped = true;
                break;
            }
        }
        Ok(())
    }

    const fn has_room(&self) -> bool {
        self.n > 0 && self.weight < MAX_SPANS as u64 && self.buried < MOST_BURIED
    }

    /// Ends a message whose call was cancelled.
    fn withhold<T: Tables>(&mut self, tables: &mut T, now: u64, queue: &mut QueueRecord, span: &Span) -> Moved<()> {
        self.buried += OF_A_CALL as u32;
        calls::cancel_message(tables, now, queue, span)
    }

    /// Moves messages without a body, counted as in flight, to the errors.
    fn bury<T: Tables>(
        &mut self, tables: &mut T, now: u64, queue: &mut QueueRecord, span: &Span, session: &SessionRecord,
    ) -> Moved<()> {
        self.buried += span.range.len;
        bury(tables, now, queue, span, &node_name(session), MISSING_BODY)
    }

    /// Takes as much of a span as fits, at least one message if nothing is gathered yet; how many. Nothing if its bodies are
    /// missing.
    fn take<T: Tables>(&mut self, tables: &mut T, queue: &Name, span: &Span) -> Moved<Option<u32>> {
        let mut found = cut(tables, queue, span, self.budget)?;
        if found == Cut::NoneFits && self.spans.is_empty() {
            let one = span.over(Range { len: 1, ..span.range });
            found = cut(tables, queue, &one, u64::MAX)?;
        }
        let parcel = match found {
            Cut::Some(parcel) => parcel,
            Cut::NoneFits => return Ok(Some(0)),
            Cut::Missing => return Ok(None),
        };
        let len = parcel.len();
        self.n -= len;
        self.budget = self.budget.saturating_sub(parcel.weight() as u64);
        self.weight += if span.role.is_some() { OF_A_CALL } else { 1 };
        self.spans.push((span.over(Range { len, ..span.range }), parcel));
        Ok(Some(len))
    }
}
