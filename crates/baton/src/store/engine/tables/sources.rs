//! Sources: whose baton, which epoch, where the cursor stands.

use super::Moved;
use crate::{
    message::{Digest, Name, SessionId},
    store::Offer,
};

/// A source as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceRecord {
    pub(crate) queue: Name,
    /// Nothing after a rewind: the next join defines it.
    pub(crate) definition: Option<Digest>,
    /// May name a session that is gone: then nobody holds it.
    pub(crate) holder: Option<SessionId>,
    pub(crate) epoch: u64,
    pub(crate) cursor: String,
    pub(crate) batch_no: u64,
    pub(crate) ended: bool,
}

impl SourceRecord {
    /// Whether an offer means this source; a rewound one takes any definition.
    pub(crate) fn defined_as(&self, offer: &Offer) -> bool {
        self.definition.is_none_or(|known| known == offer.definition && self.queue == offer.queue)
    }
}

/// The sources by their names.
pub(crate) trait Sources {
    fn source(&mut self, name: &Name) -> Moved<Option<SourceRecord>>;
    fn put_source(&mut self, name: &Name, record: &SourceRecord) -> Moved<()>;
    /// Forgets a source; one that is not known is left alone.
    fn drop_source(&mut self, name: &Name) -> Moved<()>;
    /// All sources by name.
    fn sources(&mut self) -> Moved<Vec<(Name, SourceRecord)>>;
}
