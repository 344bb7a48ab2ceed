//! A value is found, or somebody is to compute it.

use super::{CacheGet, CacheGetReply, MAX_AWAITING, MAX_COMPUTE_RIGHTS};
use crate::store::engine::{
    CacheKind, ComputeRight, Effect, Moved, Tables,
    cache::covering,
    clock::{reading, visit},
};

impl Effect for CacheGet {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<CacheGetReply> {
        visit(tables, self.session)?;
        let clock = reading(tables, now)?;
        tables.add_cache_user(self.session)?;
        let generation = tables.cache_books()?.generation;
        let covering = covering(tables, &self.key)?;
        if let Some(kept) = tables.cached(&self.key)?
            && kept.expires > clock
            && kept.generation >= covering
        {
            if kept.kind == CacheKind::Pass {
                return Ok(CacheGetReply::Alone { generation });
            }
            let is_error = kept.kind == CacheKind::Error;
            let (age_ms, left_ms) = (clock.saturating_sub(kept.made), kept.expires - clock);
            return Ok(CacheGetReply::Found { value: kept.value, is_error, generation, age_ms, left_ms });
        }
        if let Some(compute_right) = tables.compute_right(&self.key)? {
            if compute_right.session == self.session && compute_right.number == self.number {
                return Ok(CacheGetReply::Lead { generation: compute_right.generation });
            }
            // Who comes after an invalidation does not join what was begun before it, and nobody waits for ever.
            if compute_right.generation >= covering && compute_right.ends > clock {
                if tables.awaiting(&self.key)?.len() as u64 >= MAX_AWAITING {
                    return Ok(CacheGetReply::Alone { generation });
                }
                tables.add_awaiting(&self.key, self.session, self.number)?;
                return Ok(CacheGetReply::Wait { generation });
            }
        }
        if tables.compute_rights_of(self.session)?.len() as u64 >= MAX_COMPUTE_RIGHTS {
            return Ok(CacheGetReply::Alone { generation });
        }
        // Those who wait for a right to compute that is displaced wait for this one.
        let ends = clock.saturating_add(self.lasts_ms);
        tables.put_compute_right(
            &self.key,
            &ComputeRight { session: self.session, number: self.number, generation, ends },
        )?;
        Ok(CacheGetReply::Lead { generation })
    }
}
