//! Why there are no figures.

use baton::{
    admin::AdminError,
    store::{InvalidUrl, StoreUrl},
};

/// Why there are no figures, and what to do about it.
#[derive(Debug)]
pub enum Failure {
    /// It did not work.
    Failed {
        /// Why.
        cause: String,
        /// What to do about it.
        next: String,
    },
    /// What was asked for cannot be measured.
    Usage {
        /// Why.
        cause: String,
        /// What to do about it.
        next: String,
    },
    /// A message was lost or done twice.
    Unbalanced(String),
    /// The store's.
    Store {
        /// What it said.
        error: Box<AdminError>,
        /// Which one.
        url: Box<StoreUrl>,
    },
}

impl Failure {
    pub(crate) fn new(cause: impl Into<String>, next: impl Into<String>) -> Self {
        Self::Failed { cause: cause.into(), next: next.into() }
    }

    pub(crate) fn usage(cause: impl Into<String>, next: impl Into<String>) -> Self {
        Self::Usage { cause: cause.into(), next: next.into() }
    }
}

impl From<InvalidUrl> for Failure {
    fn from(error: InvalidUrl) -> Self {
        Self::new(error.to_string(), "report this")
    }
}
