//! The baton of a source: who may push, from when on, and from where.

use super::{Moved, SourceRecord, Tables, clock::touch, membership::alive, waits};
use crate::{
    message::{Name, SessionId},
    store::{Kind, Offer, Refusal, Remove, Resign, Rewind, Take, Taken},
};

pub(super) fn take<T: Tables>(tables: &mut T, now: u64, it: &Take) -> Moved<Taken> {
    let (_, session) = touch(tables, now, it.session)?;
    let source_name = it.source.clone();
    let Some(mut source) = tables.source(&it.source)? else { return Err(Refusal::NotOffered { source_name }.into()) };
    let offer = session.offers.iter().find(|offer| offer.source == it.source && session.kind == Kind::Node);
    let Some(offer) = offer else { return Err(Refusal::NotOffered { source_name }.into()) };
    if !source.defined_as(offer) {
        return Err(Refusal::Definition { source_name }.into());
    }
    if source.ended {
        return Err(Refusal::Ended { source_name }.into());
    }
    match alive(tables, source.holder)? {
        Some(holder) if holder != it.session => return Err(Refusal::BatonHeld { source_name, holder }.into()),
        Some(_) => {}
        None => {
            source.holder = Some(it.session);
            source.queue = offer.queue.clone();
            source.definition = Some(offer.definition);
            source.epoch = now.max(source.epoch + 1);
            source.batch_no = 0;
            tables.put_source(&it.source, &source)?;
            let batons = tables.batons(it.session)?;
            if batons == 0 {
                waits::count_worker(tables, &session, false)?;
            }
            tables.put_batons(it.session, batons + 1)?;
        }
    }
    Ok(Taken { epoch: source.epoch, cursor: source.cursor, batch_no: source.batch_no })
}

pub(super) fn resign<T: Tables>(tables: &mut T, now: u64, it: &Resign) -> Moved<()> {
    let (_, session) = touch(tables, now, it.session)?;
    let held = |source: &SourceRecord| (source.holder, source.epoch) == (Some(it.session), it.epoch);
    if let Some(mut source) = tables.source(&it.source)?.filter(held) {
        source.holder = None;
        tables.put_source(&it.source, &source)?;
        let batons = tables.batons(it.session)?.saturating_sub(1);
        tables.put_batons(it.session, batons)?;
        if batons == 0 {
            waits::count_worker(tables, &session, true)?;
        }
    }
    Ok(())
}

pub(super) fn rewind<T: Tables>(tables: &mut T, it: &Rewind) -> Moved<()> {
    let Some(mut source) = tables.source(&it.source)? else { return Ok(()) };
    if let Some(holder) = alive(tables, source.holder)? {
        return Err(Refusal::BatonHeld { source_name: it.source.clone(), holder }.into());
    }
    source.holder = None;
    source.definition = None;
    source.cursor = String::new();
    source.batch_no = 0;
    source.ended = false;
    tables.put_source(&it.source, &source)
}

pub(super) fn remove<T: Tables>(tables: &mut T, it: &Remove) -> Moved<()> {
    match offering(tables, &it.source, |_, _| true)? {
        Some(session) => Err(Refusal::Offered { source_name: it.source.clone(), session }.into()),
        None => tables.drop_source(&it.source),
    }
}

/// The first session by id that offers this source as `like` wants it.
pub(super) fn offering<T: Tables>(
    tables: &mut T, source: &Name, like: impl Fn(SessionId, &Offer) -> bool,
) -> Moved<Option<SessionId>> {
    let sessions = tables.sessions()?.into_iter();
    let mut offering =
        sessions.filter(|(id, session)| session.offers.iter().any(|offer| offer.source == *source && like(*id, offer)));
    Ok(offering.next().map(|(id, _)| id))
}
