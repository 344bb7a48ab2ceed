//! Messages coming in: pushes of a source under its baton, submits from outside, follow-ups of a settle.

use std::collections::BTreeSet;

use super::{
    BodyKey, KeyRecord, Line, Moved, QueueRecord, Series, Tables, clock::touch, membership::open_queue, waits,
};
use crate::{
    message::{Key, Lot, LotKey, MessageId, Name, Parcel, Piece},
    store::{
        KEY_TTL_MS, LotVerdict, Place, Push, Pushed, ReadBookmark, Refusal, SUBMIT_WINDOW, StoreError, Submit,
        Submitted, wire,
    },
};

pub(super) fn push<T: Tables>(tables: &mut T, now: u64, it: &Push) -> Moved<Pushed> {
    let touched = touch(tables, now, it.session);
    let Some(mut source) = tables.source(&it.source)? else {
        touched?;
        return Err(Refusal::StaleBaton { source_name: it.source.clone() }.into());
    };
    let refusal = match touched {
        Err(StoreError::Refused(stale)) => Some(stale),
        Err(error) => return Err(error),
        Ok(_) if (source.epoch, source.holder) != (it.epoch, Some(it.session)) => {
            Some(Refusal::StaleBaton { source_name: it.source.clone() })
        }
        Ok(_) => None,
    };
    let mut queue = open_queue(tables, &source.queue)?;
    if let Some(refusal) = refusal {
        queue.books.stale_pushes += 1;
        tables.put_queue(&queue)?;
        return Err(refusal.into());
    }
    if it.batch_no <= source.batch_no {
        return Ok(Pushed { firsts: Vec::new(), duplicate: true });
    }
    if it.batch_no != source.batch_no + 1 || it.from != source.cursor {
        return Err(Refusal::Gap { cursor: source.cursor, batch_no: source.batch_no }.into());
    }
    if source.ended {
        return Err(Refusal::Ended { source_name: it.source.clone() }.into());
    }
    let bytes = it.parcels.iter().map(|parcel| parcel.bytes().len() as u64).sum();
    let count = it.parcels.iter().map(|parcel| u64::from(parcel.len())).sum();
    if is_full(&queue, bytes, it.max_backlog) {
        return Err(Refusal::Full { queue: source.queue, bytes: queue.books.bytes }.into());
    }
    if ids_used_up(&queue, count) {
        return Err(Refusal::IdsUsedUp { queue: source.queue }.into());
    }
    let mut firsts = Vec::with_capacity(it.parcels.len());
    for parcel in &it.parcels {
        firsts.push(deposit(tables, now, &mut queue, parcel)?);
    }
    tables.put_queue(&queue)?;
    if count > 0 {
        waits::wake(tables, &queue)?;
    }
    source.cursor.clone_from(&it.to);
    source.batch_no = it.batch_no;
    source.ended = it.end;
    tables.put_source(&it.source, &source)?;
    Ok(Pushed { firsts, duplicate: false })
}

pub(super) fn submit<T: Tables>(tables: &mut T, now: u64, it: &Submit) -> Moved<Submitted> {
    let (_, mut session) = touch(tables, now, it.session)?;
    if it.submit_no != session.submit_no + 1 {
        let answer = tables.answer(it.session, Series::Submit, it.submit_no)?;
        let answer = answer.ok_or(Refusal::OutOfTurn { last: session.submit_no })?;
        return Ok(Submitted { lots: wire::parse_verdicts(&answer)? });
    }
    if let Some(mark) = &it.bookmark {
        let Place { lines, digest } = tables.bookmark(&mark.key)?.unwrap_or(Place::START);
        if (Place { lines, digest }) != mark.from {
            return Err(Refusal::Bookmark { lines, digest }.into());
        }
        for name in it.lots.iter().map(|lot| &lot.queue).collect::<BTreeSet<_>>() {
            let of_queue = it.lots.iter().filter(|lot| lot.queue == *name);
            let bytes = of_queue.map(|lot| lot.parcel.bytes().len() as u64).sum();
            if let Some(queue) = tables.queue(name)?.filter(|queue| is_full(queue, bytes, it.max_backlog)) {
                return Err(Refusal::Full { queue: name.clone(), bytes: queue.books.bytes }.into());
            }
        }
        tables.put_bookmark(&mark.key, &mark.to)?;
    }
    if it.lots.iter().any(|lot| lot.key.is_some()) {
        tables.expire_keys(now, 16)?;
    }
    let (mut full, mut given) = (BTreeSet::new(), BTreeSet::new());
    let mut verdicts = Vec::with_capacity(it.lots.len());
    for lot in &it.lots {
        let mut queue = open_queue(tables, &lot.queue)?;
        if let Some(seen) = seen_before(tables, now, lot)? {
            verdicts.push(seen);
            continue;
        }
        if lot.key.is_some() && tables.key_count()? >= it.max_keys {
            verdicts.push(LotVerdict::KeysFull);
            continue;
        }
        let over = it.bookmark.is_none() && is_full(&queue, lot.parcel.bytes().len() as u64, it.max_backlog);
        if full.contains(&lot.queue) || over || ids_used_up(&queue, u64::from(lot.parcel.len())) {
            full.insert(&lot.queue);
            verdicts.push(LotVerdict::Full);
            continue;
        }
        let first = deposit(tables, now, &mut queue, &lot.parcel)?;
        keep_key(tables, now, &lot.queue, first, lot.key.as_ref())?;
        tables.put_queue(&queue)?;
        given.insert(&lot.queue);
        verdicts.push(LotVerdict::Stored { first });
    }
    for name in given {
        waits::wake_known(tables, name)?;
    }
    session.submit_no = it.submit_no;
    tables.put_session(it.session, &session)?;
    let answer = wire::verdicts(&verdicts);
    tables.put_answer(it.session, Series::Submit, it.submit_no, SUBMIT_WINDOW, &answer)?;
    Ok(Submitted { lots: verdicts })
}

pub(super) fn bookmark<T: Tables>(tables: &mut T, it: &ReadBookmark) -> Moved<Place> {
    Ok(tables.bookmark(&it.key)?.unwrap_or(Place::START))
}

/// Stores a parcel at the end of its queue; its first id.
pub(super) fn deposit<T: Tables>(tables: &mut T, now: u64, queue: &mut QueueRecord, parcel: &Parcel) -> Moved<u64> {
    let books = &mut queue.books;
    let first = books.pushed + 1;
    books.pushed += u64::from(parcel.len());
    books.ready += u64::from(parcel.len());
    books.bytes += parcel.bytes().len() as u64;
    tables.put_bodies(&books.queue, BodyKey::Parcel(first), parcel)?;
    tables.push_back(&books.queue, Line::Ready, &Piece::fresh(first, parcel.len(), now))?;
    Ok(first)
}

/// What a lot's key already stands for, if it was seen: one body in one queue.
pub(super) fn seen_before<T: Tables>(tables: &mut T, now: u64, lot: &Lot) -> Moved<Option<LotVerdict>> {
    let Some(LotKey { key, digest }) = &lot.key else { return Ok(None) };
    let known = live_key(tables, now, key)?;
    Ok(known.map(|known| match (known.digest, &known.queue) == (*digest, &lot.queue) {
        true => LotVerdict::Duplicate { first: known.id },
        false => LotVerdict::Conflict,
    }))
}

fn live_key<T: Tables>(tables: &mut T, now: u64, key: &Key) -> Moved<Option<KeyRecord>> {
    Ok(tables.key(key)?.filter(|record| record.expires_ms > now))
}

/// Remembers that a key stands for the message just stored.
pub(super) fn keep_key<T: Tables>(tables: &mut T, now: u64, queue: &Name, id: u64, key: Option<&LotKey>) -> Moved<()> {
    let Some(LotKey { key, digest }) = key else { return Ok(()) };
    tables.put_key(key, &KeyRecord { queue: queue.clone(), id, digest: *digest, expires_ms: now + KEY_TTL_MS })
}

/// Whether `bytes` more would go over the bound; an empty queue takes one call of any size.
const fn is_full(queue: &QueueRecord, bytes: u64, max_backlog: u64) -> bool {
    queue.books.bytes > 0 && queue.books.bytes + bytes > max_backlog
}

const fn ids_used_up(queue: &QueueRecord, count: u64) -> bool {
    queue.books.pushed + count > MessageId::MAX.0
}
