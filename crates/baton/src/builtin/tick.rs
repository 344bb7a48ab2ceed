//! A source that ticks: one message every interval.
//!
//! Bodies are `{"tick":1}`, `{"tick":2}` … over all generators: a successor goes on with the next number. It never
//! sends a burst: after a pause the next tick comes at once, and the one after it an interval later. The timer counts
//! whole milliseconds, so a shorter interval is rounded up to one. An interval of 0 is as fast as the store takes messages.

use std::{future::ready, io::Write as _, time::Duration};

use tokio::time::{Interval, MissedTickBehavior};

use super::foreign;
use crate::{Batch, BoxFuture, Flow, Source, SourceError, Stream, store::Clock};

/// Longer intervals are cut to this: the timer's instants must not overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A message every interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tick {
    interval: Duration,
    count: Option<u64>,
}

impl Default for Tick {
    /// Every 500 ms, without an end.
    fn default() -> Self {
        Self::every(Duration::from_millis(500))
    }
}

impl Tick {
    /// A message every `interval` (at most a year), or as fast as the store takes if that is 0.
    #[must_use]
    pub fn every(interval: Duration) -> Self {
        Self { interval: interval.min(LONGEST), count: None }
    }

    /// Ends after the tick with this number, counted over all generators of the fleet.
    #[must_use]
    pub const fn count(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }
}

impl Source for Tick {
    fn definition(&self) -> String {
        "tick".to_owned()
    }

    /// The cursor is a number.
    fn adopts(&self) -> bool {
        true
    }

    fn open<'a>(&'a self, cursor: &'a str) -> BoxFuture<'a, Result<Box<dyn Stream>, SourceError>> {
        self.open_by(cursor, &Clock::system())
    }

    fn open_by<'a>(&'a self, cursor: &'a str, clock: &Clock) -> BoxFuture<'a, Result<Box<dyn Stream>, SourceError>> {
        let sent = if cursor.is_empty() { Ok(0) } else { cursor.parse().map_err(|_| foreign(cursor)) };
        let stream = sent.map(|sent| {
            let pace = (!self.interval.is_zero()).then(|| Pace::new(self.interval, clock));
            Box::new(TickStream { sent, count: self.count.unwrap_or(u64::MAX), pace, body: Vec::new() }) as Box<_>
        });
        Box::pin(ready(stream))
    }
}

/// When the next tick is due.
enum Pace {
    /// By a monotonic clock.
    Timer(Interval),
    /// By the manual clock of a test.
    Hands { clock: Clock, interval: Duration, ticked_ms: Option<u64> },
}

impl Pace {
    fn new(interval: Duration, clock: &Clock) -> Self {
        if clock.is_manual() {
            return Self::Hands { clock: clock.clone(), interval, ticked_ms: None };
        }
        let mut timer = tokio::time::interval(interval);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self::Timer(timer)
    }

    async fn tick(&mut self) {
        match self {
            Self::Timer(timer) => {
                timer.tick().await;
            }
            Self::Hands { clock, interval, ticked_ms } => {
                let passed = |since: u64| Duration::from_millis(clock.now_ms().saturating_sub(since));
                if let Some(left) = ticked_ms.and_then(|ticked| interval.checked_sub(passed(ticked))) {
                    clock.sleep(left).await;
                }
                *ticked_ms = Some(clock.now_ms());
            }
        }
    }
}

struct TickStream {
    sent: u64,
    count: u64,
    /// None: as fast as the store takes.
    pace: Option<Pace>,
    body: Vec<u8>,
}

impl TickStream {
    fn add(&mut self, batch: &mut Batch) -> Result<(), SourceError> {
        self.body.clear();
        write!(self.body, "{{\"tick\":{}}}", self.sent + 1)?;
        batch.add(&self.body)?;
        self.sent += 1;
        Ok(())
    }

    async fn fill(&mut self, batch: &mut Batch) -> Result<Flow, SourceError> {
        if self.sent < self.count {
            if let Some(pace) = &mut self.pace {
                pace.tick().await;
                self.add(batch)?;
            } else {
                while self.sent < self.count && !batch.is_full() {
                    self.add(batch)?;
                }
            }
            batch.reach(self.sent);
        }
        Ok(if self.sent < self.count { Flow::More } else { Flow::End })
    }
}

impl Stream for TickStream {
    fn pull<'a>(&'a mut self, batch: &'a mut Batch) -> BoxFuture<'a, Result<Flow, SourceError>> {
        Box::pin(self.fill(batch))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, advance};

    use super::*;
    use crate::builtin::pulled::{Pulled, pull, rest};

    #[tokio::test(start_paused = true)]
    async fn one_message_an_interval_numbered_from_1() {
        let mut stream = Tick::default().open("").await.unwrap();
        let start = Instant::now();
        for n in 1..=4_u64 {
            let pulled = pull(&mut *stream).await.unwrap();
            assert_eq!(pulled, Pulled::more(&[&format!("{{\"tick\":{n}}}")], &n.to_string()));
            assert_eq!(start.elapsed(), Duration::from_millis(500) * (n as u32 - 1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_is_followed_by_one_tick_and_no_burst() {
        let mut stream = Tick::default().open("41").await.unwrap();
        pull(&mut *stream).await.unwrap();
        advance(Duration::from_secs(60)).await;
        let resumed = Instant::now();
        let mut gaps = Vec::new();
        for _ in 0..3 {
            pull(&mut *stream).await.unwrap();
            gaps.push(resumed.elapsed().as_millis());
        }
        assert_eq!(gaps, [0, 500, 1000]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_count_is_a_position_of_the_fleet_not_of_the_stream() {
        let tick = Tick::default().count(3);
        assert_eq!(rest(&tick, "1").await.unwrap(), ["{\"tick\":2}", "{\"tick\":3}"]);
        for cursor in ["3", "4"] {
            let mut stream = tick.open(cursor).await.unwrap();
            assert_eq!(pull(&mut *stream).await.unwrap(), Pulled::end());
        }
    }

    #[tokio::test]
    async fn without_an_interval_batches_are_full_and_nothing_waits() {
        let tick = Tick::every(Duration::ZERO).count(2_500);
        let mut stream = tick.open("").await.unwrap();
        let first = pull(&mut *stream).await.unwrap();
        assert_eq!((first.bodies.len(), first.cursor.as_deref()), (Batch::MESSAGES, Some("1024")));
        let bodies = rest(&tick, "1024").await.unwrap();
        assert_eq!((bodies.len(), bodies.last().unwrap().as_str()), (1_476, "{\"tick\":2500}"));
    }

    #[tokio::test]
    async fn other_cursors_are_refused_and_long_intervals_do_not_overflow() {
        let tick = Tick::every(Duration::MAX);
        let refused = tick.open("x").await.err().unwrap().to_string();
        assert!(refused.contains("\"x\""), "{refused}");
        pull(&mut *tick.open("").await.unwrap()).await.unwrap();
    }
}
