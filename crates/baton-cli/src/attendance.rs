//! Whether anybody works for a queue, told to the person who gives it a message.

use baton::{Name, admin::Overview, settings::document::meant, store::StoreUrl};

use crate::{node::Description, settings::Settings};

/// The queues that the fleet's file describes. A mistake in the file is reported where the fleet is run.
pub(crate) fn described(settings: &Settings) -> Vec<Name> {
    let description = Description::of(settings).unwrap_or_default();
    description.queue_names().cloned().collect()
}

/// What is known of a queue.
pub(crate) struct Attendance {
    /// Whether it is there.
    is_known: bool,
    /// Whether a live node works for it.
    is_worked: bool,
    is_paused: bool,
    /// Another one that was perhaps meant.
    near: Option<String>,
}

impl Attendance {
    pub(crate) fn of(queue: &Name, overview: &Overview) -> Self {
        Self::beside(queue, overview, &[])
    }

    /// The same where a file describes these queues; one of them has its right name, used or not.
    pub(crate) fn beside(queue: &Name, overview: &Overview, described: &[Name]) -> Self {
        let there = overview.queues.iter().map(|it| &it.name);
        let worked = || overview.nodes.iter().flat_map(|node| &node.queues);
        let others = there.clone().chain(worked()).chain(described).filter(|it| *it != queue).map(Name::as_str);
        Self {
            is_known: there.clone().any(|it| it == queue),
            is_worked: worked().any(|it| it == queue),
            is_paused: overview.queues.iter().any(|it| it.name == *queue && it.paused),
            near: meant(queue.as_str(), others).filter(|_| !described.contains(queue)).map(str::to_owned),
        }
    }

    /// Whether another queue was perhaps meant.
    pub(crate) const fn is_doubtful(&self) -> bool {
        self.near.is_some()
    }

    /// That nobody works for a queue which nobody has used before in this store, if that is so: its name may have a slip in
    /// it, or the store is another one than was meant.
    pub(crate) fn novelty(&self, queue: &Name, store: &StoreUrl) -> Option<String> {
        let near = self.near.as_ref().map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        let is_new = !self.is_known && !self.is_worked;
        is_new.then(|| format!("queue {queue} is new in {store}, and no node works for it{near}"))
    }

    /// That it is paused, if it is.
    pub(crate) fn pause(&self, queue: &Name) -> Option<String> {
        self.is_paused.then(|| format!("queue {queue} is paused; `baton resume {queue}` lets it go on"))
    }

    /// That nobody works for it, if that is so.
    pub(crate) fn absence(&self, queue: &Name) -> Option<String> {
        let next = self.near.as_ref().map_or_else(|| "it waits".to_owned(), |near| format!("did you mean {near}?"));
        (!self.is_worked).then(|| format!("no node works for queue {queue}; {next}"))
    }
}
