//! Calls: their messages counted, their last event written in the step that ends them, their holders told of a cancel.
//!
//! Every open message of a call counts once in `open`: the submit that begins it, the settle that lets a follow-up join, and
//! the step that ends the message keep the count. With none left the call ends: well, or as cancelled if one of them ended
//! so. The first that dies ends it at once, and marks it, so that the others end at their next step.

use bytes::Bytes;

use super::{CallRecord, Hold, Moved, QueueRecord, Tables, bodies::release, queues::OpenQueues};
use crate::{
    message::{CANCELLED, CallEvent, CallId, CallRole, END, ERROR, IdSum, MessageId, Name, RESTART, SessionId, Span},
    store::{
        AN_EVENT, CALL_TTL_MS, CallState, Refusal, StoreError,
        agreed::EXPIRED_AT_ONCE,
        operation::{A_CALL, DELAYED_AT_ONCE},
        wake_up::WakeUp,
    },
};

/// How a message of a call ended.
#[derive(Clone, Copy)]
pub(in crate::store) enum Fate<'a> {
    Done(Option<&'a Bytes>),
    Failed(&'a str),
    Cancelled,
}

/// The call that somebody names, under the name it is filed by; nothing if there is none.
///
/// # Errors
/// [`Refusal::OtherCall`] if its id is another message's by now.
pub(in crate::store) fn named<T: Tables>(tables: &mut T, call: &CallId) -> Moved<Option<(CallId, CallRecord)>> {
    let place = call.place();
    let Some(record) = tables.call(&place)? else { return Ok(None) };
    if call.means(record.born) { Ok(Some((place, record))) } else { Err(Refusal::OtherCall.into()) }
}

/// A message as events name it.
fn name_of(queue: &Name, span: &Span) -> CallId {
    CallId { queue: queue.clone(), id: MessageId(span.range.first), born: Some(span.born) }
}

/// The call that a span belongs to, if it does to one.
fn call_of<T: Tables>(tables: &mut T, queue: &Name, span: &Span) -> Moved<Option<CallId>> {
    let id = MessageId(span.range.first);
    match span.role {
        None => Ok(None),
        Some(CallRole::First) => Ok(Some(CallId { queue: queue.clone(), id, born: None })),
        Some(CallRole::Joined) => tables.joined(queue, id),
    }
}

/// The call that a message belongs to, or would be.
pub(in crate::store) fn call_of_message<T: Tables>(tables: &mut T, queue: &Name, id: MessageId) -> Moved<CallId> {
    Ok(tables.joined(queue, id)?.unwrap_or_else(|| CallId { queue: queue.clone(), id, born: None }))
}

/// Begins a call with the message just stored.
pub(in crate::store) fn begin<T: Tables>(
    tables: &mut T, now: u64, queue: &Name, first: u64, linger_ms: Option<u64>,
) -> Moved<()> {
    tables.expire_calls(now, EXPIRED_AT_ONCE)?;
    let call = CallId { queue: queue.clone(), id: MessageId(first), born: None };
    let record = CallRecord {
        born: now,
        open: 1,
        running: 0,
        delayed: 0,
        cancelled: 0,
        is_marked: false,
        end: None,
        next: 1,
        first: 1,
        bytes: 0,
        key_bytes: 0,
        linger_ms,
        followed_ms: now,
        outcome: None,
        holders: Default::default(),
        followers: Default::default(),
    };
    tables.put_call(&call, &record)?;
    match linger_ms {
        Some(linger_ms) => tables.put_look(&call, Some(now + linger_ms)),
        None => Ok(()),
    }
}

/// The call of a message that lets follow-ups join; nothing if it is of none.
pub(in crate::store) fn joinable<T: Tables>(tables: &mut T, queue: &Name, span: &Span) -> Moved<Option<CallId>> {
    let Some(call) = call_of(tables, queue, span)? else { return Ok(None) };
    Ok(tables.call(&call)?.map(|_| call))
}

/// The message just stored joins a call.
pub(in crate::store) fn join<T: Tables>(tables: &mut T, call: &CallId, queue: &Name, first: u64) -> Moved<()> {
    let Some(mut record) = tables.call(call)? else { return Ok(()) };
    record.open += 1;
    tables.put_joined(queue, MessageId(first), call)?;
    tables.put_call(call, &record)
}

/// Whether a message is to end instead of being given.
pub(in crate::store) fn is_withheld<T: Tables>(tables: &mut T, queue: &Name, span: &Span) -> Moved<bool> {
    let Some(call) = call_of(tables, queue, span)? else { return Ok(false) };
    Ok(tables.call(&call)?.is_some_and(|record| record.is_marked))
}

/// A session has claimed a message. If it told something when it was held before, that is void now, which is told.
pub(in crate::store) fn claimed<T: Tables>(
    tables: &mut T, queue: &Name, span: &Span, session: SessionId, claim_no: u64,
) -> Moved<()> {
    let Some(call) = call_of(tables, queue, span)? else { return Ok(()) };
    let Some(mut record) = tables.call(&call)? else { return Ok(()) };
    let id = MessageId(span.range.first);
    let before = tables.hold(&call, queue, id)?;
    record.running += 1;
    record.delayed -= u64::from(before.due_ms.is_some());
    *record.holders.entry(session).or_default() += 1;
    if before.emitted > 0 && record.end.is_none() {
        let message = (span.role == Some(CallRole::Joined)).then(|| name_of(queue, span));
        let attempt = (span.attempts + 1).to_string();
        append(tables, &call, &mut record, &CallEvent::bytes(RESTART, message.as_ref(), None, attempt.as_bytes()))?;
    }
    tables.put_hold(&call, queue, id, &Hold { by: Some((session, claim_no)), ..Hold::default() })?;
    tables.put_call(&call, &record)
}

/// A message that was held waits again, or is delayed until it is due. False, with nothing changed, if its call was cancelled: then it ends.
pub(in crate::store) fn returned<T: Tables>(
    tables: &mut T, queue: &Name, span: &Span, due_ms: Option<u64>,
) -> Moved<bool> {
    let Some(call) = call_of(tables, queue, span)? else { return Ok(true) };
    let Some(mut record) = tables.call(&call)? else { return Ok(true) };
    if record.is_marked {
        return Ok(false);
    }
    let id = MessageId(span.range.first);
    let hold = tables.hold(&call, queue, id)?;
    let_go(tables, &call, &mut record, &hold)?;
    record.delayed += u64::from(due_ms.is_some());
    tables.put_hold(&call, queue, id, &Hold { by: None, due_ms, ..hold })?;
    tables.put_call(&call, &record)?;
    Ok(true)
}

/// What a session held of a call it holds no longer.
fn let_go<T: Tables>(tables: &mut T, call: &CallId, record: &mut CallRecord, hold: &Hold) -> Moved<()> {
    let Some((session, _)) = hold.by else { return Ok(()) };
    record.running -= 1;
    let left = record.holders.get(&session).copied().unwrap_or(1) - 1;
    if left > 0 {
        record.holders.insert(session, left);
        return Ok(());
    }
    record.holders.remove(&session);
    if record.is_marked { tables.tell_cancelled(session, call, false) } else { Ok(()) }
}

/// A message has ended, if it is one of a call: with the last one its call does.
pub(in crate::store) fn ended<T: Tables>(
    tables: &mut T, now: u64, queue: &Name, span: &Span, fate: Fate<'_>,
) -> Moved<()> {
    let Some(call) = call_of(tables, queue, span)? else { return Ok(()) };
    let Some(mut record) = tables.call(&call)? else { return Ok(()) };
    let id = MessageId(span.range.first);
    let hold = tables.hold(&call, queue, id)?;
    let_go(tables, &call, &mut record, &hold)?;
    record.open -= 1;
    record.delayed -= u64::from(hold.due_ms.is_some());
    tables.put_hold(&call, queue, id, &Hold::default())?;
    if span.role == Some(CallRole::Joined) {
        tables.drop_joined(queue, id)?;
    }
    match fate {
        Fate::Done(result) if span.role == Some(CallRole::First) && record.end.is_none() => {
            record.outcome = result.cloned();
        }
        Fate::Done(_) => {}
        Fate::Cancelled => record.cancelled += 1,
        Fate::Failed(why) if record.end.is_none() => {
            let message = (span.role == Some(CallRole::Joined)).then(|| name_of(queue, span));
            record.outcome = Some(Bytes::copy_from_slice(why.as_bytes()));
            record.end = Some(CallState::Failed);
            append(tables, &call, &mut record, &CallEvent::bytes(ERROR, message.as_ref(), None, why.as_bytes()))?;
            mark(tables, now, &call, &mut record)?;
        }
        Fate::Failed(_) => {}
    }
    if record.open == 0 {
        if record.end.is_none() {
            let was_cancelled = record.cancelled > 0;
            record.outcome.take_if(|_| was_cancelled);
            let result = record.outcome.clone().unwrap_or_default();
            let (end, event) = if was_cancelled { (CallState::Cancelled, CANCELLED) } else { (CallState::Done, END) };
            record.end = Some(end);
            append(tables, &call, &mut record, &CallEvent::bytes(event, None, None, &result))?;
        }
        tables.put_look(&call, None)?;
        tables.put_call(&call, &record)?;
        return tables.put_call_end(&call, now + CALL_TTL_MS, weight(&record));
    }
    tables.put_call(&call, &record)
}

/// Ends a message because its call was cancelled; it is counted no longer as what it was.
pub(in crate::store) fn cancel_message<T: Tables>(
    tables: &mut T, now: u64, queue: &mut QueueRecord, span: &Span,
) -> Moved<()> {
    queue.books.cancelled += 1;
    queue.books.cancelled_sum = queue.books.cancelled_sum.plus(IdSum::of(span.range));
    release(tables, queue, span)?;
    ended(tables, now, &queue.books.queue, span, Fate::Cancelled)
}

/// Ends what of a marked call waits delayed, as much of it as one step may. Whether there is more: then whoever beats asks for
/// another step, should the one who cancels be gone.
pub(in crate::store) fn end_delayed<T: Tables>(tables: &mut T, now: u64, call: &CallId) -> Moved<bool> {
    let mut queues = OpenQueues::default();
    let delayed = tables.delayed_of(call, DELAYED_AT_ONCE)?;
    for (due, name, id) in delayed {
        let span = tables.delayed_at(&name, due, id)?;
        let span = span.ok_or_else(|| StoreError::Damaged(format!("{name}/{} of call {call} is not delayed", id.0)))?;
        tables.drop_delayed(&name, due, id)?;
        let queue = queues.claimed_from(tables, &name)?;
        queue.books.delayed -= 1;
        cancel_message(tables, now, queue, &span)?;
    }
    queues.close(tables)?;
    let more = tables.call(call)?.is_some_and(|record| record.delayed > 0);
    tables.put_look(call, more.then_some(now))?;
    Ok(more)
}

/// What a call that has ended counts for.
pub(in crate::store) fn weight(record: &CallRecord) -> u64 {
    A_CALL + record.bytes + record.key_bytes + record.outcome.as_ref().map_or(0, |outcome| outcome.len() as u64)
}

/// Keeps those that have ended within a bound, after a step that has ended at most `ended` of them: as many of the oldest go,
/// and a few more where the bound was lower before, a long log came, or calls have ended otherwise than by a report.
pub(in crate::store) fn make_room<T: Tables>(tables: &mut T, ended: u32, max_bytes: u64) -> Moved<()> {
    let over = tables.call_bytes()?.saturating_sub(max_bytes);
    if over > 0 { tables.drop_oldest_calls(over, ended.saturating_add(EXPIRED_AT_ONCE)) } else { Ok(()) }
}

/// Marks a call, and has those who hold messages of it told. What waits delayed is ended in a step of its own.
pub(in crate::store) fn mark<T: Tables>(tables: &mut T, now: u64, call: &CallId, record: &mut CallRecord) -> Moved<()> {
    record.is_marked = true;
    tables.put_look(call, (record.delayed > 0).then_some(now))?;
    for session in record.holders.keys() {
        tables.tell_cancelled(*session, call, true)?;
    }
    Ok(())
}

/// Adds an event, and wakes those who wait for one.
pub(in crate::store) fn append<T: Tables>(
    tables: &mut T, call: &CallId, record: &mut CallRecord, event: &Bytes,
) -> Moved<()> {
    tables.put_event(call, record.next, event)?;
    record.next += 1;
    record.bytes += event.len() as u64 + AN_EVENT;
    let waiting: Vec<SessionId> =
        record.followers.iter().filter(|(_, follower)| follower.waits).map(|(session, _)| *session).collect();
    for session in waiting {
        let lives = tables.session(session)?.is_some();
        match record.followers.get_mut(&session) {
            Some(follower) if lives => {
                follower.waits = false;
                tables.wake(session, &WakeUp::Follow(follower.number))?;
            }
            _ => drop(record.followers.remove(&session)),
        }
    }
    Ok(())
}

/// Forgets followers whose sessions are gone.
pub(in crate::store) fn drop_gone_followers<T: Tables>(tables: &mut T, record: &mut CallRecord) -> Moved<()> {
    let sessions: Vec<SessionId> = record.followers.keys().copied().collect();
    for session in sessions {
        if tables.session(session)?.is_none() {
            record.followers.remove(&session);
        }
    }
    Ok(())
}
