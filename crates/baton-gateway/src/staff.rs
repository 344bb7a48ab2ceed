//! How many nodes work for a queue. All of them are counted together and at most once in a while, so that whoever asks again
//! and again costs the store no more than one who does not.

use std::collections::BTreeMap;

use baton::{
    Name,
    store::{Kind, Survey, TakeSurvey},
};
use tokio::{
    sync::Mutex,
    time::{Duration, Instant, timeout},
};

use crate::state::State;

/// How long a count is gone by, also one that failed, and how long it may take.
const KEPT: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(2);

/// What was counted last.
#[derive(Debug, Default)]
pub(crate) struct Staff(Mutex<Option<Count>>);

#[derive(Debug)]
struct Count {
    at: Instant,
    /// By queue; nothing if the store did not tell.
    nodes: Option<BTreeMap<Name, u64>>,
}

impl State {
    /// How many live nodes worked for this queue when they were counted; nothing if the store does not tell.
    pub(crate) async fn nodes_of(&self, queue: &Name) -> Option<u64> {
        // Those who ask meanwhile wait for the same count.
        let mut counted = self.staff.0.lock().await;
        if counted.as_ref().is_none_or(|count| count.at.elapsed() >= KEPT) {
            let survey = timeout(PATIENCE, self.fleet.ask(TakeSurvey)).await;
            let nodes = survey.ok().and_then(Result::ok).map(|survey| count(&survey));
            *counted = Some(Count { at: Instant::now(), nodes });
        }
        counted.as_ref()?.nodes.as_ref().map(|nodes| nodes.get(queue).copied().unwrap_or_default())
    }
}

fn count(survey: &Survey) -> BTreeMap<Name, u64> {
    let nodes = survey.sessions.iter().filter(|session| session.kind == Kind::Node);
    let mut counted = BTreeMap::new();
    for queue in nodes.flat_map(|node| &node.queues) {
        *counted.entry(queue.clone()).or_default() += 1;
    }
    counted
}
