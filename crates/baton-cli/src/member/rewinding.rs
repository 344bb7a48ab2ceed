//! Starting a source over, also right after its holder was killed.

use baton::{
    Node, NodeError,
    store::{Refusal, StoreError},
};

use crate::{connection::Connection, exit::Failure, leftover};

/// Starts the node's sources over. A holder that does not beat any more is waited for until its lease is over.
pub(super) async fn rewind(connection: &Connection, node: &Node) -> Result<(), Failure> {
    loop {
        let (source, holder) = match node.rewind().await {
            Ok(()) => return Ok(()),
            Err(NodeError::Store(StoreError::Refused(Refusal::BatonHeld { source_name, holder }))) => {
                (source_name, holder)
            }
            Err(NodeError::Store(error)) => return Err(connection.failure(&error)),
            Err(other) => return Err(Failure::usage(other.to_string(), "see `baton node --help`")),
        };
        if let Some(node) = leftover::outlive(connection, holder).await? {
            return Err(Failure::new(format!("{node} is running source {source}"), "stop it, then rewind"));
        }
    }
}
