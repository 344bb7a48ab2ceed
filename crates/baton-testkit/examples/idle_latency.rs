//! Idle latency from a push to the start of its handler in another process, beside a raw RPUSH/BLPOP pair on the same
//! server. Run with `cargo run --release -p baton-testkit --example idle_latency`.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a measurement stops at what it did not expect")]

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Command, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use baton::{Cancel, Context, Done, Fleet};
use baton_testkit::server::{Persistence, RedisServer};
use redis::AsyncCommands as _;

const PUSHES: usize = 1_000;
const WARM_UP: usize = 50;
const PAUSE: Duration = Duration::from_millis(3);

fn now_ns() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap()
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("worker") => worker(&arguments[2]).await,
        Some("blpop") => blpop(&arguments[2]).await,
        _ => measure().await,
    }
}

/// Prints how long ago each message was pushed.
fn tell(pushed_ns: u64) {
    writeln!(std::io::stdout().lock(), "{}", now_ns().saturating_sub(pushed_ns)).unwrap();
}

async fn worker(url: &str) {
    let fleet = Fleet::connect(url).unwrap();
    let node = fleet.node().handler("latency", |pushed_ns: u64, _: Context| {
        tell(pushed_ns);
        std::future::ready(Ok(Done::default()))
    });
    node.run(Cancel::new()).await.unwrap();
}

async fn blpop(url: &str) {
    let client = redis::Client::open(url).unwrap();
    let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
    let mut connection = client.get_multiplexed_async_connection_with_config(&config).await.unwrap();
    loop {
        let popped: Option<(String, u64)> = connection.blpop("raw", 1.0).await.unwrap();
        if let Some((_, pushed_ns)) = popped {
            tell(pushed_ns);
        }
    }
}

fn start(role: &str, url: &str) -> Child {
    Command::new(std::env::current_exe().unwrap()).args([role, url]).stdout(Stdio::piped()).spawn().unwrap()
}

/// Pushes at rest and collects what the other process says; p50 and p99 in microseconds.
async fn sample(mut child: Child, mut push: impl AsyncFnMut(u64)) -> (f64, f64) {
    let (sender, mut latencies) = tokio::sync::mpsc::unbounded_channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)).ok());
    let mut samples = Vec::new();
    for nth in 0..WARM_UP + PUSHES {
        push(now_ns()).await;
        let latency: u64 = latencies.recv().await.unwrap().parse().unwrap();
        if nth >= WARM_UP {
            samples.push(latency as f64 / 1e3);
        }
        tokio::time::sleep(PAUSE).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    samples.sort_by(f64::total_cmp);
    (samples[samples.len() / 2], samples[samples.len() * 99 / 100])
}

async fn through_fleet(url: &str) -> (f64, f64) {
    let fleet = Fleet::connect(url).unwrap();
    let queue = fleet.queue::<u64>("latency");
    sample(start("worker", url), async |now| {
        queue.push(&now).await.unwrap();
    })
    .await
}

async fn measure() {
    let server = RedisServer::start(Persistence::None);
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let sqlite = format!("sqlite:{}", folder.path().join("store.db").display());
    for round in 1..=3 {
        let raw = sample(start("blpop", &server.url()), async |now| {
            let _length: u64 = connection.rpush("raw", now).await.unwrap();
        })
        .await;
        let redis = through_fleet(&server.url()).await;
        let file = through_fleet(&sqlite).await;
        println!(
            "round {round}: raw p50 {:.0} p99 {:.0} µs · redis p50 {:.0} ({:.1}×) p99 {:.0} ({:.1}×) µs · sqlite p50 {:.0} p99 {:.0} µs",
            raw.0,
            raw.1,
            redis.0,
            redis.0 / raw.0,
            redis.1,
            redis.1 / raw.1,
            file.0,
            file.1
        );
    }
}
