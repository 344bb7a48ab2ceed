//! A fleet operated by a program, without the command line.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test ends at what it did not expect")]

#[path = "../../examples/admin.rs"]
#[expect(dead_code, reason = "its main is for people")]
mod example;
#[path = "../../examples/node.rs"]
#[expect(dead_code, reason = "its main is for people")]
mod node_example;

use std::{
    io::Write as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use baton::{
    Context, Done, Failure, Fleet, Key, MessageId, Name, Report, Shutdown,
    admin::{Admin, AdminError, BadBody, Import, ImportCause, Inputs, Note, Taken, Wanted},
    store::{Disposal, TakeSurvey},
    testing::TestFleet,
};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// Waits until the books of the only queue are as wanted.
async fn until(fleet: &Fleet, wanted: impl Fn(u64, u64) -> bool) {
    let look = async {
        while !fleet.ask(TakeSurvey).await.unwrap().queues.iter().any(|it| wanted(it.done, it.failed)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), look).await.expect("the fleet comes to it");
}

/// A fleet whose handler fails each message the first time, with three failed ones.
async fn fleet_with_errors() -> (Fleet, tokio::task::JoinHandle<Result<(), baton::NodeError>>) {
    let fleet = Fleet::connect("memory:").unwrap();
    let runs = Arc::new(AtomicU64::new(0));
    let handler = move |number: u64, _: Context| {
        let first = runs.fetch_add(1, SeqCst) < 3;
        std::future::ready(if first { Err(Failure::new(format!("no {number}"))) } else { Ok(Done::default()) })
    };
    let node = tokio::spawn(fleet.node().handler("messages", handler).run(Shutdown::new()));
    for number in 1..=3 {
        fleet.queue::<u64>("messages").push(&number).await.unwrap();
    }
    until(&fleet, |_, dead| dead == 3).await;
    (fleet, node)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_requeues_an_error_and_stops_the_fleet() {
    let (fleet, node) = fleet_with_errors().await;
    let stopped = example::look_after(&Admin::new(&fleet)).await.unwrap();
    assert_eq!((stopped.stopped, stopped.at_once, stopped.survivors.len()), (1, false, 0));
    node.await.unwrap().unwrap();
    until(&fleet, |done, dead| (done, dead) == (1, 2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_removed_only_once_they_were_taken() {
    let (fleet, _node) = fleet_with_errors().await;
    let admin = Admin::new(&fleet);
    let all = Wanted::default();
    let gone = admin.hand_over(&all, Some(Disposal::Remove), None, |_| Taken::Gone).await.unwrap();
    assert!((gone.count, gone.gone) == (0, true) && admin.errors(&all).await.unwrap().len() == 3);
    let wanted = Wanted { containing: Some("no 2".to_owned()), ..Wanted::default() };
    let taken = admin.hand_over(&wanted, Some(Disposal::Remove), None, |_| Taken::Yes).await.unwrap();
    assert_eq!((taken.count, taken.total), (1, 3));
    let causes = admin.causes(&all).await.unwrap();
    let [cause] = &causes.groups[..] else { panic!("{causes:?}") };
    assert_eq!((cause.cause.as_str(), cause.count), ("no #", 2));
    let json = serde_json::to_value(&admin.errors(&all).await.unwrap()[0]).unwrap();
    assert!(json["body"] == 1 && json["queue"] == "messages" && json["error"] == "no 1", "{json}");
    let alive = admin.destroy().await.unwrap_err();
    assert!(matches!(&alive, AdminError::NodesAlive { nodes } if nodes.len() == 1), "{alive}");
    assert!(admin.audit(None, Some(Duration::from_secs(1))).await.unwrap().balanced);
}

/// What the only node says it has counted, once it has run so many.
async fn report_of(fleet: &Fleet, run: u64) -> Report {
    let look = async {
        loop {
            let survey = fleet.ask(TakeSurvey).await.unwrap();
            let mut reports = survey.sessions.iter().filter_map(|it| serde_json::from_slice::<Report>(&it.report).ok());
            if let Some(report) = reports.find(|report| report.run == run) {
                return report;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), look).await.expect("the node tells it")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requeued_message_does_not_count_as_having_waited_since_its_push() {
    let fleet = TestFleet::new();
    let node = fleet.node().handler("messages", async |_: u64, _: Context| Err(Failure::new("no")));
    let node = tokio::spawn(node.run(Shutdown::new()));
    let id = fleet.queue::<u64>("messages").push(&1).await.unwrap();
    until(&fleet, |_, dead| dead == 1).await;
    assert_eq!(report_of(&fleet, 1).await.waits.iter().sum::<u64>(), 1);
    fleet.advance(Duration::from_secs(3600));
    assert_eq!(Admin::new(&fleet).requeue(&name("messages"), vec![id]).await.unwrap(), 1);
    let report = report_of(&fleet, 2).await;
    assert_eq!(report.waits.iter().sum::<u64>(), 1, "{report:?}");
    assert!(report.percentile(0.99).unwrap() < 60_000.0, "{report:?}");
    node.abort();
}

#[tokio::test]
async fn input_under_a_key_is_stored_once_and_a_bad_line_is_named() {
    let fleet = Fleet::connect("memory:").unwrap();
    let admin = Admin::new(&fleet);
    let key = Some(Key::new("june").unwrap());
    let import = Import { key, max_body: 16, ..Import::to(name("messages")) };
    let lines = |text: &'static str| {
        let mut inputs = Inputs::new();
        inputs.lines("list", text.as_bytes());
        inputs
    };
    let mut seen = Vec::new();
    let error = admin.import(lines("1\n\n2\n{\n"), &import, &Shutdown::new(), |_| {}).await.unwrap_err();
    assert!(matches!(&error.cause, ImportCause::Bad { at, why: BadBody::NotJson { .. } } if at == "line 4 of list"));
    assert_eq!(error.account.as_ref().unwrap().stored, 0);
    let receipt = admin.import(lines("1\n\n2\n"), &import, &Shutdown::new(), |it| seen.push(it.messages)).await;
    assert_eq!((receipt.unwrap().pushed, seen), (2, vec![2]));
    let again = admin.import(lines("1\n2\n3\n"), &import, &Shutdown::new(), |_| {}).await.unwrap();
    assert_eq!((again.pushed, again.duplicates), (1, 2));
    assert_eq!(admin.importer(import.clone()).await.unwrap().taken(), 3);
    let elsewhere = admin.importer(Import { queue: name("other"), ..import.clone() }).await.err().unwrap();
    assert!(matches!(elsewhere.cause, ImportCause::OtherQueue { .. }) && elsewhere.account.is_none(), "{elsewhere}");
    let other = admin.import(lines("7\n8\n9\n"), &import, &Shutdown::new(), |_| {}).await.unwrap_err();
    assert!(matches!(other.cause, ImportCause::OtherInput { lines: 3, .. }), "{other}");
    let (import, shutdown) = (Import { key: None, ..import }, Shutdown::new());
    let large = admin.import(lines("\"12345678901234567890\""), &import, &shutdown, |_| {});
    let large = large.await.unwrap_err().to_string();
    assert_eq!(large, "line 1 of list is over the limit of 16 bytes; nothing was stored");
}

#[tokio::test]
async fn an_unknown_queue_or_source_is_a_typed_error() {
    let fleet = Fleet::connect("memory:").unwrap();
    fleet.queue::<u64>("messages").push(&1).await.unwrap();
    let notes: Arc<Mutex<Vec<Note>>> = Arc::default();
    let heard = notes.clone();
    let admin = Admin::new(&fleet).reporting_to(Arc::new(move |note| heard.lock().unwrap().push(note.clone())));
    let Err(AdminError::Unknown(unknown)) = admin.pause(&name("typo")).await else { panic!("it is not there") };
    assert_eq!(unknown.known, [name("messages")]);
    assert!(admin.remove_source(&name("typo")).await.is_err());
    let refused = Err(AdminError::Unknown(unknown.clone()));
    assert_eq!(admin.audit(Some(&name("typo")), None).await, refused.clone().map(|()| unreachable!()));
    let wanted = Wanted { queue: Some(name("typo")), ..Wanted::default() };
    assert_eq!(admin.errors(&wanted).await, refused.map(|()| unreachable!()));
    // Whoever follows may be early.
    let (followed, gone) = (Shutdown::new(), |_: &[_]| Taken::Gone);
    followed.graceful();
    admin.hand_over(&wanted, None, Some(&followed), gone).await.unwrap();
    assert_eq!(*notes.lock().unwrap(), [Note::Unknown(unknown)]);
    assert!(admin.pause(&name("messages")).await.unwrap().paused);
    assert!(admin.overview().await.unwrap().queues[0].paused);
    let destroyed = admin.destroy().await.unwrap();
    assert_eq!((destroyed.queues, destroyed.messages, destroyed.failed), (1, 1, 0));
}

#[tokio::test]
async fn queues_that_feed_each_other_are_done_together() {
    let fleet = Fleet::connect("memory:").unwrap();
    let shutdown = Shutdown::new();
    let ticks = || baton::builtin::Tick::every(Duration::from_millis(1)).count(10);
    let mut node = fleet.node().source_into("a", "one", ticks()).source_into("c", "two", ticks());
    for (queue, next) in [("a", Some("b")), ("b", Some("c")), ("c", None)] {
        node = node.handler(queue, move |body: serde_json::Value, _: Context| async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let Some(next) = next else { return Err(Failure::new("the end of it")) };
            Done::default().then(next, &body)
        });
    }
    let node = tokio::spawn(node.run(shutdown.clone()));
    let admin = Admin::new(&fleet);
    let (queues, sources) = ([name("c"), name("b"), name("a")], [name("one"), name("two")]);
    assert_eq!(admin.until_done(&queues, &sources, |_, _| {}).await, [(name("c"), 20)]);
    shutdown.graceful();
    node.await.unwrap().unwrap();
}

#[tokio::test]
async fn work_is_done_when_its_source_has_ended_and_its_queue_is_empty() {
    let fleet = Fleet::connect("memory:").unwrap();
    let shutdown = Shutdown::new();
    let source = baton::builtin::Tick::every(Duration::from_millis(1)).count(5);
    let node = fleet.node().source_into("messages", "ticks", source).handle_with("messages", baton::builtin::Noop);
    let node = tokio::spawn(node.run(shutdown.clone()));
    let admin = Admin::new(&fleet);
    assert_eq!(admin.until_done(&[name("messages")], &[name("ticks")], |_, _| {}).await, []);
    let sources = admin.sources().await.unwrap();
    assert!(sources[0].ended && sources[0].name == name("ticks"));
    let offered = admin.remove_source(&name("ticks")).await;
    assert!(matches!(offered, Err(AdminError::Offered { .. })), "{offered:?}");
    shutdown.graceful();
    node.await.unwrap().unwrap();
    admin.remove_source(&name("ticks")).await.unwrap();
}

#[tokio::test]
async fn operations_run_in_tasks_of_their_own() {
    let admin = Admin::new(&Fleet::connect("memory:").unwrap());
    let mut tasks = tokio::task::JoinSet::new();
    let shared = admin.clone();
    tasks.spawn(async move {
        let mut inputs = Inputs::new();
        inputs.body("1");
        shared.import(inputs, &Import::to(name("messages")), &Shutdown::new(), drop).await.unwrap();
        let shutdown = Shutdown::new();
        shutdown.graceful();
        shared.hand_over(&Wanted::default(), None, Some(&shutdown), |_| Taken::Yes).await.unwrap();
        shared.watch(None, Duration::from_millis(1)).next().await.unwrap();
    });
    tasks.join_all().await;
    assert_eq!(admin.audit(None, None).await.unwrap().pushed, 1);
}

#[tokio::test]
async fn an_import_outlives_other_operations_of_its_admin() {
    let admin = Admin::new(&Fleet::connect("memory:").unwrap());
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut inputs = Inputs::new();
    inputs.lines("pipe", reader);
    let shared = admin.clone();
    let import = tokio::spawn(async move {
        let import = Import { key: Some(Key::new("k").unwrap()), ..Import::to(name("messages")) };
        shared.import(inputs, &import, &Shutdown::new(), |_| {}).await
    });
    for number in 1..=3 {
        writer.write_all(format!("{number}\n").as_bytes()).unwrap();
        while admin.audit(None, None).await.unwrap().pushed < number {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(admin.stop(None).await.unwrap().stopped, 0);
        assert_eq!(admin.requeue(&name("messages"), vec![MessageId(7)]).await.unwrap(), 0);
    }
    drop(writer);
    assert_eq!(import.await.unwrap().unwrap().pushed, 3);
}

#[tokio::test]
async fn the_example_of_a_node_runs_its_own_source_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("baton.db").display());
    assert_eq!(node_example::count_down(&url, 2_000).await.unwrap(), 2_000);
    assert_eq!(node_example::count_down(&url, 2_000).await.unwrap(), 0, "it has ended");
    let other = node_example::count_down(&url, 3).await.unwrap_err().to_string();
    assert!(other.starts_with("source countdown is known with another definition"), "{other}");
}
