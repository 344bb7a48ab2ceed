//! The work for subset sums that a node does beside its own.

use std::{ffi::OsString, time::Duration};

use baton::{Name, QueuePolicy, settings::quantity};

use super::{
    program::ProgramTask,
    queue_work::{QueueWork, Task},
};
use crate::{command::subset_sum, exit::Failure};

/// The queue of the gateway's subset sums.
pub(crate) const SEARCHES: &str = "subset-sum";
/// Searches at once in one process; each takes all cores.
pub(super) const AT_ONCE: usize = 2;
/// Attempts of a search whose child was lost, after the first; one that is refused is not tried again.
const RETRIES: u32 = 2;

/// Whether there is such work, and how long it may take.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Subset sums of the gateway")]
pub(crate) struct Searches {
    /// Work for the queue of the gateway's subset sums too
    #[arg(long = "searches", hide = true)]
    pub(crate) wanted: bool,
    /// The longest a subset sum of the gateway may take, its reader's pauses included [default: 20m]
    #[arg(long = "search-timeout", value_name = "TIME", value_parser = quantity::time)]
    pub(crate) timeout: Option<Duration>,
    /// The longest its child may print nothing; one that searches prints every second. Another child goes on in its place
    /// [default: 30s]
    #[arg(long = "search-output-timeout", value_name = "TIME", value_parser = quantity::time)]
    output_timeout: Option<Duration>,
}

impl Searches {
    /// Refuses times in which nothing can be done.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let given = [("--search-timeout", self.timeout), ("--search-output-timeout", self.output_timeout)];
        match given.iter().find(|(_, time)| time.is_some_and(|time| time.is_zero())) {
            Some((flag, _)) => Err(Failure::usage(format!("{flag} 0 lets no search end"), "leave it out")),
            None => Ok(()),
        }
    }

    /// The flags that describe it to another process.
    pub(super) fn flags(&self) -> impl Iterator<Item = OsString> {
        let wanted = self.wanted.then(|| "--searches".into());
        let times = [("--search-timeout", self.timeout), ("--search-output-timeout", self.output_timeout)];
        let times = times.into_iter().filter_map(|(flag, time)| Some((flag, time?)));
        let times = times.flat_map(|(flag, time)| [flag.into(), format!("{}ms", time.as_millis()).into()]);
        wanted.into_iter().chain(times)
    }

    /// The work itself.
    pub(super) fn work(&self) -> Result<QueueWork, Failure> {
        let queue = Name::new(SEARCHES).map_err(|error| Failure::usage(error.to_string(), "see `baton --help`"))?;
        let deadline = self.timeout;
        let policy = QueuePolicy { concurrency: AT_ONCE, retries: RETRIES, deadline, ..QueuePolicy::default() };
        let mut program = ProgramTask::searching(subset_sum::program()?);
        program.bounds.silence = self.output_timeout.or(program.bounds.silence);
        Ok(QueueWork { task: Some(Task::Program(program)), policy, queue })
    }
}
