//! The keys `store`, `fleet`, `wait`, `max_keys`, `key_lifetime` and `max_results` of a settings file.

use std::time::Duration;

use super::{
    SettingsError,
    document::{Document, Section},
    quantity,
};
use crate::{message::Name, store::StoreUrl};

/// The keys of a fleet's file that are for those who run its nodes.
const OF_THE_FLEET: [&str; 4] = ["queues", "sources", "gateway", "recipes"];

/// What the file says.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) store: Option<StoreUrl>,
    pub(super) fleet: Option<Name>,
    pub(super) wait: Option<Duration>,
    pub(super) max_keys: Option<u64>,
    pub(super) key_lifetime: Option<Duration>,
    pub(super) max_results: Option<u64>,
}

impl File {
    /// Reads a file that describes a fleet; its queues, sources, gateway and recipes are for those who run nodes.
    pub(super) fn of_fleet(document: &Document) -> Result<Self, SettingsError> {
        let read = document.read(|root| {
            for key in OF_THE_FLEET {
                root.leave(key);
            }
            Self::read(document, root)
        });
        read.map_err(SettingsError::Mistakes)
    }

    /// Reads the user's file.
    pub(super) fn of_user(document: &Document) -> Result<Self, SettingsError> {
        let read = document.read(|root| {
            for key in OF_THE_FLEET {
                if root.has(key) {
                    root.leave(key);
                    root.refuse(key, &format!("the user's file takes no {key}"), "write that in a baton.toml");
                }
            }
            Self::read(document, root)
        });
        read.map_err(SettingsError::Mistakes)
    }

    fn read(document: &Document, root: &mut Section<'_>) -> Self {
        let store = root.value("store", str::parse).map(|store| match store {
            StoreUrl::Sqlite(path) => StoreUrl::Sqlite(document.beside(&path)),
            other => other,
        });
        Self {
            store,
            fleet: root.value("fleet", Name::new),
            wait: root.value("wait", quantity::seconds),
            max_keys: root.number("max_keys", quantity::count),
            key_lifetime: root.value("key_lifetime", quantity::lifetime),
            max_results: root.value("max_results", quantity::bytes),
        }
    }
}
