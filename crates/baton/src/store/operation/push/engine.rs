//! A batch of a source comes in, and its cursor moves in the same step.

use crate::store::{
    Push, Pushed, Refusal, StoreError,
    engine::{
        Effect, Moved, Tables,
        clock::visit,
        intake::{deposit, ids_used_up, is_full},
        queues::{self, open_queue},
    },
};

impl Effect for Push {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<Pushed> {
        let session = visit(tables, self.session);
        let Some(mut source) = tables.source(&self.source)? else {
            session?;
            return Err(Refusal::StaleBaton { source_name: self.source.clone() }.into());
        };
        let refusal = match session {
            Err(StoreError::Refused(stale)) => Some(stale),
            Err(error) => return Err(error),
            Ok(_) if (source.epoch, source.holder) != (self.epoch, Some(self.session)) => {
                Some(Refusal::StaleBaton { source_name: self.source.clone() })
            }
            Ok(_) => None,
        };
        let mut queue = open_queue(tables, &source.queue)?;
        if let Some(refusal) = refusal {
            queue.books.stale_pushes += 1;
            tables.put_queue(&queue)?;
            return Err(refusal.into());
        }
        if self.batch_no <= source.batch_no {
            return Ok(Pushed { firsts: Vec::new(), duplicate: true });
        }
        if self.batch_no != source.batch_no + 1 || self.from != source.cursor {
            return Err(Refusal::Gap { cursor: source.cursor, batch_no: source.batch_no }.into());
        }
        if source.ended {
            return Err(Refusal::Ended { source_name: self.source.clone() }.into());
        }
        let bytes = self.parcels.iter().map(|parcel| parcel.bytes().len() as u64).sum();
        let count = self.parcels.iter().map(|parcel| u64::from(parcel.len())).sum();
        if is_full(&queue, bytes, self.max_queue_bytes) {
            return Err(Refusal::Full { queue: source.queue, bytes: queue.books.bytes }.into());
        }
        if ids_used_up(&queue, count) {
            return Err(Refusal::IdsUsedUp { queue: source.queue }.into());
        }
        let mut firsts = Vec::with_capacity(self.parcels.len());
        for parcel in &self.parcels {
            firsts.push(deposit(tables, now, &mut queue, parcel, None)?);
        }
        queues::close(tables, &mut queue)?;
        source.cursor.clone_from(&self.to);
        source.batch_no = self.batch_no;
        source.ended = self.end;
        tables.put_source(&self.source, &source)?;
        Ok(Pushed { firsts, duplicate: false })
    }
}
