//! The recipes: finished answers to common questions, which a fleet has on request. A node works for the queue of their
//! subset sums; the gateway of `up` has their routes.

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

/// Whether they are wanted, and how long a search may take.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Recipes")]
pub(crate) struct Recipes {
    /// Add the recipes: the routes /subsetSum, /totalSales, /sales and /say, and work for the queue `subset-sum`;
    /// `recipes = true` in a baton.toml does the same
    #[arg(id = "recipes", long = "recipes")]
    pub(crate) wanted: bool,
    /// The longest a subset sum of the gateway may take, its reader's pauses included; needs --recipes or --demo
    /// [default: 20m]
    #[arg(long, value_name = "TIME", value_parser = quantity::time)]
    pub(crate) search_timeout: Option<Duration>,
    /// The longest its child may print nothing; one that searches prints every second. Another child goes on in its place.
    /// Needs --recipes or --demo [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = quantity::time)]
    search_output_timeout: Option<Duration>,
}

/// Refuses a flag that is about the recipes where they are not wanted.
pub(crate) fn only_with_recipes(flag: &str) -> Failure {
    Failure::usage(format!("{flag} is about the recipes, which this fleet does not have"), "add --recipes or --demo")
}

impl Recipes {
    fn times(&self) -> [(&'static str, Option<Duration>); 2] {
        [("--search-timeout", self.search_timeout), ("--search-output-timeout", self.search_output_timeout)]
    }

    /// Refuses times in which nothing can be done, or that are about nothing.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let given = || self.times().into_iter().filter_map(|(flag, time)| Some((flag, time?)));
        if let Some((flag, _)) = given().find(|(_, time)| time.is_zero()) {
            return Err(Failure::usage(format!("{flag} 0 lets no search end"), "leave it out"));
        }
        match given().next().filter(|_| !self.wanted) {
            Some((flag, _)) => Err(only_with_recipes(flag)),
            None => Ok(()),
        }
    }

    /// The flags that describe it to another process.
    pub(super) fn flags(&self) -> impl Iterator<Item = OsString> {
        let wanted = self.wanted.then(|| "--recipes".into());
        let times = self.times().into_iter().filter_map(|(flag, time)| Some((flag, time?)));
        let times = times.flat_map(|(flag, time)| [flag.into(), format!("{}ms", time.as_millis()).into()]);
        wanted.into_iter().chain(times)
    }

    /// The work itself.
    pub(super) fn work(&self) -> Result<QueueWork, Failure> {
        let queue = Name::new(SEARCHES).map_err(|error| Failure::usage(error.to_string(), "see `baton --help`"))?;
        let timeout = self.search_timeout;
        let policy = QueuePolicy { concurrency: AT_ONCE, retries: RETRIES, timeout, ..QueuePolicy::default() };
        let mut program = ProgramTask::searching(subset_sum::program()?);
        program.bounds.output_timeout = self.search_output_timeout.or(program.bounds.output_timeout);
        Ok(QueueWork { task: Some(Task::Program(program)), policy, queue })
    }
}
