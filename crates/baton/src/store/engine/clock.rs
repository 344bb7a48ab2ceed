//! The fleet clock, and the leases on it: joins, beats and reaps advance it, beats extend leases.
//!
//! The clock advances by the store time since then, but never by more than half the smallest lease and
//! never backwards. A store that stood still, a fleet that slept and a clock that was set all look like a short
//! pause: nobody is declared dead for them.

use std::time::Duration;

use super::{Meta, Moved, SessionRecord, Tables};
use crate::{message::SessionId, store::Refusal};

/// The session, which is STALE if it is gone. The caller writes the record back if it changes it.
pub(in crate::store) fn visit<T: Tables>(tables: &mut T, id: SessionId) -> Moved<SessionRecord> {
    tables.session(id)?.ok_or_else(|| Refusal::Stale.into())
}

/// What the clock would show if it were advanced now: for calls that only read it.
pub(in crate::store) fn reading<T: Tables>(tables: &mut T, now: u64) -> Moved<u64> {
    let meta = tables.meta()?;
    if now <= meta.last {
        return Ok(meta.clock);
    }
    let cap = tables.smallest_lease()?.unwrap_or(0) / 2;
    Ok(meta.clock + (now - meta.last).min(cap))
}

/// Advances the clock.
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

/// Lets time pass for the leases alone, as [`advance`] would; for a store whose time of day is not the time that beats go by.
pub(in crate::store) fn pass<T: Tables>(tables: &mut T, now: u64, passed: Duration) -> Moved<()> {
    let mut meta = tables.meta()?;
    let cap = tables.smallest_lease()?.unwrap_or(0) / 2;
    meta.clock += u64::try_from(passed.as_millis()).unwrap_or(u64::MAX).min(cap);
    // The same call has nothing to add to it.
    meta.last = now;
    tables.put_meta(&meta)
}

/// The holder named, if its session still exists: a baton or a drain is valid just as long as that.
pub(in crate::store) fn alive<T: Tables>(tables: &mut T, holder: Option<SessionId>) -> Moved<Option<SessionId>> {
    Ok(match holder {
        Some(id) if tables.session(id)?.is_some() => Some(id),
        _ => None,
    })
}
