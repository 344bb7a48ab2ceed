//! Lines of which there may be a flood: the first of each kind are written, the rest is counted and summed up in one line.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use baton::admin::cause;

use super::record::{FAILED, OUTPUT, Record};

/// Failures of one queue with one cause that are written, and in what time.
const EQUAL: (u32, Duration) = (10, Duration::from_secs(5));
/// Failures of one queue whatever their cause, and lines of its programs.
const OF_A_QUEUE: (u32, Duration) = (50, Duration::from_secs(1));
/// Kinds at a time before no further cause is counted by itself: there may be as many as messages.
const KINDS: usize = 1_000;

/// What was written of each kind lately.
#[derive(Debug, Default)]
pub(super) struct Flood(Mutex<HashMap<String, Kind>>);

#[derive(Debug)]
struct Kind {
    since: Instant,
    window: Duration,
    shown: u32,
    /// Lines left out since then.
    more: u64,
    /// The line that sums them up, without their number.
    sum: Record,
}

impl Flood {
    /// Whether the line is to be written now; otherwise it is counted. One that sums up others, as a worker's, is added to
    /// this process's own count.
    pub(super) fn admits(&self, record: &Record, now: Instant) -> bool {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bounds = bounds(record);
        if let Some(more) = record.more {
            let Some(bound) = bounds.into_iter().next() else { return true };
            bound.kind(&mut kinds, record, now).more += more;
            return false;
        }
        for bound in bounds {
            if bound.has_cause && kinds.len() >= KINDS && !kinds.contains_key(&bound.name) {
                continue;
            }
            let most = bound.most;
            let kind = bound.kind(&mut kinds, record, now);
            if kind.shown >= most {
                kind.more += 1;
                return false;
            }
            kind.shown += 1;
        }
        true
    }

    /// The lines that sum up what was left out, of each kind whose time is over, or of all.
    pub(super) fn sums(&self, now: Instant, all: bool) -> Vec<Record> {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let over: Vec<Kind> = kinds
            .extract_if(|_, kind| all || now.duration_since(kind.since) >= kind.window)
            .map(|(_, kind)| kind)
            .collect();
        over.into_iter().filter(|kind| kind.more > 0).map(Kind::summed_up).collect()
    }
}

impl Kind {
    fn summed_up(self) -> Record {
        let Self { more, sum, .. } = self;
        let queue = sum.queue.clone().unwrap_or_default();
        let (lines, cause) = (grouped(more), sum.error.as_deref().map(cause));
        let message = match &cause {
            Some(cause) if sum.retry_after_ms.is_some() => {
                format!("… and {lines} more like it: {queue} failed: {cause}; to be tried again")
            }
            Some(cause) => format!("… and {lines} more like it: {queue} failed for good: {cause}"),
            None if sum.is(FAILED) => format!("… and {lines} more failures in {queue}"),
            None if sum.is(OUTPUT) => format!("… and {lines} more lines from programs of {queue}"),
            None => format!("… and {lines} more like it: {}", sum.message),
        };
        Record { message, error: cause, more: Some(more), id: None, attempt: None, child: None, worker: None, ..sum }
    }
}

/// How many lines of a kind are written in what time.
struct Bound {
    name: String,
    most: u32,
    window: Duration,
    /// Whether all lines of the kind have one cause.
    has_cause: bool,
}

impl Bound {
    fn new(name: String, (most, window): (u32, Duration), has_cause: bool) -> Self {
        Self { name, most, window, has_cause }
    }

    /// What was written of the kind, which begins now if nothing was.
    fn kind<'a>(self, kinds: &'a mut HashMap<String, Kind>, record: &Record, now: Instant) -> &'a mut Kind {
        let Self { name, window, has_cause, .. } = self;
        kinds.entry(name).or_insert_with(|| {
            let error = record.error.clone().filter(|_| has_cause);
            Kind { since: now, window, shown: 0, more: 0, sum: Record { error, ..record.clone() } }
        })
    }
}

/// The kinds that a line belongs to, each with its bound: the narrowest first.
fn bounds(record: &Record) -> Vec<Bound> {
    let queue = record.queue.as_deref().unwrap_or_default();
    if record.is(OUTPUT) {
        return vec![Bound::new(format!("{queue} output"), OF_A_QUEUE, false)];
    }
    if !record.is(FAILED) {
        // There may be one for each message.
        let kind = record.id.map(|_| format!("{queue} {}", record.event.as_deref().unwrap_or_default()));
        return kind.into_iter().map(|kind| Bound::new(kind, OF_A_QUEUE, false)).collect();
    }
    let equal = record.error.as_ref().map(|error| {
        let last = record.retry_after_ms.is_none();
        Bound::new(format!("{queue} failed {last} {}", cause(error)), EQUAL, true)
    });
    equal.into_iter().chain([Bound::new(format!("{queue} failed"), OF_A_QUEUE, false)]).collect()
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use baton::Level;

    use super::*;

    fn failed(id: u64, error: &str) -> Record {
        Record {
            event: Some(FAILED.to_owned()),
            queue: Some("charge".to_owned()),
            id: Some(id),
            error: Some(error.to_owned()),
            ..Record::new(Level::Warn, "charge failed")
        }
    }

    #[test]
    fn equal_failures_are_summed_up_and_others_are_not() {
        let (flood, now) = (Flood::default(), Instant::now());
        let shown = (0..1_213).filter(|id| flood.admits(&failed(*id, &format!("bank-{id} refused")), now)).count();
        assert_eq!(shown, 10);
        assert!(flood.admits(&failed(5, "no such card"), now));
        assert!(flood.sums(now, false).is_empty());
        let [sum] = &*flood.sums(now + EQUAL.1, false) else { panic!("one kind has lines left out") };
        assert_eq!(sum.message, "… and 1,203 more like it: charge failed for good: bank-# refused");
        assert_eq!((sum.more, sum.id), (Some(1_203), None));
        // It begins again after that.
        assert!(flood.admits(&failed(1, "bank-1 refused"), now + EQUAL.1));
    }

    #[test]
    fn sums_of_workers_are_added_up() {
        let (flood, now) = (Flood::default(), Instant::now());
        assert_eq!((0..12).filter(|id| flood.admits(&failed(*id, "bank-1 refused"), now)).count(), 10);
        let theirs = Record { more: Some(100), ..failed(1, "bank-# refused") };
        assert!(!flood.admits(&theirs, now) && !flood.admits(&theirs, now));
        let sums = flood.sums(now, true);
        assert_eq!(sums.iter().map(|sum| sum.more).collect::<Vec<_>>(), [Some(202)]);
    }

    #[test]
    fn different_failures_and_output_are_bounded_by_queue() {
        let (flood, now) = (Flood::default(), Instant::now());
        let letters = |id: u64| id.to_string().chars().map(|c| char::from(c as u8 + 49)).collect::<String>();
        let shown = (0..5_000).filter(|id| flood.admits(&failed(*id, &letters(*id)), now)).count();
        assert_eq!(shown, 50);
        let said = Record { event: Some(OUTPUT.to_owned()), error: None, ..failed(1, "") };
        assert_eq!((0..60).filter(|_| flood.admits(&said, now)).count(), 50);
        let sums = flood.sums(now + OF_A_QUEUE.1, false);
        let mut told: Vec<&str> = sums.iter().map(|sum| sum.message.as_str()).collect();
        told.sort_unstable();
        let output = "… and 10 more lines from programs of charge";
        assert!(told.contains(&output) && told.iter().any(|it| it.ends_with(" more failures in charge")), "{told:?}");
    }

    #[test]
    fn thousands_are_told_apart() {
        assert_eq!([0, 999, 1_000, 1_203_004].map(grouped), ["0", "999", "1,000", "1,203,004"]);
    }
}
