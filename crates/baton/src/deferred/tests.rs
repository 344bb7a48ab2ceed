use std::sync::Mutex as StdMutex;

use futures_util::FutureExt as _;
use tokio::task::{JoinSet, yield_now};

use super::*;

type Counter = Arc<StdMutex<Vec<usize>>>;

fn bounds(calls: usize, bytes: usize, seconds: u64) -> Bounds {
    Bounds { calls, bytes, patience: Duration::from_secs(seconds) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_that_waited_begin_in_their_order_on_any_number_of_threads() {
    let (deferred, starter) = Deferred::<Counter, String>::new(Bounds::default());
    let mut calls = JoinSet::new();
    for number in 0..1000 {
        let mut seat = deferred.seat(1).unwrap();
        let (lined_up, is_lined_up) = tokio::sync::oneshot::channel();
        calls.spawn(async move {
            let call = seat.call(|begun| async move {
                begun.lock().unwrap().push(number);
                // What comes after the first wait is in any order.
                yield_now().await;
                number
            });
            let mut call = pin!(call);
            assert!(call.as_mut().now_or_never().is_none());
            lined_up.send(()).unwrap();
            call.await
        });
        is_lined_up.await.unwrap();
    }
    assert_eq!((deferred.waiting(), deferred.is_started()), (1000, false));
    let begun = Counter::default();
    starter.started(Arc::clone(&begun));
    let mut ended: Vec<_> = calls.join_all().await.into_iter().map(Result::unwrap).collect();
    ended.sort_unstable();
    assert!(ended.into_iter().eq(0..1000));
    assert!(begun.lock().unwrap().iter().copied().eq(0..1000));
    assert_eq!((deferred.waiting(), deferred.is_started()), (0, true));
    assert_eq!(deferred.call(usize::MAX, |_| async { 7 }).await, Ok(7));
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_bounded_by_number_and_bytes_and_what_leaves_makes_room() {
    let (deferred, starter) = Deferred::<u8, String>::new(bounds(2, 10, 10));
    let first = deferred.seat(10).unwrap();
    assert_eq!(deferred.seat(1).err(), Some(Unready::Full));
    let second = deferred.seat(0).unwrap();
    assert_eq!(deferred.seat(0).err(), Some(Unready::Full));
    drop(first);
    let third = deferred.seat(10).unwrap();
    drop((second, third));
    // A seat for what has yet to come holds nothing until it is there.
    let (mut early, mut other) = (deferred.seat(10).unwrap(), deferred.seat(0).unwrap());
    early.hold(0).unwrap();
    other.hold(8).unwrap();
    assert_eq!((early.hold(3), early.hold(2)), (Err(Unready::Full), Ok(())));
    drop((early, other));
    // Whoever leaves while it waits does too, and nobody behind it is held up.
    {
        let mut leaves = pin!(deferred.call(10, |it| async move { it }));
        assert!(leaves.as_mut().now_or_never().is_none());
        assert_eq!(deferred.waiting(), 1);
    }
    assert_eq!(deferred.waiting(), 0);
    let mut stays = pin!(deferred.call(10, |it| async move { it }));
    assert!(stays.as_mut().now_or_never().is_none());
    starter.started(7);
    assert_eq!(stays.await, Ok(7));
}

#[tokio::test(start_paused = true)]
async fn who_leaves_in_its_turn_does_not_hold_up_the_next() {
    let (deferred, starter) = Deferred::<u8, String>::new(Bounds::default());
    let mut first = Box::pin(deferred.call(0, |it| async move { it }));
    let mut second = pin!(deferred.call(0, |it| async move { it + 1 }));
    assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
    starter.started(1);
    assert!(second.as_mut().now_or_never().is_none(), "the first has not begun");
    drop(first);
    assert_eq!(second.await, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn a_call_is_made_when_it_is_first_polled() {
    let (deferred, starter) = Deferred::<Counter, String>::new(Bounds::default());
    let note = |number: usize| move |begun: Counter| async move { begun.lock().unwrap().push(number) };
    let mut held = pin!(deferred.call(0, note(1)));
    let mut awaited = pin!(deferred.call(0, note(2)));
    assert_eq!(deferred.waiting(), 0);
    assert!(awaited.as_mut().now_or_never().is_none() && held.as_mut().now_or_never().is_none());
    assert_eq!(deferred.waiting(), 2);
    let begun = Counter::default();
    starter.started(Arc::clone(&begun));
    awaited.await.unwrap();
    held.await.unwrap();
    assert_eq!(*begun.lock().unwrap(), [2, 1]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_too_long_is_told_so_and_its_place_is_free() {
    let (deferred, starter) = Deferred::<u8, String>::new(bounds(1, 0, 3));
    let begun = Instant::now();
    assert_eq!(deferred.get().await, Err(Unready::Late));
    assert_eq!(begun.elapsed(), Duration::from_secs(3));
    assert_eq!(deferred.waiting(), 0);
    starter.started(1);
    assert_eq!(deferred.get().await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn a_patience_without_end_waits_for_the_start() {
    let bounds = Bounds { patience: Duration::MAX, ..Bounds::default() };
    let (deferred, starter) = Deferred::<u8, String>::new(bounds);
    let mut seat = deferred.seat(0).unwrap();
    let mut call = pin!(seat.call(|it| async move { it }));
    assert!(call.as_mut().now_or_never().is_none());
    tokio::time::advance(Duration::from_secs(86_400 * 365)).await;
    assert!(call.as_mut().now_or_never().is_none());
    starter.started(7);
    assert_eq!(call.await, Ok(7));
}

#[tokio::test(start_paused = true)]
async fn a_failed_start_tells_everybody_its_reason_and_may_be_made_good() {
    let (deferred, starter) = Deferred::<u8, &str>::new(Bounds::default());
    let calls: Vec<_> =
        (0..3).map(|_| deferred.clone()).map(|it| tokio::spawn(async move { it.get().await })).collect();
    while deferred.waiting() < 3 {
        yield_now().await;
    }
    starter.failed("no such host");
    for call in calls {
        assert_eq!(call.await.unwrap(), Err(Unready::Failed("no such host")));
    }
    assert_eq!(deferred.get().await, Err(Unready::Failed("no such host")));
    assert_eq!(deferred.seat(0).err(), Some(Unready::Failed("no such host")));
    starter.started(4);
    assert_eq!(deferred.get().await, Ok(4));
    drop(starter);
    assert_eq!(deferred.get().await, Ok(4));
    let (deferred, starter) = Deferred::<u8, &str>::new(Bounds::default());
    let mut waits = pin!(deferred.get());
    assert!(waits.as_mut().now_or_never().is_none());
    drop(starter);
    assert_eq!(waits.await, Err(Unready::Abandoned));
    let panicked = Deferred::<u8, String>::spawn(Bounds::default(), async { panic!("on purpose") });
    for _ in 0..2 {
        assert_eq!(panicked.get().await, Err(Unready::Panicked("on purpose".into())));
    }
}

#[tokio::test(start_paused = true)]
async fn what_goes_away_is_waited_for_and_who_found_out_keeps_its_place() {
    let (deferred, starter) = Deferred::<Counter, String>::new(bounds(2, 0, 10));
    let begun = Counter::default();
    starter.started(Arc::clone(&begun));
    let mut early = deferred.seat(0).unwrap();
    let note = |number: usize| move |begun: Counter| async move { begun.lock().unwrap().push(number) };
    early.call(note(1)).await.unwrap();
    starter.gone();
    assert!(!deferred.is_started());
    let mut later = pin!(deferred.call(0, note(2)));
    assert!(later.as_mut().now_or_never().is_none());
    let mut again = pin!(early.call(note(3)));
    assert!(again.as_mut().now_or_never().is_none());
    assert_eq!(deferred.seat(0).err(), Some(Unready::Full));
    starter.started(Arc::clone(&begun));
    assert!(later.as_mut().now_or_never().is_none(), "one that was made before it still waits");
    again.await.unwrap();
    later.await.unwrap();
    assert_eq!(*begun.lock().unwrap(), [1, 3, 2]);
}
