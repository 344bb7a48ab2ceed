//! A fleet over a store, nodes that run, and what a follower gets.

use std::{sync::Arc, time::Duration};

use baton::{
    CallId, CallOptions, CallState, Fleet, FleetOptions, Follow, Followed, Node, NodeError, Shutdown, admin::Admin,
    store::Store,
};
use baton_testkit::subject::test_fleet;
use tokio::task::JoinHandle;

/// How long something may take on a busy machine before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Setting {
    pub(crate) fleet: Fleet,
}

impl Setting {
    pub(crate) fn over(store: Arc<dyn Store>) -> Self {
        Self { fleet: Fleet::over(store, FleetOptions::new(test_fleet())) }
    }

    pub(crate) async fn call(&self, queue: &str, body: u64) -> CallId {
        self.fleet.queue::<u64>(queue).call(&body, &CallOptions::default()).await.unwrap()
    }

    pub(crate) async fn state(&self, call: &CallId) -> CallState {
        self.fleet.call_status(call).await.unwrap().unwrap().state
    }

    /// Waits until a call is in this state.
    pub(crate) async fn until(&self, call: &CallId, state: CallState) {
        let reached = async {
            while self.state(call).await != state {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, reached).await;
        assert!(in_time.is_ok(), "{call} is not {state:?} but {:?}", self.state(call).await);
    }

    /// The books add up, also if the messages themselves are counted; done, dead and cancelled.
    pub(crate) async fn books(&self) -> [u64; 3] {
        let audit = Admin::new(&self.fleet).audit(None, Some(Duration::from_secs(10))).await.unwrap();
        assert!(audit.balanced, "{audit:?}");
        assert_eq!((audit.ready, audit.delayed, audit.in_flight), (0, 0, 0), "{audit:?}");
        [audit.done, audit.failed, audit.cancelled]
    }
}

/// A node that runs.
pub(crate) struct Running {
    pub(crate) shutdown: Shutdown,
    pub(crate) task: JoinHandle<Result<(), NodeError>>,
}

pub(crate) fn start(node: Node) -> Running {
    let shutdown = Shutdown::new();
    Running { task: tokio::spawn(node.run(shutdown.clone())), shutdown }
}

impl Running {
    pub(crate) async fn stop(self) {
        self.shutdown.graceful();
        self.task.await.unwrap().unwrap();
    }
}

/// All that a follower gets until the end, as `name data`.
pub(crate) async fn all(mut follow: Follow) -> Vec<String> {
    let mut told = Vec::new();
    let to_the_end = async {
        loop {
            match follow.next().await.unwrap() {
                Followed::Events(chunk) => {
                    told.extend(
                        chunk.events().iter().map(|it| format!("{} {}", it.event, String::from_utf8_lossy(&it.data))),
                    );
                }
                Followed::Gap { next } => told.push(format!("gap {next}")),
                Followed::End => break,
            }
        }
    };
    tokio::time::timeout(PATIENCE, to_the_end).await.expect("it ends");
    told
}
