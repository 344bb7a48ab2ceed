//! The fleet's own record.

use super::MemoryTables;
use crate::store::engine::{Fleet, Meta, Moved};

impl Fleet for MemoryTables {
    fn meta(&mut self) -> Moved<Meta> {
        Ok(self.meta.get_or_insert_with(Meta::new).clone())
    }

    fn put_meta(&mut self, meta: &Meta) -> Moved<()> {
        self.meta = Some(meta.clone());
        Ok(())
    }

    fn clear(&mut self) -> Moved<()> {
        *self = Self::default();
        Ok(())
    }
}
