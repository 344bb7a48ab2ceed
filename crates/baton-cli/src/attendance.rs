//! Whether anybody works for a queue, told to the person who gives it a message.

use baton::{
    Name,
    admin::{AdminError, Overview},
    settings::document::meant,
    store::StoreUrl,
};

use crate::{connection::Connection, exit::Failure, node::Description, settings::Settings};

/// A store in which nothing is.
pub(crate) const NOTHING_YET: Overview = Overview { nodes: Vec::new(), sources: Vec::new(), queues: Vec::new() };

/// Refuses a message for a queue that is probably mistyped, before anything is stored.
pub(crate) async fn check(queue: &Name, connection: &Connection, settings: &Settings) -> Result<(), Failure> {
    let described = described(settings);
    if described.is_empty() || described.contains(queue) {
        return Ok(());
    }
    let overview = match connection.is_new() {
        true => NOTHING_YET,
        false => connection.given(connection.admin.overview().await.map_err(AdminError::from))?,
    };
    let attendance = Attendance::beside(queue, &overview, &described);
    attendance.refusal(queue, &settings.store.value, &described).map_or(Ok(()), Err)
}

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
        // A queue whose messages only wait may be a mistyped name itself.
        let proven = overview.queues.iter().filter(|it| it.done > 0 || it.failed > 0).map(|it| &it.name);
        let is_right = described.contains(queue) || proven.clone().any(|it| it == queue);
        let others = proven.chain(worked()).chain(described).filter(|it| *it != queue).map(Name::as_str);
        Self {
            is_known: there.clone().any(|it| it == queue),
            is_worked: worked().any(|it| it == queue),
            is_paused: overview.queues.iter().any(|it| it.name == *queue && it.paused),
            near: meant(queue.as_str(), others).filter(|_| !is_right).map(str::to_owned),
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

    /// That no node works for it, if that is so. To be said of a message that was stored.
    pub(crate) fn unworked(&self, queue: &Name, store: &StoreUrl) -> Option<String> {
        let near = self.near.as_ref().map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        (!self.is_worked).then(|| format!("no node works for queue {queue} in {store}{near}"))
    }

    /// Why no message is taken for it where a file describes the queues, and this is none of them, nor stored, nor worked
    /// for: the rule of the gateway.
    pub(crate) fn refusal(&self, queue: &Name, store: &StoreUrl, described: &[Name]) -> Option<Failure> {
        if described.is_empty() || described.contains(queue) || self.is_known || self.is_worked {
            return None;
        }
        let near = self.near.as_ref().map(|near| format!("did you mean {near}? ")).unwrap_or_default();
        let cause = format!("there is no queue {queue} in {store}, and the fleet's file does not describe it");
        Some(Failure::new(cause, format!("{near}--create makes it")))
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
