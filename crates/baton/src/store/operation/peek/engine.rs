//! A page of errors is read.

use crate::store::{
    Page, Peek,
    engine::{Effect, Moved, Tables},
};

impl Effect for Peek {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<Page> {
        Ok(Page { errors: tables.error_page(&self.queue, self.after, self.upto, self.limit, self.max_bytes)? })
    }
}
