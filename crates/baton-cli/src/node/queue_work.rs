//! What a node does with the messages of one queue, whether flags say it or a file.

use baton::{
    Name, Node, QueuePolicy,
    jobs::{Demo, Noop},
};

/// The work for one queue.
#[derive(Debug, Clone)]
pub(super) struct QueueWork {
    pub(super) queue: Name,
    /// Nothing if others work for the queue.
    pub(super) task: Option<Task>,
    pub(super) policy: QueuePolicy,
}

/// What is done with a message.
#[derive(Debug, Clone)]
pub(super) enum Task {
    /// Demonstrates: takes a while and fails now and then.
    Demo(Demo),
    /// Throws it away.
    Noop,
}

impl QueueWork {
    /// A queue of which nothing but its name is said.
    pub(super) fn of(queue: Name) -> Self {
        Self { queue, task: None, policy: QueuePolicy::default() }
    }

    /// Gives it to the node.
    pub(super) fn give(&self, node: Node) -> Node {
        let (node, queue) = (node.policy(self.policy.clone()), self.queue.as_str());
        match &self.task {
            Some(Task::Demo(demo)) => node.handle_with(queue, demo.clone()),
            Some(Task::Noop) => node.handle_with(queue, Noop),
            None => node,
        }
    }
}
