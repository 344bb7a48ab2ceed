//! Subset sums over the fleet.

use std::ops::ControlFlow;

use baton::{
    CallOptions, Followed, Since,
    builtin::{
        Exec,
        subset_sum::{InFleet, Order, Problem, SearchOptions, solve},
    },
    pool::{Limits, Program},
};

use crate::setting::{Setting, all, start};

/// A search over the fleet tells the matches of one process, each once, though a node is killed in the middle.
pub(crate) async fn a_subset_sum_over_the_fleet_tells_every_match_once(setting: Setting) {
    let data: Vec<i64> = (1..=30).map(|n| n * if n % 3 == 0 { -1 } else { 1 }).chain([4, 4]).collect();
    let (problem, options) = (Problem::new(data, 1), SearchOptions { limit: Some(500), ..SearchOptions::default() });
    let whole = Problem::new(problem.data()[..18].to_vec(), 1);
    let mut expected = Vec::new();
    let unlimited = SearchOptions::default();
    let take = |found: Vec<Vec<i64>>| {
        expected.extend(found);
        ControlFlow::Continue(())
    };
    solve(&whole, &unlimited, &|| false, take).unwrap();
    let queue = setting.fleet.queue::<Order>("subset-sum");
    let call = queue.call(&Order::new(&whole, &unlimited).parts(8), &CallOptions::default()).await.unwrap();
    let children = || {
        let program = Program::new(env!("CARGO_BIN_EXE_subset-sum-child"), Vec::<String>::new());
        InFleet::new(Exec::new(program, Limits { children: 2, ..Limits::default() }))
    };
    let node = || setting.fleet.node().handle_with("subset-sum", children());
    let (killed, running) = (start(node()), start(node()));
    let mut follow = setting.fleet.follow(&call, Since::Start);
    assert!(matches!(follow.next().await.unwrap(), Followed::Events(_)));
    killed.task.abort();
    let told = all(setting.fleet.follow(&call, Since::Start)).await;
    let mut matches: Vec<Vec<i64>> =
        told.iter().filter_map(|it| it.strip_prefix("match ")).map(|it| serde_json::from_str(it).unwrap()).collect();
    matches.sort_unstable();
    expected.sort_unstable();
    assert_eq!(matches, expected);
    assert!(told.last().unwrap().starts_with("end {"), "{:?}", told.last());
    // One that is cancelled in the middle ends soon.
    let call = queue.call(&Order::new(&problem, &options), &CallOptions::default()).await.unwrap();
    let mut follow = setting.fleet.follow(&call, Since::Start);
    assert!(matches!(follow.next().await.unwrap(), Followed::Events(_)));
    setting.fleet.cancel_call(&call).await.unwrap();
    all(follow).await;
    assert!(setting.state(&call).await.is_end());
    running.stop().await;
}
