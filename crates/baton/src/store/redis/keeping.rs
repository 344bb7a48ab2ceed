//! Whether the server keeps what it holds: one that has neither an append-only file nor save points begins empty after
//! a restart, and the books of an empty store balance. Nodes warn when they join, once a run of the server, and when its log
//! is switched off under them.

use super::RedisState;
use crate::store::{StoreEvent, event::tell};

/// Tells that the server keeps nothing on disk, if that is known.
pub(super) async fn warn(shared: &RedisState) {
    let Ok(link) = shared.link().await else { return };
    if shared.connector.has_log() || !shared.connector.is_first_look(&link.run_id) {
        return;
    }
    // Refused to a user without the right, and by servers that somebody else runs: then it cannot be known.
    let asked = shared.command::<Vec<String>>(redis::cmd("CONFIG").arg("GET").arg("save")).await;
    if asked.is_ok_and(|setting| setting.get(1).is_some_and(String::is_empty)) {
        let server = shared.connector.server().to_owned();
        tell(shared.connector.ear().as_ref(), &StoreEvent::KeepsNothing { server });
    }
}
