//! A session was lost.

use crate::store::{
    Kind, Lost, Reap, Reaped,
    engine::{
        Effect, Moved, Tables,
        clock::{advance, visit},
        errors::node_name,
        returns::{end, go_on},
    },
};

impl Effect for Reap {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<Reaped> {
        visit(tables, self.session)?;
        let meta = advance(tables, now)?;
        if let Some(unreaped) = tables.unreaped(self.target)? {
            let returned = go_on(tables, now, self.target, &unreaped)?;
            // Only nodes hold anything.
            let (kind, node) = (Kind::Node, unreaped.node);
            return Ok(Reaped::Taken(Lost {
                kind,
                node,
                silent_ms: None,
                back: returned.back,
                failed: returned.failed,
            }));
        }
        let Some(target) = tables.session(self.target)? else { return Ok(Reaped::Gone) };
        if target.expires > meta.clock {
            return Ok(Reaped::Alive);
        }
        let most = tables.returned_at_once();
        let silent_ms = Some((meta.clock + target.lease_ms).saturating_sub(target.expires));
        let (kind, node) = (target.kind, node_name(&target));
        let returned = end(tables, now, self.target, &target, true, most)?;
        Ok(Reaped::Taken(Lost { kind, node, silent_ms, back: returned.back, failed: returned.failed }))
    }
}
