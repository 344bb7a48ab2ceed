//! A node as the command line describes it: what feeds it, what it does, what it tells, how it ends.

mod choice;
mod consent;
mod demonstration;
mod description;
mod feed;
mod interpreter;
mod log;
mod plan;
mod program;
mod queue_work;
mod recipes;
mod run;
mod shell;
mod signals;
mod source_feed;
mod witness;
mod work;

use std::{ffi::OsString, path::PathBuf};

use baton::{Name, Role};

use self::{demonstration::DEMONSTRATION, feed::Feed, source_feed::SourceFeed, work::Work};
pub(crate) use self::{
    description::Description,
    log::{Log, LogArguments},
    plan::Plan,
    recipes::{Recipes, SEARCHES, only_with_recipes},
    signals::{obey_leash, obey_signals},
};
use crate::{
    exit::Failure,
    settings::{Settings, refused},
};

/// Everything that makes a node.
#[derive(Debug, clap::Args)]
pub(crate) struct NodeArguments {
    #[command(flatten)]
    feed: Feed,
    #[command(flatten)]
    pub(crate) work: Work,
    /// Exit when the sources named here or described in the file have ended and nothing is left in the queues it works for
    /// (or feeds, if it works for none): 0, or 3 if messages failed during this run; 1 if a source fails for good
    #[arg(long)]
    pub(crate) until_done: bool,
    #[command(flatten)]
    pub(crate) recipes: Recipes,
    /// Append what was pushed and run to this file
    #[arg(long, value_name = "PATH", hide = true)]
    journal: Option<PathBuf>,
}

impl NodeArguments {
    /// Turns `--demo` into what it stands for, on a queue and with a source that nothing else uses, and adds what the
    /// fleet's file says of the recipes.
    pub(crate) fn prepare(&mut self, settings: &Settings) -> Result<(), Failure> {
        let described = Description::of(settings).map_err(refused)?;
        self.recipes.wanted |= self.work.demo.wanted || described.recipes;
        if !self.work.demo.wanted {
            return Ok(());
        }
        if described.has_queues() {
            return Err(Failure::usage(
                format!("--demo runs a queue of its own, and {} describes queues", described.file.display()),
                "leave --demo out to run those, or run the demonstration in another folder",
            ));
        }
        let name = Name::new(DEMONSTRATION).map_err(|error| Failure::usage(error.to_string(), "name a --queue"))?;
        self.work.demonstrate_on(&name);
        self.feed.tick_as(&name);
        Ok(())
    }

    /// Refuses a command that names no work at all where no file describes some.
    fn refuse_bare(&self, settings: &Settings) -> Result<(), Failure> {
        if !self.work.is_bare() || self.feed.is_named() {
            return Ok(());
        }
        let file = match &settings.fleet_file {
            Some(file) => format!("{} describes no queue", file.path().display()),
            None => {
                let here = std::env::current_dir().unwrap_or_default();
                format!("there is no baton.toml in {}", here.display())
            }
        };
        Err(Failure::usage(
            format!("nothing says what to run: no flag names work, and {file}"),
            "add --demo for a demonstration, or --queue NAME --exec COMMAND for a worker of your own, or describe queues \
             in a baton.toml (`baton config --help`)",
        ))
    }

    /// The flags that describe its work to another process.
    pub(crate) fn flags(&self) -> Vec<OsString> {
        let journal = self.journal.iter().flat_map(|path| ["--journal".into(), path.into()]);
        self.work.flags().into_iter().chain(journal).chain(self.recipes.flags()).collect()
    }

    /// What the node is to do in this role; what cannot work is refused before anything is touched.
    pub(crate) fn plan(&self, role: Role, settings: &Settings) -> Result<Plan, Failure> {
        self.work.check()?;
        self.recipes.check()?;
        let described = Description::of(settings).map_err(refused)?;
        if described.has_queues() {
            return self.choose(role, described);
        }
        self.refuse_bare(settings)?;
        let work = self.work.described()?;
        // A worker leaves the source to others, but may wait for the end of one that is named.
        let (sources, awaited) = if role == Role::Worker {
            (Vec::new(), self.feed.source.iter().cloned().collect())
        } else {
            self.feed.check(self.until_done)?;
            let sources: Vec<_> = self.feed.described(&work.queue)?.into_iter().collect();
            if let Some(why) = sources.iter().find_map(SourceFeed::unreadable) {
                return Err(why);
            }
            let awaited = sources.iter().map(|source| source.name.clone()).collect();
            (sources, awaited)
        };
        let (queues, recipes) = (vec![work], self.recipes.clone());
        let plan = Plan { role, queues, sources, is_described: false, awaited, cores: None, recipes };
        plan.check()?;
        Ok(plan)
    }
}
