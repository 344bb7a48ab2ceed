//! The supervisor of `up`: its worker processes are this program, each a `node` on a leash.

use std::{ffi::OsString, sync::Arc, time::Duration};

use baton::operate::{self, SupervisorEvent};

use crate::{
    exit::Failure,
    node::{Log, Work},
    settings::{CONFIG, Settings},
};

/// How long, over its lease, a worker that must stop at once may take.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// A supervisor for this work, on the store in force.
pub(crate) fn supervisor(settings: &Settings, work: &Work, log: &Arc<Log>) -> Result<operate::Supervisor, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find this program: {error}"), "add --workers 0"))?;
    let flags = ["node", "--role", "worker", "--leashed"].map(OsString::from);
    let log = log.clone();
    Ok(operate::Supervisor {
        program,
        arguments: flags.into_iter().chain(work.flags()).collect(),
        variables: settings.variables(),
        without: vec![CONFIG],
        last_words: work.lease + LAST_WORDS,
        hear: Arc::new(move |event| match event {
            SupervisorEvent::Line(_) => log.raw(&event.to_string()),
            _ => log.line(&event.to_string()),
        }),
    })
}
