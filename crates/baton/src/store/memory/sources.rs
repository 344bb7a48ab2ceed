//! Sources by their names.

use super::MemoryTables;
use crate::{
    message::Name,
    store::engine::{Moved, SourceRecord, Sources},
};

impl Sources for MemoryTables {
    fn source(&mut self, name: &Name) -> Moved<Option<SourceRecord>> {
        Ok(self.sources.get(name).cloned())
    }

    fn put_source(&mut self, name: &Name, record: &SourceRecord) -> Moved<()> {
        self.sources.insert(name.clone(), record.clone());
        Ok(())
    }

    fn drop_source(&mut self, name: &Name) -> Moved<()> {
        self.sources.remove(name);
        Ok(())
    }

    fn sources(&mut self) -> Moved<Vec<(Name, SourceRecord)>> {
        Ok(self.sources.iter().map(|(name, record)| (name.clone(), record.clone())).collect())
    }
}
