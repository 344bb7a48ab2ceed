//! A baton is given back.

use crate::store::{
    Resign,
    engine::{Effect, Moved, SourceRecord, Tables, clock::visit, waits},
};

impl Effect for Resign {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<()> {
        let session = visit(tables, self.session)?;
        let held = |source: &SourceRecord| (source.holder, source.epoch) == (Some(self.session), self.epoch);
        if let Some(mut source) = tables.source(&self.source)?.filter(held) {
            source.holder = None;
            tables.put_source(&self.source, &source)?;
            let batons = tables.batons(self.session)?.saturating_sub(1);
            tables.put_batons(self.session, batons)?;
            if batons == 0 {
                waits::count_worker(tables, &session, true)?;
            }
        }
        Ok(())
    }
}
