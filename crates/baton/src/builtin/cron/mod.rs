//! A source that follows the calendar: one message for each due time of a cron expression.
//!
//! Bodies are `{"at":"2026-01-01T00:00:00Z","late_ms":12}`: the due time, and how late its message was made. The
//! cursor holds the number of messages and the last due time. The next due time is always later than that, so none is sent
//! twice, whatever happens to generators or to the clock. If the clock is set back, the source waits until it has caught up.
//!
//! The time of the first start is stored before anything is due. [`CatchUp`] decides about due times that pass while no
//! node can send them. The clock is that of the node that holds the baton. An expression that names years may have no
//! further due time; then the stream ends.

mod schedule;
#[cfg(test)]
mod tests;

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

pub use self::schedule::InvalidCron;
use self::schedule::Schedule;
use super::foreign;
use crate::{Batch, BoxFuture, Flow, Source, SourceError, Stream, store::Clock};

/// The longest sleep before the clock is read again: it may be set, and the machine may sleep.
const LOOK: Duration = Duration::from_secs(1);
/// How late a due time may be without being missed: enough for a failover and a slow store.
const ON_TIME: Duration = Duration::from_secs(5);

/// The treatment of due times that were missed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CatchUp {
    /// Nothing; but the last one is sent if it is at most 5 s late, so that a failover drops no due time.
    #[default]
    Skip,
    /// One message, for the last of them.
    Once,
    /// A message for each of them.
    All,
}

/// A message at each due time.
#[derive(Debug, Clone)]
pub struct Cron {
    schedule: Schedule,
    catch_up: CatchUp,
    count: Option<u64>,
}

impl Cron {
    /// Due as `expression` says, in UTC: minute, hour, day of month, month, day of week, with an optional field for
    /// seconds before them.
    ///
    /// # Errors
    /// [`InvalidCron`] if it is no cron expression, or one that is never due.
    pub fn new(expression: &str, catch_up: CatchUp) -> Result<Self, InvalidCron> {
        let schedule = Schedule::new(expression)?;
        Ok(Self { schedule, catch_up, count: None })
    }

    /// Due by the clocks of this time zone, as `Europe/Berlin`. When clocks change, an expression with one time of day
    /// is due once a day: right after the gap if it falls into it, and only the first time if it comes twice. An expression
    /// with several times of day follows the clocks: times in the gap are left out, times that come twice are due twice.
    ///
    /// # Errors
    /// [`InvalidCron::Zone`] if the system does not know it.
    pub fn zone(mut self, name: &str) -> Result<Self, InvalidCron> {
        self.schedule = self.schedule.in_zone(name)?;
        Ok(self)
    }

    /// Ends after this many messages, counted over all generators of the fleet.
    #[must_use]
    pub const fn count(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }

    /// The first due time after `moment`, if there is one.
    #[must_use]
    pub fn next_due(&self, moment: SystemTime) -> Option<SystemTime> {
        let due = self.schedule.after(Timestamp::try_from(moment).ok()?).ok()?;
        due.map(SystemTime::from)
    }

    fn stream(&self, cursor: &str, clock: &Clock) -> Option<CronStream> {
        let (sent, last) = match cursor.split_once('@') {
            Some((sent, last)) => (sent.parse().ok()?, last.parse().ok()?),
            None if cursor.is_empty() => (0, now(clock)),
            None => return None,
        };
        let (schedule, clock, fresh) = (self.schedule.clone(), clock.clone(), cursor.is_empty());
        let count = self.count.unwrap_or(u64::MAX);
        Some(CronStream { schedule, catch_up: self.catch_up, clock, fresh, sent, last, count })
    }
}

fn now(clock: &Clock) -> Timestamp {
    let ms = i64::try_from(clock.now_ms()).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX)
}

impl Source for Cron {
    fn definition(&self) -> String {
        format!("cron {}", self.schedule)
    }

    /// The cursor is a number and a time, which mean the same for every expression.
    fn adopts(&self) -> bool {
        true
    }

    fn open<'a>(&'a self, cursor: &'a str) -> BoxFuture<'a, Result<Box<dyn Stream>, SourceError>> {
        self.open_by(cursor, &Clock::system())
    }

    fn open_by<'a>(&'a self, cursor: &'a str, clock: &Clock) -> BoxFuture<'a, Result<Box<dyn Stream>, SourceError>> {
        let stream = self.stream(cursor, clock).ok_or_else(|| foreign(cursor));
        Box::pin(std::future::ready(stream.map(|stream| Box::new(stream) as Box<dyn Stream>)))
    }
}

struct CronStream {
    schedule: Schedule,
    catch_up: CatchUp,
    clock: Clock,
    /// Whether its start is not stored yet.
    fresh: bool,
    sent: u64,
    /// The last due time that was sent or skipped.
    last: Timestamp,
    count: u64,
}

impl CronStream {
    async fn fill(&mut self, batch: &mut Batch) -> Result<Flow, SourceError> {
        let mut given = false;
        while self.sent < self.count {
            let Some(next) = self.schedule.after(self.last)? else { return Ok(Flow::End) };
            if std::mem::take(&mut self.fresh) {
                batch.reach(format_args!("0@{}", self.last));
                return Ok(Flow::More);
            }
            let now = now(&self.clock);
            // Negative if it is not due yet.
            let late = now.duration_since(next);
            if given && (late.is_negative() || batch.is_full()) {
                return Ok(Flow::More);
            }
            if late.is_negative() {
                self.clock.sleep(late.unsigned_abs().min(LOOK)).await;
                continue;
            }
            let due = if self.catch_up == CatchUp::All { next } else { self.schedule.latest(next, now)? };
            let late = now.duration_since(due).unsigned_abs();
            self.last = due;
            if self.catch_up == CatchUp::Skip && late > ON_TIME {
                continue;
            }
            let at = self.schedule.show(due);
            batch.add(format!("{{\"at\":\"{at}\",\"late_ms\":{}}}", late.as_millis()).as_bytes())?;
            self.sent += 1;
            batch.reach(format_args!("{}@{due}", self.sent));
            given = true;
        }
        Ok(Flow::End)
    }
}

impl Stream for CronStream {
    fn pull<'a>(&'a mut self, batch: &'a mut Batch) -> BoxFuture<'a, Result<Flow, SourceError>> {
        Box::pin(self.fill(batch))
    }
}
