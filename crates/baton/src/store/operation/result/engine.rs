//! A kept result is read.

use bytes::Bytes;

use crate::store::{
    ReadResult,
    engine::{Effect, Moved, Tables},
};

impl Effect for ReadResult {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<Option<Bytes>> {
        Ok(tables.result(&self.queue, self.id)?.filter(|(expires, _)| *expires > now).map(|(_, result)| result))
    }
}
