//! What was computed is kept, if it is still good.

use bytes::Bytes;

use super::{A_CACHED, CachePut, CachePutReply, Computed};
use crate::store::engine::{
    CacheKind, CachedEntry, Effect, Moved, Tables,
    cache::{covering, end_compute_right, keep},
    clock::{reading, visit},
};

impl Effect for CachePut {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<CachePutReply> {
        visit(tables, self.session)?;
        let clock = reading(tables, now)?;
        let compute_right = tables.compute_right(&self.key)?;
        let Some(compute_right) = compute_right.filter(|it| it.session == self.session && it.number == self.number)
        else {
            // A repeat is answered as the first time, as long as what it kept is there.
            let kept = tables.cached(&self.key)?.filter(|it| it.by == (self.session, self.number));
            return Ok(match kept {
                Some(kept) if kept.kind == CacheKind::Pass => CachePutReply::Passed,
                Some(kept) => CachePutReply::Kept { generation: kept.generation },
                None => CachePutReply::Dropped,
            });
        };
        end_compute_right(tables, &self.key)?;
        if compute_right.generation < covering(tables, &self.key)? {
            return Ok(CachePutReply::Dropped);
        }
        let (mut kind, mut value) = match &self.outcome {
            Computed::Value(value) => (CacheKind::Value, value.clone()),
            Computed::Error(error) => (CacheKind::Error, Bytes::from(error.clone())),
            Computed::Pass => (CacheKind::Pass, Bytes::new()),
        };
        if A_CACHED + (self.key.as_str().len() + value.len()) as u64 > self.max_bytes / 8 {
            (kind, value) = (CacheKind::Pass, Bytes::new());
        }
        // Nothing newer covers it: it is as good as one begun now.
        let generation = tables.cache_books()?.generation;
        let by = (self.session, self.number);
        let kept = CachedEntry { kind, generation, by, made: clock, expires: clock + self.ttl_ms, value };
        keep(tables, clock, &self.key, &kept, self.max_bytes)?;
        Ok(if kind == CacheKind::Pass { CachePutReply::Passed } else { CachePutReply::Kept { generation } })
    }
}
