//! The plan of one node: its queues and their work, its sources and the queues they feed.

use std::{collections::BTreeMap, sync::Arc};

use baton::{Name, Node, Role, builtin::Exec, store::Survey};

use super::{
    program::{ProgramTask, Stage},
    queue_work::{QueueWork, Task},
    recipes::{AT_ONCE, Recipes, SEARCHES},
    source_feed::SourceFeed,
    witness::Witness,
    work::Work,
};
use crate::{connection::Connection, exit::Failure};

/// The plan of a node.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) role: Role,
    pub(super) queues: Vec<QueueWork>,
    /// Those it offers; none if it only works.
    pub(super) sources: Vec<SourceFeed>,
    /// Whether a file describes them.
    pub(super) is_described: bool,
    /// The sources whose end it waits for where it ends when all is done.
    pub(super) awaited: Vec<Name>,
    /// The machine's cores, if worker processes are started on it beside the node.
    pub(super) cores: Option<u32>,
    /// Whether it works for [`SEARCHES`] in addition to its own queues, and how.
    pub(super) recipes: Recipes,
}

/// A source that the node does not offer, and why.
pub(super) struct LeftOut {
    pub(super) source: Name,
    pub(super) why: Failure,
}

impl Plan {
    /// The queue, if it is about one alone.
    pub(crate) fn only_queue(&self) -> Option<&Name> {
        match self.queues.as_slice() {
            [one] => Some(&one.queue),
            _ => None,
        }
    }

    /// The queues that must be empty where it ends when all is done: those it works for. One that works for none waits for
    /// those it feeds, which others empty.
    pub(super) fn to_be_emptied(&self) -> Vec<Name> {
        let worked = self.queues.iter().filter(|it| it.task.is_some() && self.role != Role::Generator);
        let worked: Vec<Name> = worked.map(|it| it.queue.clone()).collect();
        if worked.is_empty() { self.queues.iter().map(|it| it.queue.clone()).collect() } else { worked }
    }

    /// The names of the queues whose messages run here.
    pub(crate) fn worked(&self) -> Vec<&str> {
        let here = self.role != Role::Generator;
        let own = self.queues.iter().filter(|it| it.task.is_some()).map(|it| it.queue.as_str());
        let searches = self.searches_too().then_some(SEARCHES);
        own.chain(searches).filter(|_| here).collect()
    }

    /// The names of the sources that are offered here.
    pub(crate) fn source_names(&self) -> Vec<&str> {
        self.sources.iter().map(|source| source.name.as_str()).collect()
    }

    /// Refuses what cannot work, before anything is touched.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self.role {
            Role::Generator if self.sources.is_empty() => Err(Failure::usage(
                "no source is named, and a generator does nothing else",
                "add --interval, --lines, --lines-from or --cron",
            )),
            Role::Auto | Role::Worker => match self.queues.iter().find(|it| it.task.is_none()) {
                Some(idle) => Err(Failure::usage(
                    format!("no handler is named for the messages of queue {}", idle.queue),
                    "add --exec or --exec-once with a command, or --handler; `baton up --demo` is a demonstration",
                )),
                None => Ok(()),
            },
            Role::Generator => Ok(()),
        }
    }

    /// The queues whose messages a program runs.
    pub(super) fn run_by_programs(&self) -> Vec<Name> {
        self.programs().map(|(queue, _)| queue.clone()).collect()
    }

    /// The queues, not described by a file, whose messages this node runs and that a source of its own begins to feed:
    /// one that has never pushed there.
    pub(super) fn newly_fed<'a>(&'a self, survey: &'a Survey) -> impl Iterator<Item = &'a Name> {
        let has_fed = |source: &SourceFeed, queue: &Name| {
            let known = survey.sources.iter().find(|it| it.name == source.name && it.queue == *queue);
            known.is_some_and(|it| !it.cursor.is_empty())
        };
        let asks = !self.is_described && self.role != Role::Generator;
        let worked = self.queues.iter().filter(move |work| asks && work.task.is_some()).map(|work| &work.queue);
        worked.filter(move |queue| self.sources.iter().any(|it| it.queue == **queue && !has_fed(it, queue)))
    }

    /// What may be wrong with their commands.
    pub(super) fn doubts(&self) -> impl Iterator<Item = &String> {
        self.programs().flat_map(|(_, program)| program.doubts())
    }

    fn programs(&self) -> impl Iterator<Item = (&Name, &ProgramTask)> {
        self.queues.iter().filter_map(|work| match &work.task {
            Some(Task::Program(program)) => Some((&work.queue, program)),
            _ => None,
        })
    }

    /// Whether messages of this queue are run here.
    pub(super) fn runs(&self, queue: &Name) -> bool {
        self.role != Role::Generator && self.queues.iter().any(|work| work.task.is_some() && work.queue == *queue)
    }

    /// Whether messages are run at all.
    pub(crate) fn has_work(&self) -> bool {
        self.queues.iter().any(|work| work.task.is_some())
    }

    /// Whether a program runs messages.
    pub(crate) fn has_programs(&self) -> bool {
        self.programs().next().is_some()
    }

    /// How many messages of each queue a process works on at once.
    pub(crate) fn slots(&self) -> BTreeMap<Name, usize> {
        let own = self.queues.iter().map(|work| (work.queue.clone(), work.policy.concurrency));
        let searches = Name::new(SEARCHES).ok().filter(|_| self.searches_too()).map(|queue| (queue, AT_ONCE));
        own.chain(searches).collect()
    }

    /// Whether subset sums are searched here; not where its own queues have that name.
    fn searches_too(&self) -> bool {
        self.recipes.wanted && !self.queues.iter().any(|work| work.queue.as_str() == SEARCHES)
    }

    /// The node tells the fleet that worker processes are started beside it, on so many cores.
    pub(crate) const fn beside_workers(&mut self, cores: u32) {
        self.cores = Some(cores);
    }

    /// Refuses programs that are not here, of the queues that are worked.
    pub(super) fn check_programs(&self) -> Result<(), Failure> {
        for work in self.queues.iter().filter(|_| self.role != Role::Generator) {
            if let Some(Task::Program(program)) = &work.task {
                program.check(&format!("queue {}", work.queue))?;
            }
        }
        Ok(())
    }

    /// The sources of the file that cannot be read on this machine: they are left to others, or have ended long ago, and
    /// keep nothing else from running. What a flag names must be there.
    pub(super) fn left_out(&self) -> Vec<LeftOut> {
        let described = self.sources.iter().filter(|_| self.is_described);
        let out = described.filter_map(|it| Some(LeftOut { source: it.name.clone(), why: it.unreadable()? }));
        out.collect()
    }

    /// The node, and the children to be closed behind it.
    pub(super) fn node(
        &self, connection: &Connection, work: &Work, witness: &Arc<Witness>, stage: &Stage<'_>, left_out: &[LeftOut],
    ) -> Result<(Node, Vec<Exec>), Failure> {
        let mut node = work.place(connection.admin.fleet().node().role(self.role).observed_by(witness.clone()));
        if let Some(cores) = self.cores {
            node = node.beside_workers(cores);
        }
        let mut children = Vec::new();
        let programs = self.queues.iter().filter(|work| matches!(work.task, Some(Task::Program(_))));
        let at_once = programs.map(|work| work.policy.concurrency).sum();
        if at_once > 0 {
            ProgramTask::make_room(at_once)?;
        }
        if self.role != Role::Generator {
            for work in &self.queues {
                let (given, pool) = work.give(node, stage);
                node = given;
                children.extend(pool);
            }
        }
        if self.searches_too() && self.role != Role::Generator {
            let (given, pool) = self.recipes.work()?.give(node, &Stage { prints: false, ..*stage });
            node = given;
            children.extend(pool);
        }
        let mut offered = self.sources.iter().filter(|it| !left_out.iter().any(|out| out.source == it.name));
        let node = offered.try_fold(node, |node, source| source.offer(node))?;
        Ok((node, children))
    }
}
