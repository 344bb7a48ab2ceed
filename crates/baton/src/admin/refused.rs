//! Why an operation was not carried out.

use std::{collections::BTreeSet, fmt};

use super::{Whereabouts, whereabouts::nodes, wording::one_of};
use crate::{
    NodeError,
    message::Name,
    store::{StoreError, Survey},
};

/// The most nodes that are named to a person.
const NAMED: usize = 5;

/// Why an operation was not carried out; nothing was changed unless the variant says so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// The store failed or refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The fleet knows no queue or source of this name.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// A live node offers the source.
    #[error("{by} offers source {source_name}")]
    Offered {
        /// The source.
        source_name: Name,
        /// The node.
        by: Whereabouts,
    },
    /// A live node runs the source.
    #[error("{by} is running source {source_name}")]
    Running {
        /// The source.
        source_name: Name,
        /// The node.
        by: Whereabouts,
    },
    /// Another process removes the failed messages of the queue; those handed over before stay removed or requeued.
    #[error("{by} is removing or requeueing the errors of queue {queue}")]
    RemovalRunning {
        /// The queue.
        queue: Name,
        /// The process that removes them.
        by: Whereabouts,
    },
    /// Errors are wanted by their ids, and several queues have some: each numbers its messages from 1.
    #[error("an id is one of a queue, and several have errors{}", one_of(queues))]
    OfWhichQueue {
        /// Those that have errors.
        queues: Vec<Name>,
    },
    /// Nodes of the fleet are alive.
    #[error("{}{}", alive(nodes.len()), named(nodes))]
    NodesAlive {
        /// Which.
        nodes: Vec<Whereabouts>,
    },
    /// Live nodes work for the queue that is to be removed, or feed it.
    #[error("queue {queue} is in use by {}", named(nodes))]
    QueueInUse {
        /// The queue.
        queue: Name,
        /// Which.
        nodes: Vec<Whereabouts>,
    },
    /// Messages of the queue that is to be removed are in flight.
    #[error("{messages} message{} of queue {queue} {} in flight", if *messages == 1 { "" } else { "s" }, if *messages == 1 { "is" } else { "are" })]
    InFlight {
        /// The queue.
        queue: Name,
        /// How many.
        messages: u64,
    },
    /// Somebody uses the store that is to be migrated.
    #[error("the store is in use{}", users(by))]
    InUse {
        /// The sessions that called or came meanwhile; none if whoever it was has left again.
        by: Vec<Whereabouts>,
    },
    /// The node is put together wrongly.
    #[error(transparent)]
    Node(NodeError),
}

impl AdminError {
    /// Whether the same operation may succeed when repeated, without anything being done about it.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Store(error) => error.is_retryable(),
            Self::RemovalRunning { .. } => true,
            _ => false,
        }
    }
}

impl From<NodeError> for AdminError {
    fn from(error: NodeError) -> Self {
        match error {
            NodeError::Store(error) => Self::Store(error),
            other => Self::Node(other),
        }
    }
}

fn alive(nodes: usize) -> String {
    match nodes {
        1 => "1 node of this fleet is alive: ".to_owned(),
        nodes => format!("{nodes} nodes of this fleet are alive: "),
    }
}

fn users(by: &[Whereabouts]) -> String {
    if by.is_empty() { String::new() } else { format!(" by {}", named(by)) }
}

fn named(nodes: &[Whereabouts]) -> String {
    let mut names: Vec<String> = nodes.iter().take(NAMED).map(ToString::to_string).collect();
    if nodes.len() > NAMED {
        names.push(format!("{} more", nodes.len() - NAMED));
    }
    names.join(", ")
}

/// What a name was taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// A queue.
    Queue,
    /// A source.
    Source,
}

/// A name that the fleet does not know, and those it does.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, thiserror::Error)]
pub struct Unknown {
    /// What it was taken for.
    pub subject: Subject,
    /// The name.
    pub name: Name,
    /// The names there are.
    pub known: Vec<Name>,
}

impl Unknown {
    /// Nothing if the fleet has the queue, or a node works for it.
    pub(super) fn queue(name: &Name, survey: &Survey) -> Option<Self> {
        let worked_for = nodes(survey).flat_map(|node| &node.queues);
        let known: BTreeSet<&Name> = survey.queues.iter().map(|it| &it.queue).chain(worked_for).collect();
        Self::unless(name, Subject::Queue, known.into_iter().cloned().collect())
    }

    /// Nothing if the fleet has the source.
    pub(super) fn source(name: &Name, survey: &Survey) -> Option<Self> {
        Self::unless(name, Subject::Source, survey.sources.iter().map(|it| it.name.clone()).collect())
    }

    fn unless(name: &Name, subject: Subject, known: Vec<Name>) -> Option<Self> {
        (!known.contains(name)).then(|| Self { subject, name: name.clone(), known })
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = match self.subject {
            Subject::Queue => "queue",
            Subject::Source => "source",
        };
        write!(f, "there is no {subject} {} in this fleet{}", self.name, one_of(&self.known))
    }
}
