//! A baton is taken: from now on only its holder may push.

use crate::store::{
    Kind, Refusal, Take, Taken,
    engine::{
        Effect, Moved, Tables,
        clock::{alive, visit},
        waits,
    },
};

impl Effect for Take {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<Taken> {
        let session = visit(tables, self.session)?;
        let source_name = self.source.clone();
        let Some(mut source) = tables.source(&self.source)? else {
            return Err(Refusal::NotOffered { source_name }.into());
        };
        let offer = session.offers.iter().find(|offer| offer.source == self.source && session.kind == Kind::Node);
        let Some(offer) = offer else { return Err(Refusal::NotOffered { source_name }.into()) };
        if !source.defined_as(offer) {
            return Err(Refusal::Definition { source_name }.into());
        }
        if source.ended {
            return Err(Refusal::Ended { source_name }.into());
        }
        match alive(tables, source.holder)? {
            Some(holder) if holder != self.session => return Err(Refusal::BatonHeld { source_name, holder }.into()),
            Some(_) => {}
            None => {
                source.holder = Some(self.session);
                source.queue = offer.queue.clone();
                source.definition = Some(offer.definition);
                source.epoch = now.max(source.epoch + 1);
                source.batch_no = 0;
                tables.put_source(&self.source, &source)?;
                let batons = tables.batons(self.session)?;
                if batons == 0 {
                    waits::count_worker(tables, &session, false)?;
                }
                tables.put_batons(self.session, batons + 1)?;
            }
        }
        Ok(Taken { epoch: source.epoch, cursor: source.cursor, batch_no: source.batch_no })
    }
}
