//! Drawn fleets in real processes on real stores: what the simulator draws, smaller and shorter, with handlers that burn
//! CPU, and everything that only real time, processes, files and sockets have.
//!
//! * [`processes`] starts them, [`node`] is what runs in each, and [`journal`] is what each writes down as it
//!   happens, so that a kill loses none of it.
//! * A run pushes and throws faults at the drawn times, waits until every source has been generated and everything is
//!   worked off, ends the processes, and has [`check`] compare the store with what the drawn fleet must have come to.
//!
//! Whatever must not be is a finding. The seed gives the fleet again, not the timing of its processes.

mod check;
mod journal;
pub mod node;
mod processes;

use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

use baton::{
    Fleet, FleetOptions, Name,
    store::{Books, Order, Survey, TakeSurvey, ask},
};
use tokio::time::{Instant, sleep, sleep_until};

use self::{
    journal::{Account, WINDING_DOWN},
    processes::Processes,
};
use crate::{
    sim::{
        body::Body,
        topology::{SimFault, Topology},
    },
    soak::{
        findings::Findings,
        nodes::{Blow, Nodes},
        target::{StoreKind, Target},
    },
};

/// The fleet of a run.
const FLEET: &str = "drawn";
/// How long nothing may happen before a wait is given up: longer than any lease, rest and retry in a row, on a busy
/// machine.
const STUCK: Duration = Duration::from_secs(25);
/// How long processes may take to end when asked.
const STOPPING: Duration = Duration::from_secs(20);

/// What a run came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What must not be.
    pub findings: Vec<String>,
    /// Messages.
    pub messages: u64,
    /// Those of them that failed for good.
    pub failed: u64,
    /// Attempts, those of killed processes too.
    pub attempts: u64,
    /// Lives of nodes.
    pub lives: u64,
}

/// Runs the fleet of a seed with its journals and logs in a folder.
pub async fn run(seed: u64, kind: StoreKind, program: &Path, folder: &Path) -> Outcome {
    let topology = Arc::new(Topology::small(seed));
    let findings = Findings::default();
    let target = Target::start(kind, folder).await;
    let options = FleetOptions { wait: STUCK, ..FleetOptions::new(Name::new(FLEET).expect("a good name")) };
    let fleet = Fleet::connect_with(&target.direct(), options).expect("an address");
    let processes = Processes::new(&topology, program, folder, target.addresses());
    let nodes = Nodes::start(&processes, seed, &findings);
    let run = FleetRun { topology, findings, target, fleet, folder, began: Instant::now() };
    let (disturbed, ()) = tokio::join!(run.throw_all(&nodes), run.push_all());
    sleep_until(run.began + Duration::from_millis(run.topology.length_ms)).await;
    run.until("every source is generated", |survey, account| run.generated(survey, account)).await;
    std::fs::write(folder.join(WINDING_DOWN), "").expect("a file in the folder");
    let sweeper = Nodes::start(&processes.sweeper(), seed, &run.findings);
    run.until("everything drains", |survey, _| run.ended(survey) && left(survey) == 0).await;
    run.stop(nodes, processes.count).await;
    // What was on its way from a source when it was asked to rest.
    run.until("everything drains", |survey, _| left(survey) == 0).await;
    run.stop(sweeper, 1).await;
    let account = run.account();
    let (messages, failed) = check::check(&run.topology, &run.fleet, &account, &disturbed, &run.findings).await;
    run.fleet.leave().await.ok();
    let attempts = account.begun.values().map(|nodes| nodes.len() as u64).sum();
    Outcome { findings: run.findings.all(), messages, failed, attempts, lives: account.lives }
}

struct FleetRun<'a> {
    topology: Arc<Topology>,
    findings: Findings,
    target: Target,
    fleet: Fleet,
    folder: &'a Path,
    began: Instant,
}

impl FleetRun<'_> {
    async fn at(&self, at_ms: u64) {
        sleep_until(self.began + Duration::from_millis(at_ms)).await;
    }

    /// Pushes what comes from outside.
    async fn push_all(&self) {
        for (moment, push) in self.topology.pushes.iter().enumerate() {
            self.at(push.at_ms).await;
            let bodies = Body::pushed_at(&self.topology, moment);
            let queue = self.fleet.queue::<Body>(&format!("q{}", push.queue));
            let pushed = match &*bodies {
                [one] => queue.push(one).await.map(drop).map_err(|error| error.to_string()),
                many => queue.push_all(many).await.map(drop).map_err(|error| error.to_string()),
            };
            self.findings.demand(pushed.is_ok(), || format!("a push is refused: {pushed:?}"));
        }
    }

    /// Throws the faults; the nodes whose sessions these may have ended.
    async fn throw_all(&self, nodes: &Nodes) -> BTreeSet<usize> {
        let thrown = self.topology.faults.iter().map(|plan| async {
            self.at(plan.at_ms).await;
            self.throw(plan.fault, nodes).await
        });
        futures_util::future::join_all(thrown).await.into_iter().flatten().collect()
    }

    async fn throw(&self, fault: SimFault, nodes: &Nodes) -> Option<usize> {
        let order = |order: Order| async {
            let ordered = self.fleet.ask(order).await;
            self.findings.demand(ordered.is_ok(), || format!("an order is refused: {ordered:?}"));
        };
        match fault {
            SimFault::Kill { node, .. } => {
                nodes.strike(node, Blow::Kill).await;
                return Some(node);
            }
            SimFault::Drain { node, .. } => {
                nodes.strike(node, Blow::Finish).await;
            }
            SimFault::Pause { node, ms } => {
                nodes.strike(node, Blow::Stop).await;
                sleep(Duration::from_millis(ms)).await;
                nodes.strike(node, Blow::Continue).await;
                return Some(node);
            }
            SimFault::HoldQueue { queue, ms } => {
                let name = Name::new(&format!("q{queue}")).expect("a good name");
                order(Order::Pause(name.clone())).await;
                sleep(Duration::from_millis(ms)).await;
                order(Order::Resume(name)).await;
            }
            SimFault::Lossy { .. } => self.target.lose_reply(),
            SimFault::Stall { ms } if !self.target.is_file() => {
                let slept = self.target.sleep(Duration::from_millis(ms)).await;
                self.findings.demand(slept.is_ok(), || format!("the server does not sleep: {slept:?}"));
            }
            SimFault::Stall { .. } | SimFault::Late { .. } => {}
        }
        None
    }

    /// Whether every source has been opened, and has given something if it ever does.
    fn generated(&self, survey: &Survey, account: &Account) -> bool {
        self.topology.sources.iter().enumerate().all(|(nth, plan)| {
            let gives =
                survey.sources.iter().any(|source| source.name.as_str() == plan.name && !source.cursor.is_empty());
            account.opened.contains(&nth) && (gives || !plan.is_lively())
        })
    }

    /// Whether every source that has an end has come to it.
    fn ended(&self, survey: &Survey) -> bool {
        let has_end = |name: &str| self.topology.sources.iter().any(|plan| plan.name == name && plan.end.is_some());
        survey.sources.iter().all(|source| source.ended || !has_end(source.name.as_str()))
    }

    fn account(&self) -> Account {
        Account::read(self.folder).expect("journals that can be read")
    }

    /// Waits for something, as long as anything happens.
    async fn until(&self, what: &str, mut good: impl FnMut(&Survey, &Account) -> bool) {
        let (mut moved, mut seen) = (Instant::now(), None);
        loop {
            let survey = match ask(&**self.fleet.store(), TakeSurvey).await {
                Ok(survey) => survey,
                Err(error) => return self.findings.note(format!("{what}: no survey: {error}")),
            };
            let account = self.account();
            if good(&survey, &account) {
                return;
            }
            let now = Some((account.lines, survey.queues.clone()));
            if now != seen {
                (moved, seen) = (Instant::now(), now);
            } else if moved.elapsed() > STUCK {
                let Survey { queues, sources, .. } = survey;
                return self.findings.note(format!("{what}: nothing happens; {queues:?}, {sources:?}"));
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Asks nodes to finish, and waits until they have.
    async fn stop(&self, nodes: Nodes, count: usize) {
        nodes.expect_ends();
        for slot in 0..count {
            nodes.strike(slot, Blow::Finish).await;
        }
        nodes.ended(STOPPING).await;
    }
}

fn left(survey: &Survey) -> u64 {
    let of_queue = |books: &Books| books.ready + books.delayed + books.in_flight;
    survey.queues.iter().map(of_queue).sum()
}
