//! What nodes say of a server that keeps nothing.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use baton::{Event, Fleet, Observer, Shutdown, builtin::Noop, store::StoreEvent};

use crate::{RedisServer, behind};

#[derive(Default)]
struct Told(Mutex<Vec<Event>>);

impl Observer for Told {
    fn on_event(&self, event: &Event) {
        self.0.lock().unwrap().push(event.clone());
    }
}

impl Told {
    fn count(&self, wanted: fn(&Event) -> bool) -> usize {
        self.0.lock().unwrap().iter().filter(|event| wanted(event)).count()
    }

    async fn until(&self, wanted: fn(&Event) -> bool, times: usize) {
        let look = async {
            while self.count(wanted) < times {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), look).await.unwrap();
    }
}

const fn joined(event: &Event) -> bool {
    matches!(event, Event::Joined { .. })
}

const fn keeps_nothing(event: &Event) -> bool {
    matches!(event, Event::Store(StoreEvent::KeepsNothing { .. }))
}

const fn renewed(event: &Event) -> bool {
    matches!(event, Event::StoreRenewed { .. })
}

/// A node of the fleet at this address, and what it says.
fn node(url: &str) -> (Arc<Told>, tokio::task::JoinHandle<Result<(), baton::NodeError>>) {
    let told = Arc::<Told>::default();
    let node = Fleet::connect(url).unwrap().node().handle_with("messages", Noop).observed_by(told.clone());
    (told, tokio::spawn(node.run(Shutdown::new())))
}

#[tokio::test]
async fn a_server_that_keeps_nothing_is_told_once_a_run_and_so_is_what_it_forgot() {
    let mut server = RedisServer::start(&[]);
    let (told, node) = node(&server.url());
    told.until(joined, 1).await;
    assert_eq!((told.count(keeps_nothing), told.count(renewed)), (1, 0));
    server.restart();
    told.until(renewed, 1).await;
    assert_eq!((told.count(keeps_nothing), told.count(renewed)), (2, 1));
    node.abort();
}

#[tokio::test]
async fn a_log_that_is_switched_off_under_a_node_is_told_of() {
    let server = RedisServer::start(&["--appendonly", "yes"]);
    let (told, node) = node(&server.url());
    told.until(joined, 1).await;
    assert_eq!(told.count(keeps_nothing), 0);
    for times in 1..=2 {
        behind::<()>(&server, "CONFIG SET appendonly no");
        told.until(keeps_nothing, times).await;
        behind::<()>(&server, "CONFIG SET appendonly yes");
        let seen = behind::<String>(&server, "INFO commandstats");
        // Two further looks: the one that sees the log may have been under way.
        let looks = |info: &str| -> u64 {
            let line = info.lines().find(|line| line.starts_with("cmdstat_info:calls=")).unwrap();
            line["cmdstat_info:calls=".len()..].split(',').next().unwrap().parse().unwrap()
        };
        let mut own = 0;
        while looks(&behind::<String>(&server, "INFO commandstats")) < looks(&seen) + 3 + own {
            own += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    assert_eq!(told.count(keeps_nothing), 2);
    node.abort();
}

#[tokio::test]
async fn nothing_is_told_of_a_server_that_keeps_something_or_may_not_be_asked() {
    // Synced every second, a log may lack what the node has just stored, and a new store would be told of rightly.
    for settings in [&["--appendonly", "yes", "--appendfsync", "always"][..], &["--save", "3600 1"]] {
        let mut server = RedisServer::start(settings);
        let (told, node) = node(&server.url());
        told.until(joined, 1).await;
        if settings.contains(&"--appendonly") {
            server.restart();
            told.until(joined, 2).await;
        }
        assert_eq!((told.count(keeps_nothing), told.count(renewed)), (0, 0), "{settings:?}");
        node.abort();
    }
    let server = RedisServer::start(&[]);
    behind::<()>(&server, "ACL SETUSER limited on nopass ~* &* +@all -config");
    let (told, node) = node(&format!("redis://limited:none@127.0.0.1:{}/", server.port));
    told.until(joined, 1).await;
    assert_eq!(told.count(keeps_nothing), 0);
    node.abort();
}
