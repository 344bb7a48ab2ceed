//! Computations on a thread for blocking work; the number of turns bounds how many run at once.
//!
//! Such a thread cannot be stopped from outside. So the computation itself holds its turn, to its end, and it hears
//! when its caller has gone: what callers leave behind is never more than the turns there are, and ends soon.

use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Computes with a turn, which comes back with what was computed. `compute` is given whether its caller has gone.
/// Nothing if it panicked.
///
/// # Cancel safety
/// Dropping it notifies the computation; one that has not begun never begins.
pub(crate) async fn compute<T: Send + 'static>(
    turn: OwnedSemaphorePermit, compute: impl FnOnce(&dyn Fn() -> bool) -> T + Send + 'static,
) -> Option<(T, OwnedSemaphorePermit)> {
    let (answer, answered) = oneshot::channel();
    tokio::task::spawn_blocking(move || {
        if answer.is_closed() {
            return;
        }
        let computed = compute(&|| answer.is_closed());
        // A result that the caller does not take is dropped here, the turn last.
        answer.send((computed, turn)).ok();
    });
    answered.await.ok()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn a_computation_hears_that_its_caller_has_gone_and_holds_its_turn_until_it_ends() {
        let turns = Arc::new(Semaphore::new(1));
        let turn = || Arc::clone(&turns).try_acquire_owned();
        assert_eq!(compute(turn().unwrap(), |gone| gone()).await.map(|(gone, _turn)| gone), Some(false));
        let (begins, begun) = oneshot::channel();
        let (let_end, may_end) = mpsc::channel::<()>();
        let left = tokio::spawn(compute(turn().unwrap(), move |gone| {
            begins.send(()).unwrap();
            while !gone() {
                std::thread::yield_now();
            }
            may_end.recv().unwrap();
        }));
        begun.await.unwrap();
        left.abort();
        assert!(left.await.unwrap_err().is_cancelled());
        assert!(turn().is_err(), "it still computes");
        let_end.send(()).unwrap();
        let _next = Arc::clone(&turns).acquire_owned().await.unwrap();
    }

    #[tokio::test]
    async fn a_panic_gives_the_turn_back() {
        let turns = Arc::new(Semaphore::new(1));
        let turn = Arc::clone(&turns).try_acquire_owned().unwrap();
        assert!(compute(turn, |_| -> u8 { panic!("as it is meant") }).await.is_none());
        let _next = turns.acquire().await.unwrap();
    }
}
