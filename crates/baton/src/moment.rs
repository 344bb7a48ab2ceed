//! Moments in the future. "For ever" is a time as any other: no sum of a moment and a time overflows.

use std::time::Duration;

use tokio::time::Instant;

/// The longest time: thirty years, which is what tokio's timers take for ever to be.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(86_400 * 365 * 30);

/// The moment so much later than another, at most [`FOR_EVER`].
pub(crate) fn after(at: Instant, time: Duration) -> Instant {
    at + time.min(FOR_EVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_exact_and_for_ever_is_one() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        assert_eq!(after(now, second), now + second);
        for time in [Duration::MAX, Duration::MAX / 2, Duration::from_secs(1 << 62), FOR_EVER] {
            assert_eq!(after(now, time), now + FOR_EVER);
        }
    }
}
