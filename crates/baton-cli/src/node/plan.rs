//! What one node is to do: its queues and their work, its sources and what they feed.

use std::sync::Arc;

use baton::{Name, Node, Role};

use super::{queue_work::QueueWork, source_feed::SourceFeed, witness::Witness, work::Work};
use crate::{connection::Connection, exit::Failure};

/// The plan of a node.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) role: Role,
    pub(super) queues: Vec<QueueWork>,
    /// Those it offers; none if it only works.
    pub(super) sources: Vec<SourceFeed>,
    /// The sources whose end it waits for where it ends when all is done.
    pub(super) awaited: Vec<Name>,
}

impl Plan {
    /// The queue, if it is about one alone.
    pub(crate) fn only_queue(&self) -> Option<&Name> {
        match self.queues.as_slice() {
            [one] => Some(&one.queue),
            _ => None,
        }
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
                    "add --handler (demo, noop); `baton up` without flags is a demonstration",
                )),
                None => Ok(()),
            },
            Role::Generator => Ok(()),
        }
    }

    /// The node.
    pub(super) fn node(&self, connection: &Connection, work: &Work, witness: &Arc<Witness>) -> Result<Node, Failure> {
        let mut node = work.place(connection.operator.fleet().node().role(self.role).observed_by(witness.clone()));
        if self.role != Role::Generator {
            node = self.queues.iter().fold(node, |node, work| work.give(node));
        }
        self.sources.iter().try_fold(node, |node, source| source.offer(node))
    }
}
