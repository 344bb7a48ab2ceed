//! The workers of `up`: this program, each a `node` on a leash.

use std::{ffi::OsString, sync::Arc, time::Duration};

use baton::admin::{self, Limits};
use baton::store::StoreUrl;

use crate::{
    exit::Failure,
    node::{Log, LogArguments, NodeArguments},
    settings::{CONFIG, Settings},
};

/// How long, over its lease, a worker that must stop at once may take.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// How many worker processes there may be.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Worker processes")]
pub(crate) struct Workers {
    /// Start exactly this many worker processes, whatever the load; 0 for none. Not with --exec or --exec-once, whose
    /// children all belong to one process: see --concurrency
    #[arg(long, value_name = "N", value_parser = number(), conflicts_with_all = ["min_workers", "max_workers"])]
    workers: Option<u16>,
    /// The fewest worker processes, while there is little to do [default: 1]
    #[arg(long, value_name = "N", value_parser = number())]
    min_workers: Option<u16>,
    /// The most worker processes, when there is much to do [default: as many as cores]
    #[arg(long, value_name = "N", value_parser = number())]
    max_workers: Option<u16>,
}

fn number() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(0..=1024)
}

/// The cores of this machine.
pub(crate) fn cores() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(cores).unwrap_or(u32::MAX)
}

impl Workers {
    /// What the flags come to on this store.
    pub(crate) fn limits(&self, settings: &Settings) -> Result<Limits, Failure> {
        let number = usize::from;
        let asked = [self.workers, self.min_workers, self.max_workers].into_iter().flatten().any(|count| count > 0);
        if settings.store.value == StoreUrl::Memory {
            return match asked {
                false => Ok(Limits { min: 0, max: 0 }),
                true => Err(Failure::usage("a store in memory is not shared with worker processes", "add --workers 0")),
            };
        }
        let (least, most) = match self.workers {
            Some(fixed) => (Some(fixed), Some(fixed)),
            None => (self.min_workers, self.max_workers),
        };
        match (least.map(number), most.map(number)) {
            (Some(min), Some(max)) if min > max => Err(Failure::usage(
                format!("--min-workers {min} is more than --max-workers {max}"),
                "give the larger number to --max-workers",
            )),
            (Some(min), max) => Ok(Limits { min, max: max.unwrap_or(cores() as usize).max(min) }),
            (None, max) => {
                let max = max.unwrap_or(cores() as usize);
                Ok(Limits { min: max.min(1), max })
            }
        }
    }

    /// Refuses a number of worker processes where this process runs all children.
    pub(crate) fn refuse(&self) -> Result<(), Failure> {
        let flags =
            [("--workers", self.workers), ("--min-workers", self.min_workers), ("--max-workers", self.max_workers)];
        match flags.into_iter().find(|(_, given)| given.is_some()) {
            Some((flag, _)) => Err(Failure::usage(
                format!("{flag} is about worker processes, and children of this process run the commands"),
                "say how many run at once by --concurrency",
            )),
            None => Ok(()),
        }
    }
}

/// A supervisor for this node's work, on the store in force.
pub(crate) fn supervisor(
    settings: &Settings, node: &NodeArguments, log_arguments: &LogArguments, log: &Arc<Log>,
) -> Result<admin::Supervisor, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find this program: {error}"), "add --workers 0"))?;
    let flags = ["node", "--role", "worker", "--leashed"].map(OsString::from);
    let of_log = log_arguments.of_worker().into_iter().map(OsString::from);
    let log = log.clone();
    Ok(admin::Supervisor {
        program,
        arguments: flags.into_iter().chain(node.flags()).chain(of_log).collect(),
        variables: settings.variables(),
        without: vec![CONFIG],
        last_words: node.work.lease + LAST_WORDS,
        hear: Arc::new(move |event| log.supervised(event)),
    })
}
