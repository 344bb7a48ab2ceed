//! A session goes in good order.

use crate::store::{
    Leave, Refusal, StoreError,
    engine::{
        Effect, Moved, Tables,
        clock::visit,
        returns::{end, go_on},
    },
};

impl Effect for Leave {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<()> {
        if let Some(unreaped) = tables.unreaped(self.session)? {
            return go_on(tables, now, self.session, &unreaped).map(drop);
        }
        match visit(tables, self.session) {
            Ok(session) => {
                let most = tables.returned_at_once();
                end(tables, now, self.session, &session, false, most).map(drop)
            }
            Err(StoreError::Refused(Refusal::Stale)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
