//! Requests about what is cached, drawn from few keys so that they meet.

use baton::{
    SessionId,
    store::{
        CacheGet, CachePut, Computed, Invalidate, Operation as _, ReadInvalidations, Release, Request,
        message::{CacheKey, Prefix, Scope},
    },
};
use bytes::Bytes;

fn key(a: u16) -> CacheKey {
    let top = CacheKey::new(["a", "ab"][usize::from(a % 2)]);
    match a / 2 % 3 {
        0 => top,
        nth => top.part(nth.to_string()),
    }
}

fn scope(a: u16, b: u16) -> Scope {
    match b % 8 {
        0 => Scope::of_prefix(&Prefix::all()),
        1 | 2 => Scope::of_prefix(&Prefix::new(["a", "ab"][usize::from(a % 2)])),
        3 => Scope::of_prefix(&Prefix::new("a").part("1")),
        4 => Scope::of_key(&CacheKey::new(format!("far {a}"))),
        _ => Scope::of_key(&key(a)),
    }
}

/// Somebody recollects, hands in, gives up, forgets or reads what was forgotten.
pub(super) fn cache(session: SessionId, kind: u16, a: u16, b: u16, c: u16) -> Request {
    let (key, number) = (key(a), u64::from(b % 2));
    match kind {
        0..7 => CacheGet { session, key, number, lasts_ms: [300, 5_000][usize::from(c % 2)] }.request(),
        7..13 => {
            let outcome = match c % 6 {
                0 => Computed::Error("failed".to_owned()),
                1 => Computed::Pass,
                _ => Computed::Value(Bytes::from("v".repeat(usize::from(c % 700)))),
            };
            let (ttl_ms, max_bytes) =
                ([0, 100, 2_000, 30_000][usize::from(c % 4)], [1_200, 4_000, 1 << 20][usize::from(b % 3)]);
            CachePut { session, key, number, outcome, ttl_ms, max_bytes }.request()
        }
        13 => Release { session, key, number }.request(),
        14 => Invalidate { scope: scope(a, b), lives_ms: [100, 1_000, 30_000][usize::from(c % 3)] }.request(),
        _ => ReadInvalidations { since: u64::from(b % 12) }.request(),
    }
}
