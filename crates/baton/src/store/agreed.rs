//! What the operations agree on in both of their languages, whichever of them are built.

/// How many entries that expired (keys, results) a call that adds one forgets.
pub(super) const EXPIRED_AT_ONCE: u32 = 16;
/// Why a message that cannot be run any more is an error.
pub(super) const MISSING_BODY: &str = "its body is missing from the store";
/// Why a message that was lost too often is an error, after how often it was.
pub(super) const LOST: &str = "times: each node that ran it died or fell silent";
/// What a claim that is given back costs by itself, in entries.
pub(super) const A_CLAIM: u64 = 2;
/// What a message of a call costs, in spans without one: its record is read and written, and those beside it.
pub(super) const OF_A_CALL: u64 = 8;
/// Within this time, in milliseconds, somebody looks at a queue in any case.
pub(super) const SOON_MS: u64 = 1_000;
/// How many are woken in the stead of a session that is gone: nodes of one machine die together, and a wake-up may go to
/// the next of them.
pub(super) const IN_ITS_STEAD: usize = 16;
