//! Replies of scripts as answers.

use bytes::Bytes;

use super::reply::{Reply, parsed};
use crate::{
    message::{IdSum, Name, SessionId},
    store::{
        Answer, Beaten, Books, DeadMessage, Disposed, Draining, Joined, Kind, Looked, Page, Place, Pushed, Reaped,
        Request, Rest, SessionView, Settled, SourceView, Stop, StoreError, Submitted, Survey, Taken, wire,
    },
};

/// The answer to a request, or its refusal, from the rest of a reply after its code. Messages of a claim are read
/// elsewhere.
pub(super) fn answer(request: &Request, code: &str, mut it: Reply) -> Result<Answer, StoreError> {
    Ok(match (request, code) {
        (Request::Join(_), "OK") => {
            Answer::Join(Joined { incarnation: it.text()?, now_ms: it.parsed()?, join_no: it.parsed()? })
        }
        (Request::Beat(_), "OK") => Answer::Beat(beaten(it)?),
        (Request::Leave(_), "OK") => Answer::Leave(()),
        (Request::Reap(_), "OK") => Answer::Reap(Reaped::Taken { back: it.parsed()?, dead: it.parsed()? }),
        (Request::Reap(_), "ALIVE") => Answer::Reap(Reaped::Alive),
        (Request::Reap(_), "GONE") => Answer::Reap(Reaped::Gone),
        (Request::Take(_), "OK") => {
            Answer::Take(Taken { epoch: it.parsed()?, cursor: it.text()?, batch_no: it.parsed()? })
        }
        (Request::Resign(_), "OK") => Answer::Resign(()),
        (Request::Rewind(_), "OK") => Answer::Rewind(()),
        (Request::Remove(_), "OK") => Answer::Remove(()),
        (Request::Push(_), "OK") => Answer::Push(Pushed { firsts: it.rest(Reply::parsed)?, duplicate: false }),
        (Request::Push(_), "DUP") => Answer::Push(Pushed { firsts: Vec::new(), duplicate: true }),
        (Request::Submit(_), "OK") => Answer::Submit(Submitted { lots: wire::parse_verdicts(&it.text()?)? }),
        (Request::Pass(_), "OK") => Answer::Pass(()),
        (Request::Look(_), "OK") => {
            let mut queues: Vec<(Name, u64)> = it.list()?.rest(|it| Ok((it.parsed()?, it.parsed()?)))?;
            queues.sort_unstable();
            Answer::Look(Looked { queues })
        }
        (Request::Settle(_), "OK") => Answer::Settle(Settled { refused: wire::parse_refused(&it.text()?)? }),
        (Request::DrainBegin(_), "OK") => Answer::DrainBegin(Draining { upto: it.parsed()?, dispose_no: it.parsed()? }),
        (Request::Peek(_), "OK") => Answer::Peek(Page { errors: it.list()?.rest(dead_message)? }),
        (Request::Dispose(_), "OK") => Answer::Dispose(Disposed { count: it.parsed()? }),
        (Request::Order(_), "OK") => Answer::Order(()),
        (Request::Survey(_), "OK") => Answer::Survey(survey(it)?),
        (Request::Result(_), "OK") => Answer::Result(Some(it.bytes()?)),
        (Request::Result(_), "NONE") => Answer::Result(None),
        (Request::Bookmark(_), "OK") => Answer::Bookmark(place(&it.text()?)?),
        (_, code) => return Err(it.refusal(code)),
    })
}

fn beaten(mut it: Reply) -> Result<Beaten, StoreError> {
    let now_ms = it.parsed()?;
    let stop = match it.text()?.as_str() {
        "drain" => Some(Stop::Drain),
        "now" => Some(Stop::Now),
        _ => None,
    };
    let mut claims: Vec<(Name, u64)> = it.list()?.rest(|it| claim_place(&it.text()?))?;
    claims.sort_unstable();
    let expired = it.list()?.rest(Reply::parsed)?;
    let mut due: Vec<Name> = it.list()?.rest(Reply::parsed)?;
    due.sort_unstable();
    let mut held: Vec<(Name, u64)> = it.list()?.rest(|it| Ok((it.parsed()?, it.parsed()?)))?;
    held.sort_unstable();
    let helped = it.list()?.rest(Reply::parsed)?;
    Ok(Beaten { now_ms, due, held, expired, claims, helped, stop })
}

/// A claim as `number queue`.
fn claim_place(text: &str) -> Result<(Name, u64), StoreError> {
    let (claim_no, queue) = text.split_once(' ').unwrap_or_default();
    Ok((parsed(queue)?, parsed(claim_no)?))
}

/// What a claim left behind: `more`, or when the next is due, or nothing.
pub(super) fn rest(text: &str) -> Result<Rest, StoreError> {
    Ok(match text {
        "more" => Rest::More,
        "" => Rest::Nothing { next_due_ms: None },
        ms => Rest::Nothing { next_due_ms: Some(parsed(ms)?) },
    })
}

/// A place as `lines,digest`; nothing is the start.
pub(super) fn place(text: &str) -> Result<Place, StoreError> {
    if text.is_empty() {
        return Ok(Place::START);
    }
    let (lines, digest) = text.split_once(',').unwrap_or_default();
    Ok(Place { lines: parsed(lines)?, digest: parsed(digest)? })
}

/// An error as its id and its record `seq,attempts,losses,born,at,length of node,length of error|node error body`.
fn dead_message(it: &mut Reply) -> Result<DeadMessage, StoreError> {
    let id = it.parsed()?;
    let record = it.bytes()?;
    let damaged = || StoreError::Damaged(format!("unreadable error record of message {id}"));
    let bar = record.iter().position(|byte| *byte == b'|').ok_or_else(damaged)?;
    let head = record.get(..bar).and_then(|head| std::str::from_utf8(head).ok()).ok_or_else(damaged)?;
    let numbers: Vec<u64> = head.split(',').map(parsed).collect::<Result<_, _>>()?;
    let [seq, attempts, losses, born, at, node_len, error_len] = numbers[..] else { return Err(damaged()) };
    let small = |number: u64| u32::try_from(number).map_err(|_| damaged());
    let mut from = bar + 1;
    let mut text = |len: u64| -> Option<String> {
        let past = from.checked_add(usize::try_from(len).ok()?)?;
        let text = String::from_utf8(record.get(from..past)?.to_vec()).ok()?;
        from = past;
        Some(text)
    };
    let node = text(node_len).ok_or_else(damaged)?;
    let error = text(error_len).ok_or_else(damaged)?;
    let (attempts, losses) = (small(attempts)?, small(losses)?);
    Ok(DeadMessage { seq, id, attempts, losses, born, at, node, error, body: record.slice(from..) })
}

fn survey(mut it: Reply) -> Result<Survey, StoreError> {
    let now_ms = it.parsed()?;
    let mut sessions = it.list()?.rest(|it| session_view(it.list()?))?;
    sessions.sort_unstable_by_key(|view| view.session);
    let mut sources = it.list()?.rest(|it| source_view(it.list()?))?;
    sources.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let mut queues = it.list()?.rest(|it| books(it.list()?))?;
    queues.sort_unstable_by(|a, b| a.queue.cmp(&b.queue));
    Ok(Survey { now_ms, sessions, sources, queues })
}

fn session_view(mut it: Reply) -> Result<SessionView, StoreError> {
    let session: SessionId = it.parsed()?;
    let kind = if it.text()? == "n" { Kind::Node } else { Kind::Client };
    let (host, pid) = (it.text()?, it.parsed()?);
    let queues = it.text()?;
    let queues = queues.split(',').filter(|name| !name.is_empty()).map(parsed).collect::<Result<_, _>>()?;
    let (lease_ms, join_no, joined_ms, beat_ms) = (it.parsed()?, it.parsed()?, it.parsed()?, it.parsed()?);
    let report: Bytes = it.bytes()?;
    Ok(SessionView { session, kind, host, pid, queues, lease_ms, join_no, joined_ms, beat_ms, report })
}

fn source_view(mut it: Reply) -> Result<SourceView, StoreError> {
    let (name, queue) = (it.parsed()?, it.parsed()?);
    let holder = Some(it.text()?).filter(|holder| !holder.is_empty());
    let holder = holder.map(|holder| parsed(&holder)).transpose()?;
    let epoch = Some(it.text()?).filter(|epoch| !epoch.is_empty());
    let epoch = epoch.map(|epoch| parsed(&epoch)).transpose()?.unwrap_or(0);
    Ok(SourceView { name, queue, holder, epoch, cursor: it.text()?, ended: it.text()? == "1" })
}

/// The books of a queue: its name, then the counters in the order of the scripts' list.
pub(super) fn books(mut it: Reply) -> Result<Books, StoreError> {
    let mut books = Books::new(it.parsed()?);
    let counters: Vec<u64> = it.rest(Reply::parsed)?;
    let [
        pushed,
        ready,
        delayed,
        in_flight,
        done,
        dead,
        drained,
        requeued,
        done_sum,
        drained_sum,
        bytes,
        stale_pushes,
        stale_settles,
        dead_seq,
        paused,
    ] = counters[..]
    else {
        return Err(StoreError::Damaged(format!("the books of {} are incomplete", books.queue)));
    };
    (books.pushed, books.ready, books.delayed, books.in_flight) = (pushed, ready, delayed, in_flight);
    (books.done, books.dead, books.drained, books.requeued) = (done, dead, drained, requeued);
    (books.done_sum, books.drained_sum) = (IdSum::from_u64(done_sum), IdSum::from_u64(drained_sum));
    (books.bytes, books.stale_pushes, books.stale_settles) = (bytes, stale_pushes, stale_settles);
    (books.dead_seq, books.paused) = (dead_seq, paused == 1);
    Ok(books)
}
