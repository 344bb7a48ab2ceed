//! A source that nobody holds starts over.

use crate::store::{
    Refusal, Rewind,
    engine::{Effect, Moved, Tables, clock::alive},
};

impl Effect for Rewind {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<()> {
        let Some(mut source) = tables.source(&self.source)? else { return Ok(()) };
        if let Some(holder) = alive(tables, source.holder)? {
            return Err(Refusal::BatonHeld { source_name: self.source.clone(), holder }.into());
        }
        source.holder = None;
        source.definition = None;
        source.cursor = String::new();
        source.batch_no = 0;
        source.ended = false;
        tables.put_source(&self.source, &source)
    }
}
