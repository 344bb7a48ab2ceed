//! A module that takes its time to start, to watch what becomes of those who come earlier: they wait, and are answered.

use std::{
    convert::Infallible,
    time::{Duration, SystemTime},
};

use baton::deferred::{Bounds, Deferred};

/// Says the time, once it has started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Speaker(());

impl Speaker {
    /// One that takes so long to start. Who comes meanwhile waits as for a store, and for that time too.
    pub(crate) fn start(takes: Duration, bounds: Bounds) -> Deferred<Self, Infallible> {
        let bounds = Bounds { patience: bounds.patience.saturating_add(takes), ..bounds };
        Deferred::spawn(bounds, async move {
            tokio::time::sleep(takes).await;
            Ok(Self(()))
        })
    }

    /// The text that it says.
    pub(crate) fn something(self) -> String {
        format!("Current time is: {}", httpdate::fmt_http_date(SystemTime::now()))
    }
}
