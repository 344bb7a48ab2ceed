//! Calls that are cancelled, wherever they are, and whoever is killed.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use baton::{
    CallOptions, CallState, Cancelling, Context, Done, Failure, Followed, QueuePolicy, Since,
    builtin::Exec,
    pool::{Limits, Program},
    store::TakeSurvey,
};
use tokio::sync::Notify;

use crate::setting::{PATIENCE, Running, Setting, all, start};

/// Work on a cancelled call is broken off within a heartbeat, what is claimed ahead is not begun, and what waits neither.
pub(crate) async fn a_cancel_reaches_what_runs_and_what_is_claimed_ahead(setting: Setting) {
    let (begun, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    struct Guard(Arc<AtomicUsize>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (begins, drops) = (begun.clone(), dropped.clone());
    let policy = QueuePolicy { concurrency: 2, ..QueuePolicy::default() };
    let node = setting.fleet.node().policy(policy).handler("long", move |_: u64, context: Context| {
        begins.fetch_add(1, Ordering::SeqCst);
        let guard = Guard(drops.clone());
        async move {
            let _guard = guard;
            std::future::pending::<()>().await;
            drop(context);
            Ok(Done::default())
        }
    });
    let mut calls = Vec::new();
    for n in 0..20 {
        calls.push(setting.call("long", n).await);
    }
    let running = start(node);
    let both_run = async {
        while begun.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, both_run).await.unwrap();
    let since = Instant::now();
    // Those that run come last: what is free before that would begin others.
    for call in calls.iter().rev() {
        assert_eq!(setting.fleet.cancel_call(call).await.unwrap(), Cancelling::Marked);
    }
    for call in &calls {
        setting.until(call, CallState::Cancelled).await;
    }
    let took = since.elapsed();
    println!("20 calls were cancelled after {took:?}");
    assert_eq!((begun.load(Ordering::SeqCst), dropped.load(Ordering::SeqCst)), (2, 2), "none was begun after that");
    assert_eq!(all(setting.fleet.follow(&calls[0], Since::Start)).await, ["cancelled null"]);
    assert_eq!(setting.fleet.cancel_call(&calls[0]).await.unwrap(), Cancelling::Ended);
    running.stop().await;
    assert_eq!(setting.books().await, [0, 0, 20]);
}

/// Whoever holds the context hears of the cancel, and a blocking function can ask.
pub(crate) async fn a_context_hears_of_the_cancel(setting: Setting) {
    let heard = Arc::new(Notify::new());
    let hears = heard.clone();
    let node = setting.fleet.node().handler("aside", move |_: u64, context: Context| {
        let (hears, aside) = (hears.clone(), context.clone());
        tokio::spawn(async move {
            aside.cancelled().await;
            assert!(aside.is_cancelled());
            hears.notify_one();
        });
        async move {
            std::future::pending::<()>().await;
            Ok(Done::default())
        }
    });
    let asked = Arc::new(Notify::new());
    let asks = asked.clone();
    let node = node.handler_blocking("blocking", move |_: u64, context: Context| {
        while !context.is_cancelled() {
            std::thread::sleep(Duration::from_millis(1));
        }
        asks.notify_one();
        Ok(Done::default())
    });
    let calls = [setting.call("aside", 1).await, setting.call("blocking", 1).await];
    let running = start(node);
    for call in &calls {
        setting.until(call, CallState::InFlight).await;
        setting.fleet.cancel_call(call).await.unwrap();
    }
    tokio::time::timeout(PATIENCE, heard.notified()).await.unwrap();
    tokio::time::timeout(PATIENCE, asked.notified()).await.unwrap();
    setting.until(&calls[0], CallState::Cancelled).await;
    // One that hears of it and is done at once may be the quicker.
    let ended = async {
        while !setting.state(&calls[1]).await.is_end() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("it ends");
    running.stop().await;
}

/// What asked for it is cancelled when its last follower has gone, and not while there is one.
pub(crate) async fn a_call_nobody_follows_is_cancelled(setting: Setting) {
    let options = CallOptions { linger: Some(Duration::from_millis(400)), ..CallOptions::default() };
    let queue = setting.fleet.queue::<u64>("lonely");
    let (followed, forsaken) = (queue.call(&1, &options).await.unwrap(), queue.call(&2, &options).await.unwrap());
    let node = setting.fleet.node().handler("lonely", async |_: u64, context: Context| {
        context.emit("begun", &()).await?;
        std::future::pending::<()>().await;
        Ok(Done::default())
    });
    let running = start(node);
    let mut follow = setting.fleet.follow(&followed, Since::Start);
    assert!(matches!(follow.next().await.unwrap(), Followed::Events(_)));
    let waiting = tokio::spawn(async move {
        let next = tokio::time::timeout(Duration::from_millis(1_500), follow.next()).await;
        (next.is_err(), follow)
    });
    setting.until(&forsaken, CallState::Cancelled).await;
    let (still, follow) = waiting.await.unwrap();
    assert!(still, "it is followed, and goes on");
    assert_eq!(setting.state(&followed).await, CallState::InFlight);
    drop(follow);
    setting.until(&followed, CallState::Cancelled).await;
    running.stop().await;
}

/// A draw of its own for each number.
fn drawn(seed: u64, nth: u64) -> u64 {
    let mixed = (seed ^ nth.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 20
}

/// Calls cancelled at random moments while nodes are killed: each ends once, as done, dead or cancelled.
pub(crate) async fn calls_cancelled_at_random_with_kills_end_once(setting: Setting) {
    let calls: u64 = std::env::var("BATON_CALLS").ok().and_then(|it| it.parse().ok()).unwrap_or(1_000);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seed = std::env::var("BATON_SEED").ok().and_then(|it| it.parse().ok()).unwrap_or(now);
    println!("BATON_SEED={seed} BATON_CALLS={calls}");
    let policy =
        QueuePolicy { concurrency: 8, retries: 1, backoff: Duration::from_millis(20), ..QueuePolicy::default() };
    let node = || {
        let work = async |n: u64, context: Context| {
            context.emit("begun", &n).await.ok();
            match n % 7 {
                0 => {}
                1 => tokio::time::sleep(Duration::from_millis(n % 40)).await,
                2 => return Err(Failure::new("fails")),
                3 => return Err(Failure::fatal("dies")),
                4 if context.call().is_some_and(|call| call.queue.as_str() == "work") => {
                    return Done::default().then_in_call("more", &1)?.then_in_call("more", &(n * 7));
                }
                _ => tokio::time::sleep(Duration::from_millis(n % 9)).await,
            }
            Ok(Done::with(&n)?)
        };
        setting.fleet.node().policy(policy.clone()).handler("work", work).handler("more", work)
    };
    let mut nodes: Vec<Running> = (0..3).map(|_| start(node())).collect();
    let killing = Arc::new(AtomicUsize::new(1));
    let mut made = Vec::new();
    for nth in 0..calls {
        let call = setting.call("work", drawn(seed, nth) % 1_000).await;
        made.push(call.clone());
        if !drawn(seed, nth + calls).is_multiple_of(3) {
            let (fleet, pause) = (setting.fleet.clone(), Duration::from_millis(drawn(seed, nth + 2 * calls) % 300));
            let killing = killing.clone();
            killing.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                tokio::time::sleep(pause).await;
                fleet.cancel_call(&call).await.unwrap();
                killing.fetch_sub(1, Ordering::SeqCst);
            });
        }
        if nth % 100 == 50 {
            let victim = drawn(seed, nth + 3 * calls) as usize % nodes.len();
            nodes[victim].task.abort();
            nodes[victim] = start(node());
        }
    }
    let mut ended = BTreeMap::<String, u64>::new();
    for call in &made {
        let told = all(setting.fleet.follow(call, Since::Start)).await;
        let last: Vec<_> =
            told.iter().filter(|it| ["end", "error", "cancelled"].contains(&it.split(' ').next().unwrap())).collect();
        assert_eq!(last.len(), 1, "{call}: {told:?}");
        assert_eq!(told.last(), last.first().copied());
        let state = setting.state(call).await;
        let event = told.last().unwrap().split(' ').next().unwrap().to_owned();
        let expected = match event.as_str() {
            "end" => CallState::Done,
            "error" => CallState::Failed,
            _ => CallState::Cancelled,
        };
        assert_eq!(state, expected, "{call}: {told:?}");
        *ended.entry(event).or_default() += 1;
    }
    println!("{ended:?}");
    // Messages of calls that died may still have a step to go.
    let clear = async {
        loop {
            let survey = setting.fleet.ask(TakeSurvey).await.unwrap();
            if survey.queues.iter().all(|books| books.ready + books.delayed + books.in_flight == 0) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, clear).await.expect("every message ends");
    for running in nodes {
        running.stop().await;
    }
    let [done, dead, cancelled] = setting.books().await;
    println!("messages: {done} done, {dead} dead, {cancelled} cancelled");
    assert!(done + dead + cancelled >= calls && cancelled > 0, "{done} {dead} {cancelled}");
    assert_eq!(ended.values().sum::<u64>(), calls);
}

/// A child that works for a cancelled call ends with it.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
pub(crate) async fn a_cancel_ends_the_child_that_works_for_the_call() {
    let (setting, folder) = (Setting::over(baton_testkit::stores::in_memory()), tempfile::tempdir().unwrap());
    let told = folder.path().join("pid");
    let script = format!("read line; echo $$ > {0}.part; mv {0}.part {0}; exec sleep 1000", told.display());
    let exec = Exec::new(Program::new("sh", ["-c", &script]), Limits::default());
    let running = start(setting.fleet.node().handle_with("children", exec.clone()));
    let call = setting.call("children", 1).await;
    let until = |is: Box<dyn Fn() -> bool + Send>| async move {
        while !is() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let there = told.clone();
    tokio::time::timeout(PATIENCE, until(Box::new(move || there.exists()))).await.expect("the child works");
    let pid: u32 = std::fs::read_to_string(&told).unwrap().trim().parse().unwrap();
    let process = std::path::PathBuf::from(format!("/proc/{pid}"));
    assert!(process.exists());
    setting.fleet.cancel_call(&call).await.unwrap();
    tokio::time::timeout(PATIENCE, until(Box::new(move || !process.exists()))).await.expect("the child ends");
    setting.until(&call, CallState::Cancelled).await;
    running.stop().await;
    exec.close().await;
}
