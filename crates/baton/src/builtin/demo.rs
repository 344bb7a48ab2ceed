//! A handler to watch a fleet by: it sleeps a random while and fails now and then.

use std::{ops::RangeInclusive, time::Duration};

use crate::{Context, Done, Failure, Handler, Message};

/// Work that takes a random time and fails with some probability.
///
/// Without a delay its future is ready at once and touches no timer.
#[derive(Debug, Clone, PartialEq)]
pub struct Demo {
    /// How long a message takes, evenly spread; an empty range means its start.
    pub delay: RangeInclusive<Duration>,
    /// How likely it fails: 0 never, 1 always.
    pub fail: f64,
}

impl Default for Demo {
    /// Up to a second, and 1 of 50 fails.
    fn default() -> Self {
        Self { delay: Duration::ZERO..=Duration::from_secs(1), fail: 0.02 }
    }
}

impl Demo {
    fn run(&self) -> impl Future<Output = Result<Done, Failure>> + Send + use<> {
        // Numbers in [0, 1): a probability of 0 is never met, one of 1 always.
        let result = if fastrand::f64() < self.fail { Err(Failure::new("demo failure")) } else { Ok(Done::default()) };
        let (least, most) = (*self.delay.start(), *self.delay.end());
        let delay = least + most.saturating_sub(least).mul_f64(fastrand::f64());
        async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            result
        }
    }
}

impl Handler for Demo {
    fn handle(&self, _: Message, _: Context) -> impl Future<Output = Result<Done, Failure>> + Send + 'static {
        self.run()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::time::Instant;

    use super::*;

    const NO_DELAY: RangeInclusive<Duration> = Duration::ZERO..=Duration::ZERO;

    #[test]
    fn a_demo_without_a_delay_is_ready_at_once_and_needs_no_runtime() {
        assert_eq!(Demo { delay: NO_DELAY, fail: 0.0 }.run().now_or_never(), Some(Ok(Done::default())));
        let failed = Some(Err(Failure::new("demo failure")));
        assert_eq!(Demo { delay: NO_DELAY, fail: 1.0 }.run().now_or_never(), failed);
    }

    #[test]
    fn the_demo_fails_about_as_often_as_said() {
        let demo = Demo { delay: NO_DELAY, ..Demo::default() };
        let failures = (0..10_000).filter(|_| matches!(demo.run().now_or_never(), Some(Err(_)))).count();
        // 200 expected with a deviation of 14: ten of them either way.
        assert!((60..340).contains(&failures), "{failures}");
    }

    #[tokio::test(start_paused = true)]
    async fn delays_stay_within_their_range() {
        let (least, most) = (Duration::from_millis(20), Duration::from_millis(30));
        for _ in 0..100 {
            let start = Instant::now();
            Demo { delay: least..=most, fail: 0.0 }.run().await.unwrap();
            assert!((least..=most + Duration::from_millis(1)).contains(&start.elapsed()), "{:?}", start.elapsed());
        }
        let reversed = Demo { delay: most..=least, fail: 0.0 };
        let start = Instant::now();
        reversed.run().await.unwrap();
        assert_eq!(start.elapsed(), most);
    }
}
