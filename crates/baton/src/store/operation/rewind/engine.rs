//! A source without a live holder starts over, or goes on.

use crate::store::{
    Refusal, Rewind,
    engine::{Effect, Moved, Tables, clock::alive},
};

impl Effect for Rewind {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<()> {
        let Some(mut source) = tables.source(&self.source)? else { return Ok(()) };
        if self.goes_on && !source.ended {
            return Ok(());
        }
        if let Some(holder) = alive(tables, source.holder)? {
            return Err(Refusal::BatonHeld { source_name: self.source.clone(), holder }.into());
        }
        source.holder = None;
        source.ended = false;
        if !self.goes_on {
            source.definition = None;
            source.cursor = String::new();
            source.batch_no = 0;
        }
        tables.put_source(&self.source, &source)
    }
}
