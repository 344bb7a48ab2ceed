//! What a node does with the messages of one queue, whether flags say it or a file.

use baton::{
    Name, Node, QueuePolicy,
    builtin::{Demo, Exec, Noop},
};

use super::program::{ProgramTask, Stage};

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
    /// Has a program run it.
    Program(ProgramTask),
}

impl QueueWork {
    /// A queue of which nothing but its name is said.
    pub(super) fn of(queue: Name) -> Self {
        Self { queue, task: None, policy: QueuePolicy::default() }
    }

    /// Has a program run the messages, as many at once as there are cores unless that is said.
    pub(super) fn run_by(&mut self, program: ProgramTask) {
        self.take_up(Task::Program(program));
    }

    /// Has this done with the messages; by a program, as many at once as there are cores unless that is said.
    pub(super) fn take_up(&mut self, task: Task) {
        if let Task::Program(_) = task {
            self.policy.concurrency = ProgramTask::at_once();
        }
        self.task = Some(task);
    }

    /// Gives it to the node; the pool of its children, if they are to be closed behind it.
    pub(super) fn give(&self, node: Node, stage: &Stage<'_>) -> (Node, Option<Exec>) {
        let queue = self.queue.as_str();
        let node = match &self.task {
            Some(Task::Program(program)) => return program.give(node, &self.queue, &self.policy, stage),
            Some(Task::Demo(demo)) => node.policy(self.policy.clone()).handle_with(queue, demo.clone()),
            Some(Task::Noop) => node.policy(self.policy.clone()).handle_with(queue, Noop),
            None => node,
        };
        (node, None)
    }
}
