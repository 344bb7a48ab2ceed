//! Mending the server's log after a restart.
//!
//! A power cut can end the append-only file inside a script's transaction. The server then loads what is whole, which
//! is a consistent prefix, but Redis (and Valkey before its fix of August 2026) leaves the opened transaction in the
//! file. What is written next is appended to it, and at the *next* restart the half of the old transaction would be
//! carried out with the new one: the books would no longer balance. A rewritten log holds no such half. So the first
//! session that joins after a restart asks for one rewrite, in the background; until it is done, a second power cut
//! can do that harm.

use super::RedisState;
use crate::store::StoreError;

/// Has the log rewritten if the server was restarted since a session last joined.
pub(super) async fn mend(shared: &RedisState) -> Result<(), StoreError> {
    let link = shared.link().await?;
    if !shared.connector.has_log() {
        return Ok(());
    }
    let mut reply = shared.run(&shared.scripts.new_run, |command| command.arg(&*link.run_id)).await?;
    if (reply.text()?.as_str(), reply.parsed::<u8>()?) == ("OK", 1) {
        // Refused while one is under way, or to a user without the right: then there is nothing to be done here.
        shared.command::<redis::Value>(&redis::cmd("BGREWRITEAOF")).await.ok();
    }
    Ok(())
}
