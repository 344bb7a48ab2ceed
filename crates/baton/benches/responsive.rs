//! Whether a node stays responsive while its process searches for subset sums, in each mode but `inline`.
//!
//! A node on an SQLite store works in a runtime of two threads; in the same runtime its status is asked for every 5 ms and
//! a message is pushed and awaited, first alone, then beside a search that takes longer than the measurement. Printed are
//! percentiles of both, one JSON object a line, and whether the node is still the session it was.
#![expect(clippy::expect_used, reason = "a benchmark ends where its inputs are broken")]

use std::time::{Duration, Instant};

use baton::{
    Fleet, Shutdown,
    builtin::{
        Noop,
        subset_sum::{InProcess, Interleaved, Problem, SearchOptions, serve},
    },
    pool::Program,
    store::{Kind, TakeSurvey},
};

/// How long each is measured.
const TIME: Duration = Duration::from_secs(4);
const CHILD: &str = "--child";

fn main() {
    if std::env::args().any(|it| it == CHILD) {
        serve().ok();
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(measure());
}

async fn measure() {
    let folder = tempfile::tempdir().expect("a folder");
    let fleet = Fleet::connect(&format!("sqlite:{}", folder.path().join("store.db").display())).expect("a store");
    let shutdown = Shutdown::new();
    let node = tokio::spawn(fleet.node().handle_with("echo", Noop).run(shutdown.clone()));
    let mut random = fastrand::Rng::with_seed(7);
    let data: Vec<i64> = (0..64).map(|_| i64::from(random.i32(..))).collect();
    let (problem, options) = (Problem::new(data, 0), SearchOptions { count_only: true, ..SearchOptions::default() });
    while nodes(&fleet).await.is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let before = nodes(&fleet).await;
    sample("alone", &fleet).await;
    {
        let problem = problem.clone();
        let search = tokio::spawn(async move {
            let mut search = Interleaved::start(problem, options).await.expect("a search");
            while search.next().await.is_some() {}
        });
        sample("interleaved", &fleet).await;
        assert!(!search.is_finished(), "the search was too short");
        search.abort();
    }
    {
        let program = Program::new(std::env::current_exe().expect("this program"), [CHILD]);
        let mut search = InProcess::start(&program, &problem, &options).expect("a child");
        let search = tokio::spawn(async move { search.next().await });
        sample("process", &fleet).await;
        assert!(!search.is_finished(), "the search was too short");
        search.abort();
    }
    sample("alone", &fleet).await;
    println!("{{\"node_kept_its_session\":{}}}", nodes(&fleet).await == before);
    shutdown.graceful();
    node.await.expect("a node").expect("a node that ends well");
}

/// The sessions of nodes.
async fn nodes(fleet: &Fleet) -> Vec<String> {
    let survey = fleet.ask(TakeSurvey).await.expect("a survey");
    let nodes = survey.sessions.iter().filter(|it| it.kind == Kind::Node);
    nodes.map(|it| it.session.to_string()).collect()
}

async fn sample(what: &str, fleet: &Fleet) {
    let queue = fleet.queue::<u64>("echo");
    let (mut status, mut pushed) = (Vec::new(), Vec::new());
    let until = Instant::now() + TIME;
    while Instant::now() < until {
        // A timer that fires late counts too: that is how a beat would be late.
        let asked = Instant::now() + Duration::from_millis(5);
        tokio::time::sleep_until(asked.into()).await;
        fleet.ask(TakeSurvey).await.expect("a survey");
        status.push(asked.elapsed());
        let begun = Instant::now();
        queue.push(&1).await.expect("a push");
        pushed.push(begun.elapsed());
    }
    let ms = |times: &mut Vec<Duration>, share: f64| {
        times.sort_unstable();
        let place = (times.len() as f64 * share) as usize;
        times.get(place).or(times.last()).map_or(0.0, |it| it.as_secs_f64() * 1000.0)
    };
    println!(
        "{{\"beside\":{what:?},\"samples\":{},\"status_p50_ms\":{:.1},\"status_p99_ms\":{:.1},\"push_p50_ms\":{:.1},\
         \"push_p99_ms\":{:.1}}}",
        status.len(),
        ms(&mut status, 0.5),
        ms(&mut status, 0.99),
        ms(&mut pushed, 0.5),
        ms(&mut pushed, 0.99),
    );
}
