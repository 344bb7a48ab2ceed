//! What was computed is kept, if it is still good.

use bytes::Bytes;

use super::{A_RECALLED, Computed, Remember, Remembered};
use crate::store::engine::{
    Effect, Moved, RecallKind, Recalled, Tables,
    clock::{reading, visit},
    recalls::{covering, end_compute_right, keep},
};

impl Effect for Remember {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<Remembered> {
        visit(tables, self.session)?;
        let clock = reading(tables, now)?;
        let compute_right = tables.compute_right(&self.key)?;
        let Some(compute_right) = compute_right.filter(|it| it.session == self.session && it.number == self.number)
        else {
            // A repeat is answered as the first time, as long as what it kept is there.
            let kept = tables.recalled(&self.key)?.filter(|it| it.by == (self.session, self.number));
            return Ok(match kept {
                Some(kept) if kept.kind == RecallKind::Pass => Remembered::Passed,
                Some(kept) => Remembered::Kept { generation: kept.generation },
                None => Remembered::Dropped,
            });
        };
        end_compute_right(tables, &self.key)?;
        if compute_right.generation < covering(tables, &self.key)? {
            return Ok(Remembered::Dropped);
        }
        let (mut kind, mut value) = match &self.outcome {
            Computed::Value(value) => (RecallKind::Value, value.clone()),
            Computed::Error(error) => (RecallKind::Error, Bytes::from(error.clone())),
            Computed::Pass => (RecallKind::Pass, Bytes::new()),
        };
        if A_RECALLED + (self.key.as_str().len() + value.len()) as u64 > self.max_bytes / 8 {
            (kind, value) = (RecallKind::Pass, Bytes::new());
        }
        // Nothing newer covers it: it is as good as one begun now.
        let generation = tables.recall_books()?.generation;
        let by = (self.session, self.number);
        let kept = Recalled { kind, generation, by, made: clock, expires: clock + self.ttl_ms, value };
        keep(tables, clock, &self.key, &kept, self.max_bytes)?;
        Ok(if kind == RecallKind::Pass { Remembered::Passed } else { Remembered::Kept { generation } })
    }
}
