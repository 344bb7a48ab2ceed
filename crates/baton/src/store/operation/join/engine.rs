//! A session comes: its record, its queues, its sources.

use std::collections::BTreeSet;

use crate::{
    message::SessionId,
    store::{
        Join, Joined, Offer, Refusal,
        engine::{
            Effect, Moved, SessionRecord, SourceRecord, Tables, clock::advance, offers::offering, queues::open_queue,
            waits,
        },
    },
};

impl Effect for Join {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<Joined> {
        for offer in &self.offers {
            may_define(tables, self.session, offer)?;
        }
        let mut meta = advance(tables, now)?;
        let mut join_no = tables.session(self.session)?.map(|known| known.join_no);
        if join_no.is_none() {
            meta.joins += 1;
            join_no = Some(self.former.unwrap_or(meta.joins));
            tables.put_meta(&meta)?;
            let record = SessionRecord {
                kind: self.kind,
                host: self.host.clone(),
                pid: self.pid,
                queues: self.queues.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect(),
                offers: self.offers.clone(),
                lease_ms: self.lease_ms,
                join_no: join_no.unwrap_or(meta.joins),
                joined_ms: now,
                beat_ms: now,
                report: bytes::Bytes::new(),
                expires: meta.clock + self.lease_ms,
                suspects: 0,
                settle_no: 0,
                submit_no: 0,
                dispose_no: 0,
            };
            tables.put_session(self.session, &record)?;
            for queue in &record.queues {
                open_queue(tables, queue)?;
            }
            waits::count_worker(tables, &record, true)?;
            for offer in &self.offers {
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
    match offering(tables, &offer.source, otherwise)? {
        Some(session) => Err(Refusal::DefinitionInUse { source_name, session }.into()),
        None => Ok(()),
    }
}
