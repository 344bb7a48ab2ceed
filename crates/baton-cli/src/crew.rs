//! The crew of `up`: worker processes of this program, each a `node` on a leash.

use std::{ffi::OsString, sync::Arc, time::Duration};

use baton::operate::{self, CrewEvent};

use crate::{
    exit::Failure,
    member::{Log, Work},
    settings::{CONFIG, Settings},
};

/// How long, over its lease, a worker that must stop at once may take.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// A crew for this work, on the store in force.
pub(crate) fn crew(settings: &Settings, work: &Work, log: &Arc<Log>) -> Result<operate::Crew, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find this program: {error}"), "add --workers 0"))?;
    let flags = ["node", "--role", "worker", "--leashed"].map(OsString::from);
    let log = log.clone();
    Ok(operate::Crew {
        program,
        arguments: flags.into_iter().chain(work.flags()).collect(),
        variables: settings.variables(),
        without: vec![CONFIG],
        last_words: work.lease + LAST_WORDS,
        hear: Arc::new(move |event| match event {
            CrewEvent::Line(_) => log.raw(&event.to_string()),
            _ => log.line(&event.to_string()),
        }),
    })
}
