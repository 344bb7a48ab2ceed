//! What is cached: which generation covers a key, values within their bound, and the ends of rights to compute.

use super::{CachedEntry, Moved, Tables};
use crate::{
    message::{CacheKey, SessionId},
    store::{
        agreed::EXPIRED_AT_ONCE,
        operation::{A_CACHED, MAX_NOTIFIED_INVALIDATIONS},
        wake_up::WakeUp,
    },
};

/// Wakes a session that uses the cache, to look at all it waits for and at invalidations.
const LOOK: WakeUp = WakeUp::Follow(0);

/// What a value counts for.
pub(in crate::store) fn weight(key: &CacheKey, bytes: u64) -> u64 {
    A_CACHED + key.as_str().len() as u64 + bytes
}

/// The newest generation in which something was forgotten that covers the key.
pub(in crate::store) fn covering<T: Tables>(tables: &mut T, key: &CacheKey) -> Moved<u64> {
    let books = tables.cache_books()?;
    let mut newest = books.floor;
    if books.scopes > 0 {
        for scope in key.scopes() {
            newest = newest.max(tables.invalidated_at(&scope)?.unwrap_or(0));
        }
    }
    Ok(newest)
}

/// Keeps a value in the place of the one before; the oldest make room.
pub(in crate::store) fn keep<T: Tables>(
    tables: &mut T, clock: u64, key: &CacheKey, kept: &CachedEntry, max_bytes: u64,
) -> Moved<()> {
    for (expires, name) in tables.oldest_cached(EXPIRED_AT_ONCE)? {
        if expires <= clock {
            forget(tables, &name)?;
        }
    }
    forget(tables, key)?;
    let weight = weight(key, kept.value.len() as u64);
    let over = (tables.cache_books()?.bytes + weight).saturating_sub(max_bytes);
    if over > 0 {
        // Each makes room for some of it; a few more where the bound was larger before.
        let most = u32::try_from(weight.div_ceil(A_CACHED)).unwrap_or(u32::MAX).saturating_add(EXPIRED_AT_ONCE);
        let mut gone = 0;
        for (_, name) in tables.oldest_cached(most)? {
            if gone >= over {
                break;
            }
            gone += forget(tables, &name)?;
        }
    }
    tables.put_cached(key, kept)?;
    let mut books = tables.cache_books()?;
    books.bytes += weight;
    tables.put_cache_books(&books)
}

/// Forgets the value of a key; what it counted for.
fn forget<T: Tables>(tables: &mut T, key: &CacheKey) -> Moved<u64> {
    let Some(bytes) = tables.drop_cached(key)? else { return Ok(0) };
    let weight = weight(key, bytes);
    let mut books = tables.cache_books()?;
    books.bytes = books.bytes.saturating_sub(weight);
    tables.put_cache_books(&books)?;
    Ok(weight)
}

/// A right to compute is over: those who wait for it are woken.
pub(in crate::store) fn end_compute_right<T: Tables>(tables: &mut T, key: &CacheKey) -> Moved<()> {
    tables.drop_compute_right(key)?;
    for (session, number) in tables.awaiting(key)? {
        if tables.session(session)?.is_some() {
            tables.wake(session, &WakeUp::Follow(number))?;
        }
    }
    tables.drop_awaiting(key)
}

/// Wakes those who cache, to look at what they wait for and what was forgotten.
pub(in crate::store) fn tell<T: Tables>(tables: &mut T, most: u64) -> Moved<()> {
    for session in tables.cache_users(most)? {
        tables.wake(session, &LOOK)?;
    }
    Ok(())
}

/// A session is over, and with it its rights to compute: whoever waits for one contends for it.
pub(in crate::store) fn gone<T: Tables>(tables: &mut T, id: SessionId) -> Moved<()> {
    if !tables.drop_cache_user(id)? {
        return Ok(());
    }
    let compute_rights = tables.compute_rights_of(id)?;
    for key in &compute_rights {
        tables.drop_compute_right(key)?;
        tables.drop_awaiting(key)?;
    }
    if compute_rights.is_empty() { Ok(()) } else { tell(tables, MAX_NOTIFIED_INVALIDATIONS) }
}
