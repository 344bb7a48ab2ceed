//! A value is found, or somebody is to compute it.

use super::{MAX_AWAITING, MAX_COMPUTE_RIGHTS, Recollect, Recollected};
use crate::store::engine::{
    ComputeRight, Effect, Moved, RecallKind, Tables,
    clock::{reading, visit},
    recalls::covering,
};

impl Effect for Recollect {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<Recollected> {
        visit(tables, self.session)?;
        let clock = reading(tables, now)?;
        tables.add_recaller(self.session)?;
        let generation = tables.recall_books()?.generation;
        let covering = covering(tables, &self.key)?;
        if let Some(kept) = tables.recalled(&self.key)?
            && kept.expires > clock
            && kept.generation >= covering
        {
            if kept.kind == RecallKind::Pass {
                return Ok(Recollected::Alone { generation });
            }
            let is_error = kept.kind == RecallKind::Error;
            let (age_ms, left_ms) = (clock.saturating_sub(kept.made), kept.expires - clock);
            return Ok(Recollected::Found { value: kept.value, is_error, generation, age_ms, left_ms });
        }
        if let Some(compute_right) = tables.compute_right(&self.key)? {
            if compute_right.session == self.session && compute_right.number == self.number {
                return Ok(Recollected::Lead { generation: compute_right.generation });
            }
            // Who comes after an invalidation does not join what was begun before it, and nobody waits for ever.
            if compute_right.generation >= covering && compute_right.ends > clock {
                if tables.awaiting(&self.key)?.len() as u64 >= MAX_AWAITING {
                    return Ok(Recollected::Alone { generation });
                }
                tables.add_awaiting(&self.key, self.session, self.number)?;
                return Ok(Recollected::Wait { generation });
            }
        }
        if tables.compute_rights_of(self.session)?.len() as u64 >= MAX_COMPUTE_RIGHTS {
            return Ok(Recollected::Alone { generation });
        }
        // Those who wait for a right to compute that is displaced wait for this one.
        let ends = clock.saturating_add(self.lasts_ms);
        tables.put_compute_right(
            &self.key,
            &ComputeRight { session: self.session, number: self.number, generation, ends },
        )?;
        Ok(Recollected::Lead { generation })
    }
}
