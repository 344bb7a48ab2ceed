//! The sources a fleet knows: listed, forgotten, started over.

use super::{Admin, AdminError, Overview, SourceState, Unknown};
use crate::{
    Node, NodeError,
    message::Name,
    store::{Refusal, Remove, Rewind, StoreError},
};

impl Admin {
    /// The sources the fleet knows, by name.
    ///
    /// # Errors
    /// The store's failure after the time to wait for it.
    pub async fn sources(&self) -> Result<Vec<SourceState>, StoreError> {
        Ok(Overview::of(&self.survey().await?).sources)
    }

    /// Forgets a source: its place, its end and its definition; the messages it made stay. A node that died without
    /// leaving is waited for until its lease is over.
    ///
    /// # Errors
    /// [`AdminError::Unknown`] if there is none of this name, [`AdminError::Offered`] while a live node offers it.
    pub async fn remove_source(&self, source: &Name) -> Result<(), AdminError> {
        Unknown::source(source, &self.survey().await?).map_or(Ok(()), Err)?;
        loop {
            match self.ask_at_length(Remove { source: source.clone() }).await {
                Err(StoreError::Refused(Refusal::Offered { session, .. })) => {
                    if let Some(by) = self.outlive(session).await? {
                        return Err(AdminError::Offered { source_name: source.clone(), by });
                    }
                }
                removed => return Ok(removed?),
            }
        }
    }

    /// Lets a source that has ended go on at its cursor, as when its file has grown; another one stays as it is. A holder
    /// that does not beat any more is waited for until its lease is over.
    ///
    /// # Errors
    /// [`AdminError::Running`] while a live node holds it.
    pub async fn reopen_source(&self, source: &Name) -> Result<(), AdminError> {
        loop {
            let holder = match self.ask_at_length(Rewind { source: source.clone(), goes_on: true }).await {
                Err(StoreError::Refused(Refusal::BatonHeld { holder, .. })) => holder,
                reopened => return Ok(reopened?),
            };
            if let Some(by) = self.outlive(holder).await? {
                return Err(AdminError::Running { source_name: source.clone(), by });
            }
        }
    }

    /// Starts the sources of a node over. A holder that does not beat any more is waited for until its lease is over.
    ///
    /// # Errors
    /// [`AdminError::Running`] if a live node runs one of them; others may have been started over by then.
    pub async fn rewind(&self, node: &Node) -> Result<(), AdminError> {
        loop {
            let (source_name, holder) = match node.rewind().await {
                Err(NodeError::Store(StoreError::Refused(Refusal::BatonHeld { source_name, holder }))) => {
                    (source_name, holder)
                }
                rewound => return Ok(rewound?),
            };
            if let Some(by) = self.outlive(holder).await? {
                return Err(AdminError::Running { source_name, by });
            }
        }
    }
}
