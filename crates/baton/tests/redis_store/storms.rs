//! By hand, with as many messages as `BATON_MANY` says (50,000): what the server spends on a storm of failures, and how long
//! its longest calls are. Times depend on the machine, so they are told and not judged; `bounds.rs` judges what is counted.
//!
//! `BATON_MANY=1000000 cargo test -p baton-fleet --test redis_store -- --ignored --nocapture storms`

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use baton::{
    MessageId,
    store::{message::*, *},
};

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
            3 => Outcome::Dead { error: "in vain".to_owned() },
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
    node.drain(name("q")).await.unwrap();
    let half = many / 2;
    let ids = |from: u64, to: u64| (from..=to).map(MessageId).collect();
    node.dispose(name("q"), ids(1, half), Disposal::Requeue).await.unwrap();
    tell_longest(&server, "half put back");
    node.dispose(name("q"), ids(half + 1, many), Disposal::Drain).await.unwrap();
    tell_longest(&server, "half disposed of");
    // Sessions without beats, which the storm may have outlasted.
    let (client, silent) = (join(&store, Kind::Client).await, join(&store, Kind::Node).await);
    for claim_no in 1.. {
        if ask(&*store, claim(silent, claim_no, 1_000)).await.unwrap().pieces.is_empty() {
            break;
        }
    }
    let _: u64 = behind(&server, &format!("ZADD {{fleet/0}}:sessions 0 {silent}"));
    // The beats of the node are told of it too, and help.
    let reaped = ask(&*store, Reap { session: client, target: silent }).await.unwrap();
    assert!(matches!(reaped, Reaped::Taken { .. } | Reaped::Gone), "{reaped:?}");
    while ask(&*store, Reap { session: client, target: silent }).await.unwrap() != Reaped::Gone {}
    assert_eq!(balanced(&store).await.ready, half);
    tell_longest(&server, "reaped");
    claim_all(&node).await;
    node.leave().await.unwrap();
    tell_longest(&server, "left");
    balanced(&store).await;
    tell_longest(&server, "counted");
    ask(&*store, Leave { session: client }).await.unwrap();
    assert!(ask(&*store, Purge).await.unwrap().is_some());
    tell_longest(&server, "purged");
}
