//! Joining, beating, leaving, being reaped, and orders to all.

use std::collections::BTreeSet;

use super::{
    Moved, QueueRecord, SessionRecord, SourceRecord, Tables, baton,
    clock::{advance, touch},
    returns::{self, Returned, Why},
    waits,
};
use crate::{
    message::{Name, SessionId},
    store::{Beat, Beaten, Books, Join, Joined, Kind, Leave, MAX_TOLD_CLAIMS, Offer, Order, Reap, Reaped, Refusal},
};

pub(super) fn join<T: Tables>(tables: &mut T, now: u64, it: &Join) -> Moved<Joined> {
    for offer in &it.offers {
        may_define(tables, it.session, offer)?;
    }
    let mut meta = advance(tables, now)?;
    let mut join_no = tables.session(it.session)?.map(|known| known.join_no);
    if join_no.is_none() {
        meta.joins += 1;
        join_no = Some(it.former.unwrap_or(meta.joins));
        tables.put_meta(&meta)?;
        let record = SessionRecord {
            kind: it.kind,
            host: it.host.clone(),
            pid: it.pid,
            queues: it.queues.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect(),
            offers: it.offers.clone(),
            lease_ms: it.lease_ms,
            join_no: join_no.unwrap_or(meta.joins),
            joined_ms: now,
            beat_ms: now,
            report: bytes::Bytes::new(),
            expires: meta.clock + it.lease_ms,
            suspects: 0,
            settle_no: 0,
            submit_no: 0,
            dispose_no: 0,
        };
        tables.put_session(it.session, &record)?;
        for queue in &record.queues {
            open_queue(tables, queue)?;
        }
        waits::count_worker(tables, &record, true)?;
        for offer in &it.offers {
            open_queue(tables, &offer.queue)?;
            let mut source = tables.source(&offer.source)?.unwrap_or_else(|| SourceRecord {
                queue: offer.queue.clone(),
                definition: None,
                holder: None,
                epoch: 0,
                cursor: String::new(),
                batch_no: 0,
                ended: false,
            });
            source.queue = offer.queue.clone();
            source.definition = Some(offer.definition);
            tables.put_source(&offer.source, &source)?;
        }
    }
    Ok(Joined { incarnation: meta.incarnation, now_ms: now, join_no: join_no.unwrap_or(meta.joins) })
}

/// Refuses an offer that means another source than the one known under its name: its cursor would mean something else.
/// One that adopts takes the source over as it stands, once no other session offers it otherwise.
fn may_define<T: Tables>(tables: &mut T, joining: SessionId, offer: &Offer) -> Moved<()> {
    if tables.source(&offer.source)?.is_none_or(|source| source.defined_as(offer)) {
        return Ok(());
    }
    let source_name = offer.source.clone();
    if !offer.adopts {
        return Err(Refusal::Definition { source_name }.into());
    }
    let otherwise =
        |id, other: &Offer| id != joining && (&other.queue, other.definition) != (&offer.queue, offer.definition);
    match baton::offering(tables, &offer.source, otherwise)? {
        Some(session) => Err(Refusal::DefinitionInUse { source_name, session }.into()),
        None => Ok(()),
    }
}

/// The record of a queue, made if this is the first time it is named.
pub(super) fn open_queue<T: Tables>(tables: &mut T, name: &Name) -> Moved<QueueRecord> {
    if let Some(record) = tables.queue(name)? {
        return Ok(record);
    }
    let record = QueueRecord { books: Books::new(name.clone()), drainer: None };
    tables.put_queue(&record)?;
    Ok(record)
}

pub(super) fn beat<T: Tables>(tables: &mut T, now: u64, it: &Beat) -> Moved<Beaten> {
    let (meta, mut session) = touch(tables, now, it.session)?;
    session.beat_ms = now;
    session.report = it.report.clone();
    tables.put_session(it.session, &session)?;
    let (mut due, mut held) = (Vec::new(), Vec::new());
    for (name, source) in tables.sources()? {
        if source.holder == Some(it.session) {
            held.push((name, source.epoch));
        } else if !source.ended
            && session.kind == Kind::Node
            && session.offers.iter().any(|offer| offer.source == name && source.defined_as(offer))
            && alive(tables, source.holder)?.is_none()
        {
            due.push(name);
        }
    }
    let stop = meta.stop.filter(|(upto, _)| session.join_no <= *upto).map(|(_, stop)| stop);
    let expired = tables.expired(meta.clock, 16)?;
    let claims = tables.held_numbers(it.session, MAX_TOLD_CLAIMS)?;
    let mut helped = Vec::new();
    for name in &it.asks {
        if waits::is_helped(tables, now, name)? {
            helped.push(name.clone());
        }
    }
    Ok(Beaten { now_ms: now, due, held, expired, claims, helped, stop })
}

/// The holder named, if its session still exists: a baton or a drain is valid just as long as that.
pub(super) fn alive<T: Tables>(tables: &mut T, holder: Option<SessionId>) -> Moved<Option<SessionId>> {
    Ok(match holder {
        Some(id) if tables.session(id)?.is_some() => Some(id),
        _ => None,
    })
}

pub(super) fn leave<T: Tables>(tables: &mut T, now: u64, it: &Leave) -> Moved<()> {
    match touch(tables, now, it.session) {
        Ok((_, session)) => {
            let given = returns::all(tables, now, it.session, &session, Why::Left)?.queues;
            waits::gone(tables, it.session, &session, given)?;
            tables.drop_session(it.session)
        }
        Err(crate::store::StoreError::Refused(Refusal::Stale)) => Ok(()),
        Err(error) => Err(error),
    }
}

pub(super) fn reap<T: Tables>(tables: &mut T, now: u64, it: &Reap) -> Moved<Reaped> {
    let (meta, _) = touch(tables, now, it.session)?;
    let Some(target) = tables.session(it.target)? else { return Ok(Reaped::Gone) };
    if target.expires > meta.clock {
        return Ok(Reaped::Alive);
    }
    let Returned { back, dead, queues } = returns::all(tables, now, it.target, &target, Why::Lost)?;
    waits::gone(tables, it.target, &target, queues)?;
    tables.drop_session(it.target)?;
    Ok(Reaped::Taken { back, dead })
}

pub(super) fn order<T: Tables>(tables: &mut T, it: &Order) -> Moved<()> {
    match it {
        Order::Pause(name) | Order::Resume(name) => {
            let mut queue = open_queue(tables, name)?;
            queue.books.paused = matches!(it, Order::Pause(_));
            tables.put_queue(&queue)?;
            waits::wake(tables, &queue)
        }
        Order::Stop(stop, upto) => {
            let mut meta = tables.meta()?;
            meta.stop = Some((upto.unwrap_or(meta.joins), *stop));
            tables.put_meta(&meta)
        }
    }
}
