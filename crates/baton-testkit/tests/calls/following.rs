//! What is told reaches all who follow, in its order, over kills and late arrivals.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use baton::{CallId, CallOptions, CallState, Context, Done, Followed, Since};
use tokio::sync::Semaphore;

use crate::setting::{Setting, all, start};

/// The first is there before the last is told, late ones replay, and however many follow get all of it.
pub(crate) async fn events_reach_all_who_follow_as_they_are_told(setting: Setting) {
    let go = Arc::new(Semaphore::new(0));
    let allowed = go.clone();
    let node = setting.fleet.node().handler("count", move |upto: u64, context: Context| {
        let allowed = allowed.clone();
        async move {
            for n in 1..=upto {
                allowed.acquire().await.unwrap().forget();
                context.emit("counted", &n).await?;
            }
            Ok(Done::with(&upto)?)
        }
    });
    let call = setting.call("count", 4).await;
    let mut first = setting.fleet.follow(&call, Since::Start);
    let many: Vec<_> = (0..500).map(|_| tokio::spawn(all(setting.fleet.follow(&call, Since::Start)))).collect();
    let running = start(node);
    go.add_permits(1);
    let Followed::Events(chunk) = first.next().await.unwrap() else { panic!() };
    assert_eq!((chunk.first(), chunk.events()[0].data.as_ref()), (1, &b"1"[..]));
    assert_eq!(setting.state(&call).await, CallState::InFlight);
    go.add_permits(3);
    let told = ["counted 1", "counted 2", "counted 3", "counted 4", "end 4"];
    for follower in many {
        assert_eq!(follower.await.unwrap(), told);
    }
    assert_eq!(all(setting.fleet.follow(&call, Since::Number(3))).await, told[2..]);
    assert_eq!(all(setting.fleet.follow(&call, Since::Now)).await, [] as [&str; 0]);
    assert_eq!(all(first).await, told[1..]);
    let status = setting.fleet.call_status(&call).await.unwrap().unwrap();
    assert_eq!((status.state, status.result.as_deref(), status.next), (CallState::Done, Some(&b"4"[..]), 6));
    running.stop().await;
    assert_eq!(setting.books().await, [1, 0, 0]);
}

/// Messages that join tell to the same call, which ends with the last of them.
pub(crate) async fn follow_ups_tell_to_the_call_they_joined(setting: Setting) {
    let node = setting.fleet.node();
    let node = node.handler("split", async |parts: u64, _: Context| {
        (0..parts).try_fold(Done::with("split")?, |done, part| done.then_in_call("part", &part))
    });
    let node = node.handler("part", async |part: u64, context: Context| {
        assert_eq!(context.call().unwrap().queue.as_str(), "split");
        context.emit_keyed(&format!("{}", part / 2), "found", &(part / 2)).await?;
        Ok(Done::default())
    });
    let call = setting.call("split", 10).await;
    let plain = setting.fleet.queue::<u64>("split").push(&1).await.unwrap();
    let running = start(node);
    let mut told = all(setting.fleet.follow(&call, Since::Start)).await;
    assert_eq!(told.pop().unwrap(), "end \"split\"");
    told.sort_unstable();
    assert_eq!(told, ["found 0", "found 1", "found 2", "found 3", "found 4"]);
    let plain = CallId { queue: call.queue.clone(), id: plain, born: None };
    assert!(setting.fleet.call_status(&plain).await.unwrap().is_none(), "a plain message has no record");
    running.stop().await;
}

/// Equal calls that are shared are one while it runs; each of its followers hears all.
pub(crate) async fn equal_calls_are_one_while_it_lasts(setting: Setting) {
    let options = CallOptions { share: true, ..CallOptions::default() };
    let queue = setting.fleet.queue::<u64>("shared");
    let (one, same) = (queue.call(&1, &options).await.unwrap(), queue.call(&1, &options).await.unwrap());
    let other = queue.call(&2, &options).await.unwrap();
    assert_eq!(one, same);
    assert_ne!(one, other);
    let running = start(setting.fleet.node().handler("shared", async |_: u64, _: Context| Ok(Done::default())));
    setting.until(&one, CallState::Done).await;
    assert_ne!(queue.call(&1, &options).await.unwrap(), one);
    running.stop().await;
}

/// A node dies in the middle: the next attempt says so, and matches with keys come once.
pub(crate) async fn a_killed_node_restarts_and_keys_come_once(setting: Setting) {
    let attempts = Arc::new(AtomicU64::new(0));
    let node = || {
        let attempts = attempts.clone();
        setting.fleet.node().handler("search", move |_: u64, context: Context| {
            let attempt = attempts.fetch_add(1, Ordering::SeqCst) + 1;
            async move {
                for n in 1..=3 {
                    context.emit_keyed(&n.to_string(), "match", &n).await?;
                    context.emit("progress", &n).await?;
                    if attempt == 1 && n == 2 {
                        std::future::pending::<()>().await;
                    }
                }
                Ok(Done::default())
            }
        })
    };
    let call = setting.call("search", 1).await;
    let following = tokio::spawn(all(setting.fleet.follow(&call, Since::Start)));
    let killed = start(node());
    let mut follow = setting.fleet.follow(&call, Since::Number(1));
    while follow.position().unwrap_or(0) < 5 {
        assert!(matches!(follow.next().await.unwrap(), Followed::Events(_)));
    }
    killed.task.abort();
    let running = start(node());
    let told = following.await.unwrap();
    let expected =
        ["match 1", "progress 1", "match 2", "progress 2", "restart 1", "progress 1", "progress 2", "match 3"];
    assert_eq!(told[..8], expected);
    assert_eq!(told[8..], ["progress 3", "end null"]);
    running.stop().await;
    assert_eq!(setting.books().await, [1, 0, 0]);
}
