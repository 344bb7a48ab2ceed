//! Sessions over a store that loses replies, repeats calls and drops calls: everything is still done exactly once.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use baton::{
    Fleet, FleetOptions, Key, Name,
    store::{
        Books, Clock, Disposal, Kind, Leave, MemoryStore, Offer, Peek, Recount, RedisOptions, RedisStore, Refusal,
        Store, SubmissionVerdict, TakeSurvey, ask,
        message::{Body, Digest, Outcome, Parcel, Range, Run, Submission},
        session::{Fate, Pushes, Session, SessionOptions},
    },
};
use baton_testkit::{
    faults::{Fault, FaultyStore},
    machine,
    server::{Persistence, RedisServer},
    subject::test_fleet,
};

fn queue() -> Name {
    Name::new("q").unwrap()
}

/// A store with a fault in every fifth call, and the same store without.
fn faulty() -> (Arc<FaultyStore>, Arc<dyn Store>) {
    let (seed, _) = machine::settings(0, 0);
    println!("BATON_SEED={seed}");
    let sound: Arc<dyn Store> = Arc::new(MemoryStore::new(Clock::system()));
    (Arc::new(FaultyStore::random(sound.clone(), seed, 200)), sound)
}

async fn joined(store: Arc<dyn Store>, kind: Kind) -> Session {
    let options = SessionOptions { kind, queues: vec![queue()], ..SessionOptions::client() };
    loop {
        if let Ok(session) = Session::join(store.clone(), options.clone()).await {
            return session;
        }
    }
}

async fn books(store: &Arc<dyn Store>) -> Books {
    let recounted = ask(&**store, Recount { max_hold_ms: 1_000 }).await.unwrap();
    assert!(recounted.queues.iter().all(|queue| queue.balance()), "{recounted:?}");
    ask(&**store, TakeSurvey).await.unwrap().queues.into_iter().find(|books| books.queue == queue()).unwrap()
}

#[tokio::test]
async fn pushes_from_many_tasks_are_stored_once_each() {
    let (store, sound) = faulty();
    let session = joined(store.clone(), Kind::Client).await;
    let ids = Arc::new(Mutex::new(BTreeSet::new()));
    let tasks = (0..64).map(|task| {
        let (session, ids) = (session.clone(), ids.clone());
        tokio::spawn(async move {
            for nth in 0..40 {
                let body = format!("[{task},{nth}]");
                let submission = Submission {
                    queue: queue(),
                    parcel: Parcel::single(Body::new(body.as_bytes()).unwrap()),
                    key: None,
                    call: None,
                };
                match session.submit(vec![submission], None).await.unwrap()[..] {
                    [SubmissionVerdict::Stored { first }] => {
                        assert!(ids.lock().unwrap().insert(first), "id {first} twice")
                    }
                    ref other => panic!("{other:?}"),
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert!(store.met() > 0, "no fault fired");
    let books = books(&sound).await;
    assert_eq!((books.pushed, ids.lock().unwrap().len()), (64 * 40, 64 * 40));
}

#[tokio::test]
async fn claims_and_settles_finish_everything_once() {
    const COUNT: u64 = 3_000;
    let (store, sound) = faulty();
    let client = joined(sound.clone(), Kind::Client).await;
    for _ in 0..COUNT {
        let submission =
            Submission { queue: queue(), parcel: Parcel::single(Body::new(b"1").unwrap()), key: None, call: None };
        client.submit(vec![submission], None).await.unwrap();
    }
    let worker = joined(store.clone(), Kind::Node).await;
    let tasks = (0..4).map(|task| {
        let (worker, sound) = (worker.clone(), sound.clone());
        tokio::spawn(async move {
            let mut round = task;
            loop {
                round += 1;
                let claim = worker.claim(queue(), 7, 1 << 20);
                if round % 5 == 0 {
                    // A caller that goes away must not strand what was claimed for it.
                    tokio::time::timeout(Duration::ZERO, claim).await.ok();
                    continue;
                }
                match claim.await.unwrap().held {
                    Some(held) => {
                        let (claim_no, queue, spans) = held.into_parts();
                        let runs = spans.iter().map(|(span, _)| Run {
                            claim_no,
                            queue: queue.clone(),
                            range: span.range,
                            outcome: Outcome::DONE,
                        });
                        let runs = runs.collect();
                        if round % 3 == 0 {
                            tokio::time::timeout(Duration::ZERO, worker.settle(runs)).await.ok();
                        } else {
                            assert_eq!(worker.settle(runs).await.unwrap().refused, []);
                        }
                    }
                    None if books(&sound).await.done == COUNT => break,
                    None => tokio::task::yield_now().await,
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert!(store.met() > 0, "no fault fired");
    let books = books(&sound).await;
    assert_eq!((books.done, books.ready, books.in_flight, books.stale_settles), (COUNT, 0, 0, 0));
}

#[tokio::test]
async fn disposals_are_made_once() {
    let (store, sound) = faulty();
    let session = joined(store.clone(), Kind::Node).await;
    let submission = |body: &[u8]| Submission {
        queue: queue(),
        parcel: Parcel::single(Body::new(body).unwrap()),
        key: None,
        call: None,
    };
    session.submit((0..50).map(|_| submission(b"1")).collect(), None).await.unwrap();
    let Some(held) = session.claim(queue(), 50, 1 << 20).await.unwrap().held else { panic!("nothing to claim") };
    let (claim_no, _, spans) = held.into_parts();
    let outcome = Outcome::Failed { error: "no".to_owned() };
    let runs =
        spans.iter().map(|(span, _)| Run { claim_no, queue: queue(), range: span.range, outcome: outcome.clone() });
    session.settle(runs.collect()).await.unwrap();
    let upto = session.begin_removal(queue()).await.unwrap().upto;
    let mut after = 0;
    while after < upto {
        let peek = Peek { queue: queue(), after, upto, limit: 7, max_bytes: 1 << 20 };
        let page = ask(&*sound, peek).await.unwrap().errors;
        after = page.last().unwrap().seq;
        let ids: Vec<_> = page.iter().map(|error| error.id).collect();
        assert_eq!(session.dispose(queue(), ids.clone(), Disposal::Remove).await.unwrap().count, ids.len() as u64);
    }
    let books = books(&sound).await;
    assert_eq!((books.failed, books.removed), (0, 50));
}

#[tokio::test]
async fn a_fleet_joins_anew_when_its_session_is_over() {
    let sound: Arc<dyn Store> = Arc::new(MemoryStore::new(Clock::system()));
    let fleet = Fleet::over(sound.clone(), FleetOptions::new(test_fleet()));
    let queue = fleet.queue::<str>("q");
    assert_eq!(queue.push("one").await.unwrap().0, 1);
    let session = fleet.session().await.unwrap().id();
    ask(&*sound, Leave { session }).await.unwrap();
    assert_eq!(queue.push("two").await.unwrap().0, 2, "the old session is over before the submission is sent");
    assert_ne!(fleet.session().await.unwrap().id(), session);
    let key = Key::new("k").unwrap();
    assert_eq!(queue.push_once(&key, "three").await.unwrap().0, 3);
    assert_eq!(queue.push_once(&key, "three").await.unwrap().0, 3);
    assert!(queue.push_once(&key, "four").await.unwrap_err().to_string().contains("another body"));
    assert!(fleet.queue::<str>("not a name").push("x").await.unwrap_err().to_string().contains("not usable"));
    fleet.leave().await.unwrap();
    assert_eq!(ask(&*sound, TakeSurvey).await.unwrap().sessions, []);
}

/// One submit whose reply is lost is repeated after a pause; what goes on meanwhile leaves its answer where it is kept.
#[tokio::test(start_paused = true)]
async fn submits_go_on_only_as_far_as_the_answer_of_a_repeated_one_is_kept() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new(Clock::system()))));
    let session = joined(store.clone(), Kind::Client).await;
    let submission =
        || Submission { queue: queue(), parcel: Parcel::single(Body::new(b"1").unwrap()), key: None, call: None };
    session.submit(vec![submission()], None).await.unwrap();
    store.order(Fault::DropReply);
    let unlucky = tokio::spawn({
        let (session, submission) = (session.clone(), submission());
        async move { session.submit(vec![submission], None).await }
    });
    while store.met() == 0 {
        tokio::task::yield_now().await;
    }
    for _ in 0..100 {
        session.submit(vec![submission()], None).await.unwrap();
    }
    assert_eq!(unlucky.await.unwrap(), Ok(vec![SubmissionVerdict::Stored { first: 2 }]));
}

/// A claim that takes long, such as one that waits for messages, does not end the session of those that go on.
#[tokio::test]
async fn claims_go_on_while_one_with_a_low_number_is_under_way() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new(Clock::system()))));
    let session = joined(store.clone(), Kind::Client).await;
    let submission =
        Submission { queue: queue(), parcel: Parcel::single(Body::new(b"1").unwrap()), key: None, call: None };
    session.submit(vec![submission], None).await.unwrap();
    store.order(Fault::Delay(Duration::from_millis(300)));
    // Its caller goes away; it goes on by itself.
    let slow = session.claim(queue(), 1, 1 << 20);
    tokio::time::timeout(Duration::from_millis(1), slow).await.ok();
    assert_eq!(store.met(), 1);
    let mut used = 0;
    while used < 100 {
        // What is claimed and dropped goes back, and can be claimed again.
        match session.claim(queue(), 1, 1 << 20).await.unwrap().held {
            Some(_) => used += 1,
            None => tokio::task::yield_now().await,
        }
    }
}

/// A session of this store with a baton, and the pushes under it.
async fn generating(store: Arc<dyn Store>, max_queue_bytes: u64) -> (Session, Pushes<u64>) {
    let (source, definition) = (Name::new("numbers").unwrap(), Digest::of(b"numbers"));
    let offers = vec![Offer { source: source.clone(), queue: queue(), definition, adopts: false }];
    let options = SessionOptions { kind: Kind::Node, queues: vec![queue()], offers, ..SessionOptions::client() };
    let session = loop {
        if let Ok(session) = Session::join(store.clone(), options.clone()).await {
            break session;
        }
    };
    let taken = session.take(source.clone()).await.unwrap();
    let pushes = session.pushes(source, taken, max_queue_bytes);
    (session, pushes)
}

/// Replies are lost, calls are lost and come late, so that batches overtake each other.
#[tokio::test]
async fn batches_are_stored_once_and_in_order() {
    const BATCHES: u64 = 400;
    let (store, sound) = faulty();
    let (_session, mut pushes) = generating(store, 1 << 20).await;
    let (mut sent, mut stored, mut gaps) = (0, 0, 0);
    while stored < BATCHES {
        while pushes.under_way() < 4 && sent < BATCHES {
            sent += 1;
            let body = Parcel::single(Body::new(sent.to_string().as_bytes()).unwrap());
            pushes.send(Some(body), Some(sent.to_string()), sent == BATCHES, sent);
        }
        match pushes.fate().await.unwrap() {
            Fate::Stored { push, kept, .. } => {
                stored += 1;
                let from = if stored == 1 { String::new() } else { (stored - 1).to_string() };
                assert_eq!((push.batch_no, push.from, kept), (stored, from, stored));
            }
            Fate::Refused { refusal: Refusal::Gap { .. }, batch_no } => {
                gaps += 1;
                assert_eq!(batch_no, stored + 1);
                pushes.send_again(Duration::ZERO).await;
            }
            fate => panic!("{fate:?}"),
        }
    }
    println!("{gaps} gaps");
    assert_eq!((books(&sound).await.pushed, pushes.under_way()), (BATCHES, 0));
    let survey = ask(&*sound, TakeSurvey).await.unwrap();
    assert_eq!((survey.sources[0].cursor.as_str(), survey.sources[0].ended), ("400", true));
    pushes.send(None, None, false, 0);
    assert!(matches!(pushes.fate().await, Some(Fate::Ended)));
}

#[tokio::test]
async fn what_a_full_queue_refuses_is_sent_again_under_its_number() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Clock::system()));
    let (session, mut pushes) = generating(store.clone(), 1).await;
    for batch in 1..=3 {
        pushes.send(Some(Parcel::single(Body::new(b"1").unwrap())), None, false, batch);
    }
    for batch in 1..=3 {
        assert!(matches!(pushes.fate().await, Some(Fate::Stored { kept, .. }) if kept == batch));
        if batch < 3 {
            let refused = pushes.fate().await;
            let full = matches!(&refused, Some(Fate::Refused { batch_no, refusal: Refusal::Full { .. } })
                if *batch_no == batch + 1);
            assert!(full, "{refused:?}");
        }
        let (claim_no, queue, spans) = session.claim(queue(), 1, 1 << 10).await.unwrap().held.unwrap().into_parts();
        let range = spans[0].0.range;
        session.settle(vec![Run { claim_no, queue, range, outcome: Outcome::DONE }]).await.unwrap();
        pushes.send_again(Duration::from_millis(1)).await;
    }
    assert_eq!((books(&store).await.done, pushes.under_way()), (3, 0));
    session.leave().await.unwrap();
}

/// As one of a queue with a higher concurrency than a settle has room for.
#[tokio::test]
async fn a_report_of_more_runs_than_a_settle_takes_is_made_in_several() {
    const MESSAGES: u64 = 70_000;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Clock::system()));
    let fleet = Fleet::over(store.clone(), FleetOptions::new(test_fleet()));
    fleet.queue::<u64>("q").push_all(1..=MESSAGES).await.unwrap();
    let session = joined(store.clone(), Kind::Node).await;
    let mut runs = Vec::new();
    while runs.len() < usize::try_from(MESSAGES).unwrap() {
        let (claim_no, queue, spans) = session.claim(queue(), 4_096, 4 << 20).await.unwrap().held.unwrap().into_parts();
        for range in spans.iter().map(|(span, _)| span.range) {
            let single = |first| Range { first, len: 1 };
            runs.extend((range.first..range.end()).map(|id| Run {
                claim_no,
                queue: queue.clone(),
                range: single(id),
                outcome: Outcome::DONE,
            }));
        }
    }
    let again = runs.last().unwrap().clone();
    runs.push(again.clone());
    let settled = session.settle(runs).await.unwrap();
    assert_eq!(settled.refused, [(queue(), again.claim_no, again.range)], "refusals of all calls are told");
    assert_eq!(books(&store).await.done, MESSAGES);
    session.leave().await.unwrap();
}

/// A program that makes a runtime a call, and tests that share a fleet, do not hang: the next call joins anew.
#[test]
fn a_fleet_outlives_the_runtime_of_its_first_call() {
    let server = RedisServer::start(Persistence::None);
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new(Clock::system()));
    let redis = RedisStore::open(&server.url(), test_fleet(), RedisOptions::default()).unwrap();
    for store in [memory, Arc::new(redis)] {
        let fleet = Fleet::over(store, FleetOptions::new(test_fleet()));
        for number in 1..=3_u64 {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let pushed = async { fleet.queue::<u64>("q").push(&number).await.unwrap().0 };
            let pushed = async { tokio::time::timeout(Duration::from_secs(60), pushed).await.unwrap() };
            assert_eq!(runtime.block_on(pushed), number);
        }
    }
}
