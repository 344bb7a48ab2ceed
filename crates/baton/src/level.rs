//! How much an event matters. Each kind of event states its level once; `tracing` and the log of the command go by it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How much an event matters.
///
/// | level | for |
/// |---|---|
/// | `Error` | something stands still until a person acts: a source that failed for good |
/// | `Warn` | something was lost, delayed or given up: a message that failed for good, a node that died, a store that is away |
/// | `Info` | the life of a node, and attempts that are repeated |
/// | `Debug` | the routine of a healthy node, such as each stored batch |
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The routine of a healthy node.
    Debug,
    /// The life of a node.
    Info,
    /// Something was lost, delayed or given up.
    Warn,
    /// Something stands still until a person acts.
    Error,
}

impl Level {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Writes an event of `tracing` at a level that is a value: its macros take constants only.
macro_rules! trace_at {
    ($level:expr, $($fields:tt)+) => {
        match $level {
            $crate::Level::Debug => ::tracing::debug!(target: "baton", $($fields)+),
            $crate::Level::Info => ::tracing::info!(target: "baton", $($fields)+),
            $crate::Level::Warn => ::tracing::warn!(target: "baton", $($fields)+),
            $crate::Level::Error => ::tracing::error!(target: "baton", $($fields)+),
        }
    };
}

pub(crate) use trace_at;
