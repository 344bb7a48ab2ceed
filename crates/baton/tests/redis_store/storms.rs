//! By hand, with as many messages as `BATON_MANY` says (50,000): what the server spends on a storm of failures, how long its
//! longest calls are, what a beat costs among a thousand sources of others, and that keys which have expired keep nobody out. Times depend on the machine, so they are told and not judged; `bounds.rs` judges what is counted.
//!
//! `BATON_MANY=1000000 cargo test -p baton-fleet --test redis_store -- --ignored --nocapture storms`

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use baton::{
    Key, MessageId, SessionId,
    store::{message::*, *},
};
use bytes::Bytes;

use crate::{
    RedisServer, behind,
    bounds::{balanced, claim_all, push, session, settle_all},
    claim, join, name, store,
};

fn many() -> u64 {
    std::env::var("BATON_MANY").ok().and_then(|many| many.parse().ok()).unwrap_or(50_000)
}

/// Seconds that the server has computed.
fn cpu(server: &RedisServer) -> f64 {
    let text: String = behind(server, "INFO cpu");
    let of = |field: &str| text.lines().find_map(|line| line.strip_prefix(field)?.trim().parse::<f64>().ok()).unwrap();
    of("used_cpu_user:") + of("used_cpu_sys:")
}

/// A row of the server's log of slow calls: number, time, microseconds, words, from whom, under which name.
type SlowCall = (u64, u64, u64, Vec<Vec<u8>>, String, String);

/// The longest call of each kind since the last time, in milliseconds.
fn tell_longest(server: &RedisServer, after: &str) {
    let entries: Vec<SlowCall> = behind(server, "SLOWLOG GET 100000");
    let mut longest: BTreeMap<String, u64> = BTreeMap::new();
    for (_, _, micros, words, ..) in entries {
        let word = |nth: usize| String::from_utf8_lossy(&words[nth]).to_ascii_lowercase();
        let kind = match word(0).as_str() {
            "fcall" => word(1).rsplit('_').next().unwrap_or_default().to_owned(),
            word => word.to_owned(),
        };
        let most = longest.entry(kind).or_default();
        *most = micros.max(*most);
    }
    let _: String = behind(server, "SLOWLOG RESET");
    println!(
        "{after}: the longest calls, in ms: {:?}",
        longest.iter().map(|(k, v)| (k, *v as f64 / 1e3)).collect::<Vec<_>>()
    );
}

#[ignore = "by hand"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_failures_by_the_clock() {
    let server = RedisServer::start(&["--slowlog-log-slower-than", "1000", "--slowlog-max-len", "100000"]);
    let (store, many) = (Arc::new(store(&server)), many());
    let node = session(&store, Duration::from_secs(60)).await;
    push(&store, many).await;
    tell_longest(&server, "pushed");
    let (mut settling, mut claiming) = (0.0, 0.0);
    for attempt in 1..=3 {
        let before = cpu(&server);
        let claims = claim_all(&node).await;
        claiming += cpu(&server) - before;
        tell_longest(&server, "claimed");
        let outcome = match attempt {
            3 => Outcome::Failed { error: "in vain".to_owned() },
            _ => Outcome::Retry { after_ms: 0, error: "not yet".to_owned() },
        };
        let before = cpu(&server);
        settle_all(&node, &claims, &outcome).await;
        settling += cpu(&server) - before;
        tell_longest(&server, "failed");
    }
    let outcomes = 3.0 * many as f64;
    println!(
        "{many} messages that fail three times: {:.2} µs of Redis an outcome to report it, {:.2} with its claim",
        settling * 1e6 / outcomes,
        (settling + claiming) * 1e6 / outcomes
    );
    node.begin_removal(name("q")).await.unwrap();
    let half = many / 2;
    let ids = |from: u64, to: u64| (from..=to).map(MessageId).collect();
    node.dispose(name("q"), ids(1, half), Disposal::Requeue).await.unwrap();
    tell_longest(&server, "half put back");
    node.dispose(name("q"), ids(half + 1, many), Disposal::Remove).await.unwrap();
    tell_longest(&server, "half disposed of");
    // Sessions without beats, which the storm may have outlasted.
    let (client, silent) = (join(&store, Kind::Client).await, join(&store, Kind::Node).await);
    for claim_no in 1.. {
        if ask(&*store, claim(silent, claim_no, 1_000)).await.unwrap().spans.is_empty() {
            break;
        }
    }
    let _: u64 = behind(&server, &format!("ZADD {{fleet/0}}:sessions 0 {silent}"));
    // The beats of the node are told of it too, and help.
    let reaped = ask(&*store, Reap { session: client, target: silent }).await.unwrap();
    assert!(matches!(reaped, Reaped::Taken(_) | Reaped::Gone), "{reaped:?}");
    while ask(&*store, Reap { session: client, target: silent }).await.unwrap() != Reaped::Gone {}
    assert_eq!(balanced(&store).await.ready, half);
    tell_longest(&server, "reaped");
    claim_all(&node).await;
    node.leave().await.unwrap();
    tell_longest(&server, "left");
    balanced(&store).await;
    tell_longest(&server, "counted");
    ask(&*store, Leave { session: client }).await.unwrap();
    assert!(ask(&*store, Destroy).await.unwrap().is_some());
    tell_longest(&server, "destroyed");
}

/// A source of a name with this number.
fn offer(number: u32) -> Offer {
    let source = name(&format!("source-{number}"));
    Offer { source, queue: name("q"), definition: Digest::of(b"it"), adopts: false }
}

#[ignore = "by hand"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_beat_among_a_thousand_sources_in_a_storm_of_them_by_the_clock() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let node = async |offers: Vec<Offer>| {
        let (session, host, queues) = (SessionId::random(), "here".to_owned(), vec![name("q")]);
        let (kind, pid, lease_ms, heartbeat_ms, former) = (Kind::Node, 1, 60_000, 100, None);
        ask(&store, Join { session, kind, host, pid, queues, lease_ms, heartbeat_ms, offers, former }).await.unwrap();
        session
    };
    let _all = node((0..1_000).map(offer).collect()).await;
    let few = node((0..10).map(offer).collect()).await;
    for beats in [1_000, 10_000] {
        let before = cpu(&server);
        for _ in 0..beats {
            ask(&store, Beat { session: few, report: Bytes::new(), asks: Vec::new() }).await.unwrap();
        }
        let micros = (cpu(&server) - before) * 1e6 / f64::from(beats);
        println!("1,000 sources known, 10 offered: {micros:.1} µs of Redis a beat ({beats})");
    }
    let stats: String = behind(&server, "INFO commandstats");
    println!("{}", stats.lines().find(|line| line.starts_with("cmdstat_fcall:")).unwrap_or_default());
}

#[ignore = "by hand"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_have_expired_keep_nobody_out_in_a_storm_of_them() {
    let server = RedisServer::start(&[]);
    let (store, many) = (store(&server), many());
    let client = join(&store, Kind::Client).await;
    let submission = |number: u64, lives_ms| {
        let mut builder = ParcelBuilder::default();
        builder.add(Body::new(b"1").unwrap()).unwrap();
        let key =
            Some(SubmissionKey { key: Key::new(&format!("k{number}")).unwrap(), digest: Digest::of(b"1"), lives_ms });
        Submission { queue: name("q"), parcel: builder.finish().unwrap(), key, call: None }
    };
    let mut submit_no = 0;
    let mut stored = async |from: u64, count: u64, lives_ms| {
        let mut stored = 0;
        for begin in (from..from + count).step_by(1_000) {
            submit_no += 1;
            let submissions =
                (begin..(begin + 1_000).min(from + count)).map(|number| submission(number, lives_ms)).collect();
            let submit = Submit {
                session: client,
                submit_no,
                submissions,
                bookmark: None,
                max_queue_bytes: 1 << 40,
                max_keys: many,
            };
            let verdicts = ask(&store, submit).await.unwrap().submissions;
            stored += verdicts.iter().filter(|verdict| matches!(verdict, SubmissionVerdict::Stored { .. })).count();
        }
        stored as u64
    };
    // So long that none expires while they are pushed.
    let lives_ms = 30_000 + many / 20;
    assert_eq!(stored(0, many, lives_ms).await, many);
    assert_eq!(stored(many, 1, lives_ms).await, 0, "at the bound");
    tokio::time::sleep(Duration::from_millis(lives_ms)).await;
    println!("{} of 10,000 new keys beside {many} that have expired", stored(2 * many, 10_000, 60_000).await);
    assert_eq!(stored(3 * many, 10_000.min(many - 10_000), 60_000).await, 10_000.min(many - 10_000));
}
