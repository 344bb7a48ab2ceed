//! Everything goes, unless a node is there.

use super::Removed;
use crate::store::{
    Destroy, Kind, Refusal,
    engine::{Effect, Moved, Tables},
};

impl Effect for Destroy {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<Option<Removed>> {
        let nodes = tables.sessions()?.iter().filter(|(_, record)| record.kind == Kind::Node).count() as u64;
        if nodes > 0 {
            return Err(Refusal::NodesAlive { nodes }.into());
        }
        let meta = tables.meta()?;
        let queues = tables.queues()?;
        let cache = tables.cache_books()?.generation > 0;
        let was_there = meta.joins > 0 || meta.stop.is_some() || !queues.is_empty() || cache;
        tables.clear()?;
        Ok(was_there.then(|| Removed::from_books(queues.iter().map(|queue| &queue.books))))
    }
}
