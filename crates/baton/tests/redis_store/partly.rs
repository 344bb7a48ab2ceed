//! Parcels that are partly settled: what is left of them, where it lies, and what it costs.

use baton::store::{message::*, *};

use crate::{behind, claim, commands, join, monitor::Monitor, name, redis_server::RedisServer, settle, store, submit};

/// So many bodies of this length.
fn bodies(count: usize, length: usize) -> Vec<Vec<u8>> {
    (0..count).map(|nth| format!("\"{nth:<length$}\"").into_bytes()).collect()
}

fn done(claim_no: u64, first: u64, len: u32) -> Run {
    Run { claim_no, queue: name("q"), range: Range { first, len }, outcome: Outcome::DONE }
}

/// Whoever was told where in the former parcel the bodies lie finds nothing there, never something else.
#[tokio::test]
async fn a_parcel_that_is_thinned_is_read_anew_by_who_was_about_to_read_it() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let (quick, slow) = (join(&store, Kind::Node).await, join(&store, Kind::Node).await);
    let bodies = bodies(256, 1_000);
    let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
    ask(&store, submit(quick, 1, &bodies)).await.unwrap();
    ask(&store, claim(quick, 1, 230)).await.unwrap();
    let given = ask(&store, claim(slow, 1, 26)).await.unwrap();
    assert_eq!(behind::<u64>(&server, "EXISTS {fleet/0}:b:q:1"), 1);
    ask(&store, settle(quick, 1, 1, 230, Outcome::DONE)).await.unwrap();
    assert_eq!(behind::<u64>(&server, "EXISTS {fleet/0}:b:q:1"), 0);
    assert_eq!(behind::<String>(&server, "GETRANGE {fleet/0}:b:q:1 240000 250000"), "");
    let again = ask(&store, claim(slow, 1, 26)).await.unwrap();
    for ((span, parcel), (as_before, before)) in again.spans.iter().zip(&given.spans) {
        assert_eq!((span, parcel.len()), (as_before, 26));
        assert!(parcel.bodies().eq(before.bodies()) && parcel.bodies().eq(bodies[230..].iter().copied()));
    }
    ask(&store, settle(slow, 1, 231, 26, Outcome::DONE)).await.unwrap();
    assert_eq!(behind::<Vec<String>>(&server, "KEYS *:q:1"), Vec::<String>::new(), "nothing is left of it");
}

/// Most parcels go whole: these cost what they always did.
#[tokio::test]
async fn a_parcel_that_goes_whole_is_not_looked_at_message_by_message() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    let bodies = bodies(256, 10);
    let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
    for no in 1..=2 {
        ask(&store, submit(session, no, &bodies)).await.unwrap();
        ask(&store, claim(session, no, 256)).await.unwrap();
        let before = commands(&server);
        ask(&store, settle(session, no, 256 * (no - 1) + 1, 256, Outcome::DONE)).await.unwrap();
        assert!(no == 1 || commands(&server) - before <= 11, "{}", commands(&server) - before);
    }
}

/// The largest parcel there is, reported so that as many as can be are left between those that went.
#[tokio::test]
async fn thinning_is_bounded_whatever_the_parcel() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    let bodies = bodies(65_536, 1);
    let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
    ask(&store, submit(session, 1, &bodies)).await.unwrap();
    ask(&store, claim(session, 1, 65_536)).await.unwrap();
    // One in eight is left, then one in sixteen, and so on: as the library does, a thousand runs a call.
    let mut settle_no = 0;
    let monitor = Monitor::start(&server);
    for (step, at) in [(8, 0), (16, 8), (32, 16), (64, 32)] {
        let runs: Vec<Run> = if at == 0 {
            (0..65_536 / step).map(|nth| done(1, nth * step + 2, u32::try_from(step - 1).unwrap())).collect()
        } else {
            (0..65_536 / step).map(|nth| done(1, nth * step + at + 1, 1)).collect()
        };
        for runs in runs.chunks(1_000) {
            settle_no += 1;
            let settled =
                ask(&store, Settle { session, settle_no, runs: runs.to_vec(), max_results: baton::store::MAX_RESULTS })
                    .await
                    .unwrap();
            assert!(settled.refused.is_empty());
        }
    }
    let most = monitor.end(&server)["settle"];
    assert!(most.commands <= 1_000 * 4 + 4_096, "{most:?}");
    assert_eq!(behind::<u64>(&server, "EXISTS {fleet/0}:b:q:1"), 0, "it was thinned at last");
    let recounted = ask(&store, Recount { max_hold_ms: 1_000 }).await.unwrap();
    assert!(recounted.queues[0].balance());
    assert_eq!(recounted.queues[0].bytes(), recounted.queues[0].books.bytes);
}
