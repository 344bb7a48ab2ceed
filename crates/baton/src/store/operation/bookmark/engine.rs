//! Where a bookmark stands is read.

use crate::store::{
    Place, ReadBookmark,
    engine::{Effect, Moved, Tables},
};

impl Effect for ReadBookmark {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<Place> {
        Ok(tables.bookmark(&self.key)?.unwrap_or(Place::START))
    }
}
