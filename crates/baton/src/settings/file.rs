//! The settings file: a JSON object with the keys `store`, `fleet`, `wait`, `max_keys`, `key_lifetime` and
//! `max_results`.

use std::{io::ErrorKind, path::Path};

use serde::Deserialize;

use super::SettingsError;

/// What the file says, as text still to be checked.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) store: Option<String>,
    pub(super) fleet: Option<String>,
    pub(super) wait: Option<String>,
    pub(super) max_keys: Option<String>,
    pub(super) key_lifetime: Option<String>,
    pub(super) max_results: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    store: Option<String>,
    fleet: Option<String>,
    wait: Option<Wait>,
    max_keys: Option<serde_json::Number>,
    key_lifetime: Option<String>,
    max_results: Option<Size>,
}

/// Bytes as a number, or a size as text.
#[derive(Deserialize)]
#[serde(untagged, expecting = "max_results takes bytes or a size such as \"1GiB\"")]
enum Size {
    Bytes(serde_json::Number),
    Text(String),
}

/// Seconds as a number, or a duration as text.
#[derive(Deserialize)]
#[serde(untagged, expecting = "wait takes seconds or a duration such as \"2s\"")]
enum Wait {
    Seconds(serde_json::Number),
    Text(String),
}

impl File {
    /// Reads the file; nothing if it is missing and nobody asked for it.
    pub(super) fn read(path: &Path, required: bool) -> Result<Option<Self>, SettingsError> {
        let refuse = |why| SettingsError::File { path: path.to_owned(), why };
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound && !required => return Ok(None),
            Err(error) => return Err(refuse(error.to_string())),
        };
        let keys: Keys = serde_json::from_slice(&text).map_err(|error| refuse(error.to_string()))?;
        let wait = keys.wait.map(|wait| match wait {
            Wait::Seconds(number) => number.to_string(),
            Wait::Text(text) => text,
        });
        let max_keys = keys.max_keys.map(|number| number.to_string());
        let max_results = keys.max_results.map(|size| match size {
            Size::Bytes(number) => number.to_string(),
            Size::Text(text) => text,
        });
        let Keys { store, fleet, key_lifetime, .. } = keys;
        Ok(Some(Self { store, fleet, wait, max_keys, key_lifetime, max_results }))
    }
}
