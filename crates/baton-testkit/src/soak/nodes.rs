//! Real node processes: started, signalled by process id, started again when killed.
//!
//! Each process is owned by one task, which alone signals it and waits for it: a signal never goes to a process id
//! that has been given to somebody else. A node that ends without having been killed is a finding.

use std::{
    os::unix::process::ExitStatusExt as _,
    process::ExitStatus,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use baton::process::{Child, Leash};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};

use super::{findings::Findings, launch::Roster, random::Random};

/// What is done to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blow {
    /// kill -9; it is started again after a moment.
    Kill,
    /// SIGSTOP.
    Stop,
    /// SIGCONT.
    Continue,
    /// SIGTERM, on which it finishes and ends; it is started again after a moment.
    Finish,
}

type Order = (Blow, oneshot::Sender<bool>);

struct Slot {
    orders: mpsc::Sender<Order>,
    seen: Arc<Seen>,
    task: JoinHandle<()>,
}

/// What others see of a slot.
#[derive(Debug, Default)]
struct Seen {
    /// Its process id; 0 between two processes.
    pid: AtomicU32,
    stopped: AtomicBool,
}

/// Nodes under supervision; all are killed when dropped.
pub struct Nodes {
    slots: Vec<Slot>,
    ending: Arc<AtomicBool>,
    failing: Arc<AtomicU32>,
    findings: Findings,
}

impl Nodes {
    /// Starts them.
    #[must_use]
    pub fn start(roster: &(impl Roster + Clone + 'static), seed: u64, findings: &Findings) -> Self {
        let roster: Arc<dyn Roster> = Arc::new(roster.clone());
        let (ending, failing) = (Arc::<AtomicBool>::default(), Arc::<AtomicU32>::default());
        let slots = (0..roster.count()).map(|number| {
            let (orders, inbox) = mpsc::channel(8);
            let seen = Arc::<Seen>::default();
            let keeper = Keeper {
                roster: roster.clone(),
                number,
                random: Random::part(seed, 100 + number as u64),
                seen: seen.clone(),
                ending: ending.clone(),
                failing: failing.clone(),
                findings: findings.clone(),
            };
            Slot { orders, seen, task: tokio::spawn(keeper.keep(inbox)) }
        });
        Self { slots: slots.collect(), ending, failing, findings: findings.clone() }
    }

    /// The node that runs as this process.
    #[must_use]
    pub fn by_pid(&self, pid: u32) -> Option<usize> {
        self.slots.iter().position(|slot| pid != 0 && slot.seen.pid.load(Relaxed) == pid)
    }

    /// The process of a node; none between two processes.
    #[must_use]
    pub fn pid(&self, slot: usize) -> Option<u32> {
        self.slots.get(slot).map(|slot| slot.seen.pid.load(Relaxed)).filter(|pid| *pid != 0)
    }

    /// The nodes that run and are not stopped, without one.
    #[must_use]
    pub fn running(&self, without: Option<usize>) -> Vec<usize> {
        let running = |seen: &Seen| seen.pid.load(Relaxed) != 0 && !seen.stopped.load(Relaxed);
        (0..self.slots.len()).filter(|slot| Some(*slot) != without && running(&self.slots[*slot].seen)).collect()
    }

    /// Strikes a node; whether there was a process to strike.
    pub async fn strike(&self, slot: usize, blow: Blow) -> bool {
        let (done, answer) = oneshot::channel();
        let Some(slot) = self.slots.get(slot) else { return false };
        slot.orders.send((blow, done)).await.is_ok() && answer.await.unwrap_or(false)
    }

    /// Nodes are asked to stop from now on: none is started again.
    pub fn expect_ends(&self) {
        self.ending.store(true, Relaxed);
    }

    /// Nodes may end by themselves with an error from now on, or no longer; each time counts.
    pub fn expect_failures(&self, are_expected: bool) {
        if are_expected {
            self.failing.fetch_add(1, Relaxed);
        } else {
            self.failing.fetch_sub(1, Relaxed);
        }
    }

    /// Waits until all have ended after [`Nodes::expect_ends`] and the order to stop; survivors are findings.
    pub async fn ended(mut self, limit: Duration) {
        let deadline = tokio::time::Instant::now() + limit;
        for (number, slot) in self.slots.iter_mut().enumerate() {
            if tokio::time::timeout_at(deadline, &mut slot.task).await.is_err() {
                self.findings.note(format!("node {number} did not stop within {limit:?} of the order"));
            }
        }
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        // The children are killed as their tasks are dropped.
        self.slots.iter().for_each(|slot| slot.task.abort());
    }
}

/// Owns the process of one slot.
struct Keeper {
    roster: Arc<dyn Roster>,
    number: usize,
    random: Random,
    seen: Arc<Seen>,
    ending: Arc<AtomicBool>,
    failing: Arc<AtomicU32>,
    findings: Findings,
}

impl Keeper {
    async fn keep(mut self, mut inbox: mpsc::Receiver<Order>) {
        for start in 0.. {
            let spawned = self.roster.command(self.number, start).and_then(|mut command| Child::start(&mut command));
            match spawned {
                Ok(child) => self.tend(child, &mut inbox).await,
                Err(error) => self.findings.note(format!("node {} does not start: {error}", self.number)),
            }
            self.seen.pid.store(0, Relaxed);
            self.seen.stopped.store(false, Relaxed);
            let pause = self.random.millis(50..500);
            // Orders that come in the meantime find nobody.
            let refuse = async {
                while let Some((_, done)) = inbox.recv().await {
                    done.send(false).ok();
                }
            };
            timeout(pause, refuse).await.ok();
            if self.ending.load(Relaxed) {
                return;
            }
        }
    }

    /// Follows a process to its end.
    async fn tend(&self, mut child: Child, inbox: &mut mpsc::Receiver<Order>) {
        self.seen.pid.store(child.pid(), Relaxed);
        // Held as long as this process lives: however it ends, the node hears of it and leaves.
        let _leash = Leash::of(&mut child);
        let (mut killed, mut asked) = (false, false);
        loop {
            tokio::select! {
                ended = child.wait() => {
                    let asked = asked || self.ending.load(Relaxed);
                    // One that was asked before it could listen is ended by the signal.
                    let good = |it: &ExitStatus| it.success() || it.signal() == Some(Signal::TERM.as_raw());
                    // With an error as its exit code.
                    let failed = |it: &ExitStatus| self.failing.load(Relaxed) > 0 && it.code().is_some();
                    let orderly =
                        killed || (asked && ended.as_ref().is_ok_and(good)) || ended.as_ref().is_ok_and(failed);
                    self.findings.demand(orderly, || match ended {
                        Ok(status) => format!("node {} ended by itself ({status}); see its log", self.number),
                        Err(error) => format!("node {} cannot be waited for: {error}", self.number),
                    });
                    return;
                }
                Some((blow, done)) = inbox.recv() => {
                    killed |= blow == Blow::Kill;
                    asked |= blow == Blow::Finish;
                    done.send(self.strike(&child, blow)).ok();
                }
            }
        }
    }

    /// The child has not been waited for, so its process id is still its own.
    fn strike(&self, child: &Child, blow: Blow) -> bool {
        let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let signal = match blow {
            Blow::Kill => Signal::KILL,
            Blow::Stop => Signal::STOP,
            Blow::Continue => Signal::CONT,
            Blow::Finish => Signal::TERM,
        };
        let struck = pid.is_some_and(|pid| kill_process(pid, signal).is_ok());
        if blow != Blow::Finish {
            self.seen.stopped.store(struck && blow == Blow::Stop, Relaxed);
        }
        struck
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::soak::launch::{Launch, Role};

    /// A node that tells its process id and sleeps.
    fn launch(folder: &tempfile::TempDir, script: &str) -> Launch {
        let program = folder.path().join("node.sh");
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let folder = folder.path().to_owned();
        let stores = vec!["memory:".into()];
        Launch { program, mixed: None, folder, stores, max_queue_bytes: 1, count: 2, role: Role::Auto, exec: None }
    }

    async fn until(mut good: impl FnMut() -> bool) {
        let waiting = async {
            while !good() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(20), waiting).await.expect("it comes about");
    }

    #[tokio::test]
    async fn killed_nodes_come_back_and_stopped_ones_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let findings = Findings::default();
        let nodes = Nodes::start(&launch(&folder, "#!/bin/sh\nexec sleep 60\n"), 1, &findings);
        until(|| nodes.running(None).len() == 2).await;
        let first = nodes.slots[0].seen.pid.load(Relaxed);
        assert_eq!((nodes.by_pid(first), nodes.by_pid(0)), (Some(0), None));
        assert!(nodes.strike(1, Blow::Stop).await);
        assert_eq!(nodes.running(None), [0]);
        assert!(nodes.strike(1, Blow::Continue).await);
        assert_eq!(nodes.running(Some(0)), [1]);
        assert!(nodes.strike(0, Blow::Kill).await);
        until(|| ![0, first].contains(&nodes.slots[0].seen.pid.load(Relaxed))).await;
        assert_eq!(findings.all(), Vec::<String>::new());
    }

    #[tokio::test]
    async fn nodes_that_end_unasked_or_stay_when_asked_are_findings() {
        let folder = tempfile::tempdir().unwrap();
        let findings = Findings::default();
        let nodes = Nodes::start(&launch(&folder, "#!/bin/sh\nexit 7\n"), 1, &findings);
        until(|| findings.all().len() >= 2).await;
        assert!(findings.all()[0].contains("ended by itself (exit status: 7)"), "{:?}", findings.all());
        drop(nodes);
        let findings = Findings::default();
        let nodes = Nodes::start(&launch(&folder, "#!/bin/sh\nexec sleep 60\n"), 1, &findings);
        until(|| nodes.running(None).len() == 2).await;
        nodes.expect_ends();
        nodes.ended(Duration::from_millis(50)).await;
        assert_eq!(findings.all().len(), 2);
        assert!(findings.all()[0].contains("did not stop"), "{:?}", findings.all());
    }
}
