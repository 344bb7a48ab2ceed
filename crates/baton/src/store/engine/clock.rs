//! The fleet clock, and the touch that every call with a session begins with.
//!
//! The clock advances by the store time since the last call, but never by more than half the smallest lease and
//! never backwards. A store that stood still, a fleet that slept and a clock that was set all look like a short
//! pause: nobody is declared dead for them.

use super::{Meta, Moved, SessionRecord, Tables};
use crate::{message::SessionId, store::Refusal};

/// Advances the clock and extends the session's lease; a session that is gone is STALE and changes nothing.
/// The caller writes the record back when it is done with it.
pub(in crate::store) fn touch<T: Tables>(tables: &mut T, now: u64, id: SessionId) -> Moved<(Meta, SessionRecord)> {
    let Some(mut session) = tables.session(id)? else { return Err(Refusal::Stale.into()) };
    let meta = advance(tables, now)?;
    session.expires = meta.clock + session.lease_ms;
    tables.put_session(id, &session)?;
    Ok((meta, session))
}

/// Advances the clock alone; for a join, which has no session yet.
pub(in crate::store) fn advance<T: Tables>(tables: &mut T, now: u64) -> Moved<Meta> {
    let mut meta = tables.meta()?;
    if now != meta.last {
        let cap = tables.smallest_lease()?.unwrap_or(0) / 2;
        meta.clock += now.saturating_sub(meta.last).min(cap);
        meta.last = now;
        tables.put_meta(&meta)?;
    }
    Ok(meta)
}

/// The holder named, if its session still exists: a baton or a drain is valid just as long as that.
pub(in crate::store) fn alive<T: Tables>(tables: &mut T, holder: Option<SessionId>) -> Moved<Option<SessionId>> {
    Ok(match holder {
        Some(id) if tables.session(id)?.is_some() => Some(id),
        _ => None,
    })
}
