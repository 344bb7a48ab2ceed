//! A node as the command line describes it: what feeds it, what it does, what it tells, how it ends.

mod choice;
mod description;
mod feed;
mod interpreter;
mod log;
mod plan;
mod program;
mod queue_work;
mod run;
mod searches;
mod shell;
mod signals;
mod source_feed;
mod trickle;
mod witness;
mod work;

use std::{ffi::OsString, path::PathBuf};

use baton::{Name, Role};

pub(crate) use self::{
    description::Description,
    log::Log,
    plan::Plan,
    searches::{SEARCHES, Searches},
    signals::{obey_leash, obey_signals},
};
use self::{feed::Feed, work::Work};
use crate::{
    exit::Failure,
    settings::{Settings, refused},
};

/// The queue of the demonstration, and the name of the source that feeds it.
const DEMONSTRATION: &str = "demo";

/// Everything that makes a node.
#[derive(Debug, clap::Args)]
pub(crate) struct NodeArguments {
    #[command(flatten)]
    feed: Feed,
    #[command(flatten)]
    pub(crate) work: Work,
    /// Exit when the sources named here or described in the file have ended and nothing is left in the queues it works for
    /// (or feeds, if it works for none): 0, or 3 if these have errors, of whichever run; 1 if a source fails for good
    #[arg(long)]
    pub(crate) until_done: bool,
    #[command(flatten)]
    pub(crate) searches: Searches,
    /// Append what was pushed and run to this file
    #[arg(long, value_name = "PATH", hide = true)]
    journal: Option<PathBuf>,
}

impl NodeArguments {
    /// Makes a demonstration of a command that names neither queue nor handler nor lines nor calendar where no file
    /// describes some, on a queue and with a source that nothing else uses.
    pub(crate) fn demonstrate_if_bare(&mut self, settings: &Settings) -> Result<(), Failure> {
        let is_described = Description::of(settings).map_err(refused)?.is_some();
        if !is_described && self.work.is_bare() && !self.feed.is_of_its_own() {
            let name = Name::new(DEMONSTRATION).map_err(|error| Failure::usage(error.to_string(), "name a --queue"))?;
            self.work.demonstrate_on(&name);
            self.feed.tick_as(&name);
        }
        Ok(())
    }

    /// The flags that describe its work to another process.
    pub(crate) fn flags(&self) -> Vec<OsString> {
        let journal = self.journal.iter().flat_map(|path| ["--journal".into(), path.into()]);
        self.work.flags().into_iter().chain(journal).chain(self.searches.flags()).collect()
    }

    /// What the node is to do in this role; what cannot work is refused before anything is touched.
    pub(crate) fn plan(&self, role: Role, settings: &Settings) -> Result<Plan, Failure> {
        self.work.check()?;
        self.searches.check()?;
        if let Some(described) = Description::of(settings).map_err(refused)? {
            return self.choose(role, described);
        }
        let work = self.work.described()?;
        // A worker leaves the source to others, but may wait for the end of one that is named.
        let (sources, awaited) = if role == Role::Worker {
            (Vec::new(), self.feed.source.iter().cloned().collect())
        } else {
            self.feed.check(self.until_done)?;
            let sources: Vec<_> = self.feed.described(&work.queue)?.into_iter().collect();
            let awaited = sources.iter().map(|source| source.name.clone()).collect();
            (sources, awaited)
        };
        let (queues, searches) = (vec![work], self.searches.clone());
        let plan = Plan { role, queues, sources, is_described: false, awaited, cores: None, searches };
        plan.check()?;
        Ok(plan)
    }
}
