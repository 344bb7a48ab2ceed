//! The replayer sends what the dead could have sent: settles with old tokens, pushes with old batons. Each must be
//! refused by the store; one that is taken is a finding.
//!
//! It speaks in raw requests without the library's session tasks, and replays over connections of their own, since
//! a store handle knows the sessions it joined and would answer for the server after a restart. It never uses a
//! session that is alive and not its own, and offers no source, so it cannot become the generator.

use std::{sync::Arc, time::Duration};

use baton::{
    Name, SessionId,
    store::{
        Claim, Claimed, Join, Kind, Leave, Operation, Push, Refusal, Settle, Store, StoreError, StoreUrl, ask,
        message::{Body, Outcome, Parcel, Run},
        open,
    },
};
use tokio::{task::JoinSet, time::Instant};

use super::{
    faults::{Fault, Fired},
    findings::Findings,
    observer::Observer,
    random::Random,
};

/// How long a call is repeated over lost connections and restarts.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the replays share.
#[derive(Clone)]
pub struct Replayer {
    /// Where the store is, without the proxy.
    pub url: StoreUrl,
    /// The fleet.
    pub fleet: Name,
    /// Its queue.
    pub queue: Name,
    /// Where it sees who holds the baton.
    pub observer: Arc<Observer>,
    /// Counts the refusals.
    pub fired: Fired,
    /// Gets those that were not refused.
    pub findings: Findings,
}

impl Replayer {
    /// Replays until the set is dropped.
    #[must_use]
    pub fn start(&self, seed: u64) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        tasks.spawn(self.clone().tokens(Random::part(seed, 1)));
        tasks.spawn(self.clone().spent_tokens(Random::part(seed, 2)));
        tasks.spawn(self.clone().batons(Random::part(seed, 3)));
        tasks
    }

    /// Claims, falls silent until others have reaped the session, and settles then.
    async fn tokens(self, mut random: Random) {
        loop {
            tokio::time::sleep(random.millis(100..600)).await;
            let Some((session, _, runs)) = self.claimed(&mut random).await else { continue };
            if self.observer.see(PATIENCE, |sight| !sight.knows(session)).await.is_none() {
                self.findings.note(format!("a silent session is not reaped within {PATIENCE:?}"));
                continue;
            }
            let settle = Settle { session, settle_no: 1, runs, max_results: baton::store::MAX_RESULTS };
            match self.persist(settle).await {
                Some(Err(Refusal::Stale)) => self.fired.note(Fault::ReplayToken),
                Some(other) => self.findings.note(format!("the token of a dead session was not refused: {other:?}")),
                None => {}
            }
        }
    }

    /// Claims, hands back, and settles the same messages again while others may hold them.
    async fn spent_tokens(self, mut random: Random) {
        loop {
            tokio::time::sleep(random.millis(200..800)).await;
            let Some((session, store, runs)) = self.claimed(&mut random).await else { continue };
            let messages: u32 = runs.iter().map(|run| run.range.len).sum();
            let back = runs.iter().map(|run| Run { outcome: Outcome::Back, ..run.clone() }).collect();
            let handed_back =
                persist(&*store, Settle { session, settle_no: 1, runs: back, max_results: baton::store::MAX_RESULTS })
                    .await;
            // Over by a restart or a stall in between: that is the other replay.
            if !matches!(handed_back, Some(Ok(_))) {
                continue;
            }
            match persist(&*store, Settle { session, settle_no: 2, runs, max_results: baton::store::MAX_RESULTS }).await
            {
                Some(Ok(settled)) if settled.refused.iter().map(|(_, _, range)| range.len).sum::<u32>() == messages => {
                    self.fired.note(Fault::ReplaySpent);
                }
                Some(Err(Refusal::Stale)) | None => {}
                Some(other) => self.findings.note(format!("a spent token was not refused: {other:?}")),
            }
            persist(&*store, Leave { session }).await;
        }
    }

    /// Pushes with batons that have passed on, as their dead holders and as a live stranger, and with the baton in
    /// force as a stranger.
    async fn batons(self, mut random: Random) {
        loop {
            tokio::time::sleep(random.millis(100..400)).await;
            let (past, Some(sight)) = (self.observer.past_batons(), self.observer.latest()) else { continue };
            let (Some(&(epoch, holder)), Some(source)) = (random.pick(&past), sight.source()) else { continue };
            let Some((stranger, store)) = self.joined().await else { continue };
            let (session, epoch) = match random.below(3) {
                // A live session keeps its lease by every call: only the dead are spoken for.
                0 if !sight.knows(holder) => (holder, epoch),
                1 => (stranger, source.epoch),
                _ => (stranger, epoch),
            };
            let position: u64 = source.cursor.parse().unwrap_or(0);
            let push = Push {
                session,
                source: source.name.clone(),
                epoch,
                batch_no: 1 + random.below(5),
                from: source.cursor.clone(),
                to: (position + 1).to_string(),
                parcels: vec![Parcel::single(Body::new(br#"{"tick":0}"#).expect("a small body"))],
                end: false,
                max_queue_bytes: u64::MAX,
            };
            match self.persist(push).await {
                Some(Err(Refusal::Stale | Refusal::StaleBaton { .. })) => self.fired.note(Fault::ReplayBaton),
                Some(other) => self.findings.note(format!("an old baton was not refused: {other:?}")),
                None => {}
            }
            persist(&*store, Leave { session: stranger }).await;
        }
    }

    /// A session of its own that nobody beats for.
    async fn joined(&self) -> Option<(SessionId, Arc<dyn Store>)> {
        let store = self.connection()?;
        let session = SessionId::random();
        let join = Join {
            session,
            kind: Kind::Node,
            host: "replayer".to_owned(),
            pid: std::process::id(),
            queues: vec![self.queue.clone()],
            lease_ms: 1_000,
            heartbeat_ms: 200,
            offers: Vec::new(),
            former: None,
        };
        persist(&*store, join).await?.ok()?;
        Some((session, store))
    }

    /// A session that holds a few messages, and the runs that would settle them.
    async fn claimed(&self, random: &mut Random) -> Option<(SessionId, Arc<dyn Store>, Vec<Run>)> {
        let (session, store) = self.joined().await?;
        let n = 1 + u32::try_from(random.below(8)).unwrap_or(0);
        let claim = Claim { session, queue: self.queue.clone(), claim_no: 1, n, max_bytes: 1 << 20 };
        let Claimed { queue, spans, .. } = persist(&*store, claim).await?.ok()?;
        if spans.is_empty() {
            persist(&*store, Leave { session }).await;
            return None;
        }
        let run = |range| Run { claim_no: 1, queue: queue.clone(), range, outcome: Outcome::DONE };
        Some((session, store, spans.iter().map(|(span, _)| run(span.range)).collect()))
    }

    /// Asks over a connection that has never joined anything.
    async fn persist<O: Operation + Clone>(&self, operation: O) -> Option<Result<O::Answer, Refusal>> {
        persist(&*self.connection()?, operation).await
    }

    fn connection(&self) -> Option<Arc<dyn Store>> {
        let opened = open(&self.url, self.fleet.clone(), true);
        opened.inspect_err(|error| self.findings.note(format!("the store does not open: {error}"))).ok()
    }
}

/// The store's answer or refusal, however often the connection breaks; none if the store stays away.
async fn persist<O: Operation + Clone>(store: &dyn Store, operation: O) -> Option<Result<O::Answer, Refusal>> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        match ask(store, operation.clone()).await {
            Ok(answer) => return Some(Ok(answer)),
            Err(StoreError::Refused(Refusal::Held { .. })) => {}
            Err(StoreError::Refused(refusal)) => return Some(Err(refusal)),
            Err(_) => {}
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    None
}

#[cfg(test)]
mod tests {
    use baton::{
        Fleet, FleetOptions, Shutdown,
        builtin::{Noop, Tick},
    };

    use super::*;
    use crate::subject::test_fleet;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn every_replay_is_refused_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let url: StoreUrl = format!("sqlite:{}", folder.path().join("replays.db").display()).parse().unwrap();
        let (queue, findings, fired) = (Name::new("messages").unwrap(), Findings::default(), Fired::default());
        let fleet = || Fleet::connect_with(&url, FleetOptions::new(test_fleet())).unwrap();
        let node = |shutdown: &Shutdown| {
            let node = fleet().node().source("ticks", Tick::every(Duration::from_millis(2)));
            tokio::spawn(node.handle_with("messages", Noop).run(shutdown.clone()))
        };
        let observer = Observer::start(fleet().store().clone(), queue.clone(), findings.clone());
        let replayer = Replayer {
            url: url.clone(),
            fleet: test_fleet(),
            queue,
            observer: Arc::new(observer),
            fired: fired.clone(),
            findings: findings.clone(),
        };
        let (first, second) = (Shutdown::new(), Shutdown::new());
        let nodes = [node(&first), node(&second)];
        let replays = replayer.start(1);
        // The baton passes on, so that there is an old one.
        replayer.observer.see(PATIENCE, |sight| sight.source().is_some_and(|source| source.holder.is_some())).await;
        first.graceful();
        let all = [Fault::ReplayToken, Fault::ReplaySpent, Fault::ReplayBaton];
        let deadline = Instant::now() + PATIENCE;
        let mut third = Vec::new();
        while all.iter().any(|fault| fired.count(*fault) == 0) {
            assert!(Instant::now() < deadline, "{fired:?} {:?}", findings.all());
            tokio::time::sleep(Duration::from_millis(20)).await;
            // Whichever of the two held the baton, it has passed on after both were replaced.
            if third.is_empty() && replayer.observer.past_batons().is_empty() {
                let shutdown = Shutdown::new();
                third.push((node(&shutdown), shutdown));
                second.graceful();
            }
        }
        drop(replays);
        first.graceful();
        second.graceful();
        third.iter().for_each(|(_, shutdown)| shutdown.graceful());
        for node in nodes.into_iter().chain(third.into_iter().map(|(node, _)| node)) {
            node.await.unwrap().unwrap();
        }
        assert_eq!(findings.all(), Vec::<String>::new());
    }
}
