//! A source that nobody offers is forgotten.

use crate::store::{
    Refusal, Remove,
    engine::{Effect, Moved, Tables, offers::offering},
};

impl Effect for Remove {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<()> {
        match offering(tables, &self.source, |_, _| true)? {
            Some(session) => Err(Refusal::Offered { source_name: self.source.clone(), session }.into()),
            None => tables.drop_source(&self.source),
        }
    }
}
