//! A clock that follows tokio's paused time and can be set.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use jiff::SignedDuration;
use proptest::prelude::*;
use tokio::time::Instant;

use super::*;
use crate::builtin::pulled::{Pulled, pull, rest};

/// A wall clock; `set` moves it by seconds.
struct Wall(Arc<AtomicI64>);

impl Wall {
    fn set(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

/// A cron source by a clock of its own.
struct Clocked(Cron, Clock);

impl Source for Clocked {
    fn definition(&self) -> String {
        self.0.definition()
    }

    fn open<'a>(&'a self, cursor: &'a str) -> BoxFuture<'a, Result<Box<dyn Stream>, SourceError>> {
        self.0.open_by(cursor, &self.1)
    }
}

fn at(cron: Cron, time: &str) -> (Clocked, Wall) {
    let (start, begin): (Timestamp, _) = (time.parse().unwrap(), Instant::now());
    let moved = Arc::new(AtomicI64::new(0));
    let wall = Wall(Arc::clone(&moved));
    let clock = move || {
        let elapsed = SignedDuration::try_from(begin.elapsed()).unwrap();
        let now = start + elapsed + SignedDuration::from_secs(moved.load(Ordering::SeqCst));
        u64::try_from(now.as_millisecond()).unwrap()
    };
    (Clocked(cron, Clock::read_by(clock)), wall)
}

fn minutely(catch_up: CatchUp) -> Cron {
    Cron::new("* * * * *", catch_up).unwrap()
}

/// The due times a stream gives until `n` were given.
async fn times(stream: &mut dyn Stream, n: usize) -> Vec<String> {
    let mut times = Vec::new();
    while times.len() < n {
        let pulled = pull(stream).await.unwrap();
        times.extend(pulled.bodies.iter().map(|body| body[7..].split('"').next().unwrap().to_owned()));
        if pulled.flow == Flow::End {
            break;
        }
    }
    times
}

#[tokio::test(start_paused = true)]
async fn the_first_start_begins_now_and_each_due_time_comes_in_time() {
    for catch_up in [CatchUp::Skip, CatchUp::Once, CatchUp::All] {
        let (cron, _) = at(minutely(catch_up), "2026-01-01T10:00:20.5Z");
        let mut stream = cron.open("").await.unwrap();
        let start = Instant::now();
        assert_eq!(
            pull(&mut *stream).await.unwrap(),
            Pulled::more(&[], "0@2026-01-01T10:00:20.5Z"),
            "the start is stored"
        );
        for (n, minute) in [(1, 1), (2, 2), (3, 3)] {
            let body = format!("{{\"at\":\"2026-01-01T10:0{minute}:00Z\",\"late_ms\":0}}");
            let cursor = format!("{n}@2026-01-01T10:0{minute}:00Z");
            assert_eq!(pull(&mut *stream).await.unwrap(), Pulled::more(&[&body], &cursor));
            assert_eq!(start.elapsed(), Duration::from_millis(minute * 60_000 - 20_500));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn missed_due_times_are_skipped_sent_once_or_all_sent() {
    let cursor = "7@2026-01-01T10:00:00Z";
    for (catch_up, want) in [
        (CatchUp::Skip, &["10:04", "10:05"][..]),
        (CatchUp::Once, &["10:03", "10:04", "10:05"]),
        (CatchUp::All, &["10:01", "10:02", "10:03", "10:04", "10:05"]),
    ] {
        let (cron, _) = at(minutely(catch_up), "2026-01-01T10:03:30Z");
        let mut stream = cron.open(cursor).await.unwrap();
        let want: Vec<_> = want.iter().map(|time| format!("2026-01-01T{time}:00Z")).collect();
        assert_eq!(times(&mut *stream, want.len()).await, want);
    }
    let (cron, _) = at(minutely(CatchUp::All), "2026-01-01T10:03:30Z");
    let pulled = pull(&mut *cron.open(cursor).await.unwrap()).await.unwrap();
    assert_eq!((pulled.bodies.len(), pulled.cursor.as_deref()), (3, Some("10@2026-01-01T10:03:00Z")));
    assert_eq!(pulled.bodies[0], "{\"at\":\"2026-01-01T10:01:00Z\",\"late_ms\":150000}");
}

#[tokio::test(start_paused = true)]
async fn a_failover_over_a_due_time_does_not_skip_it() {
    let (cron, _) = at(minutely(CatchUp::Skip), "2026-01-01T10:01:01.3Z");
    let pulled = pull(&mut *cron.open("1@2026-01-01T10:00:00Z").await.unwrap()).await.unwrap();
    assert_eq!(pulled.bodies, ["{\"at\":\"2026-01-01T10:01:00Z\",\"late_ms\":1300}"]);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_repeats_nothing() {
    let (cron, wall) = at(minutely(CatchUp::Once), "2026-01-01T10:00:30Z");
    let mut stream = cron.open("").await.unwrap();
    assert_eq!(times(&mut *stream, 2).await, ["2026-01-01T10:01:00Z", "2026-01-01T10:02:00Z"]);
    wall.set(-90);
    let start = Instant::now();
    assert_eq!(times(&mut *stream, 1).await, ["2026-01-01T10:03:00Z"]);
    assert_eq!(start.elapsed().as_secs(), 150);
    let mut successor = cron.open("2@2026-01-01T10:02:00Z").await.unwrap();
    assert_eq!(times(&mut *successor, 1).await, ["2026-01-01T10:03:00Z"]);
    wall.set(3600);
    assert_eq!(times(&mut *stream, 2).await, ["2026-01-01T11:03:00Z", "2026-01-01T11:04:00Z"]);
}

#[tokio::test(start_paused = true)]
async fn a_clock_set_forward_while_it_sleeps_is_noticed() {
    let (cron, wall) = at(Cron::new("0 0 * * *", CatchUp::Skip).unwrap(), "2026-01-01T10:00:00Z");
    let mut stream = cron.open("").await.unwrap();
    let pulling = tokio::spawn(async move { times(&mut *stream, 1).await });
    tokio::time::sleep(Duration::from_millis(1500)).await;
    wall.set(14 * 3600 - 2);
    assert_eq!(pulling.await.unwrap(), ["2026-01-02T00:00:00Z"]);
}

#[tokio::test(start_paused = true)]
async fn a_cron_ends_at_its_count_and_after_its_last_year() {
    let (cron, _) = at(minutely(CatchUp::All).count(3), "2026-01-01T10:09:30Z");
    assert_eq!(rest(&cron, "1@2026-01-01T10:00:00Z").await.unwrap().len(), 2);
    assert_eq!(rest(&cron, "3@2026-01-01T10:02:00Z").await.unwrap().len(), 0);

    let (cron, _) = at(Cron::new("0 0 0 1 1 * 2025", CatchUp::Once).unwrap(), "2026-01-01T00:00:00Z");
    assert_eq!(rest(&cron, "").await.unwrap().len(), 0);
    assert_eq!(rest(&cron, "0@2024-06-01T00:00:00Z").await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_year_of_missed_seconds_is_caught_up_with_at_once() {
    let (cron, _) = at(Cron::new("* * * * * *", CatchUp::Once).unwrap(), "2026-01-01T00:00:00.7Z");
    let mut stream = cron.open("5@2025-01-01T00:00:00Z").await.unwrap();
    assert_eq!(times(&mut *stream, 2).await, ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"]);
}

#[tokio::test(start_paused = true)]
async fn due_times_are_right_across_summer_time() {
    let Ok(berlin) = Cron::new("30 2 * * *", CatchUp::All).unwrap().zone("Europe/Berlin") else {
        eprintln!("not tested: this system has no zone data");
        return;
    };
    assert_eq!(berlin.definition(), "cron Europe/Berlin 30 2 * * *");
    let (cron, _) = at(berlin, "2026-10-26T12:00:00Z");
    let mut spring = cron.open("0@2026-03-28T00:00:00Z").await.unwrap();
    let want = ["2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"];
    assert_eq!(times(&mut *spring, 200).await[..3], want);
    let mut autumn = cron.open("0@2026-10-24T12:00:00Z").await.unwrap();
    assert_eq!(times(&mut *autumn, 2).await, ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]);

    let hourly = Cron::new("30 * * * *", CatchUp::All).unwrap().zone("Europe/Berlin").unwrap();
    let (cron, _) = at(hourly, "2026-10-26T12:00:00Z");
    let mut autumn = cron.open("0@2026-10-25T00:00:00Z").await.unwrap();
    let want = ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:30:00+01:00"];
    assert_eq!(times(&mut *autumn, 3).await[..3], want);
    let mut spring = cron.open("0@2026-03-29T00:00:00Z").await.unwrap();
    assert_eq!(times(&mut *spring, 2).await[..2], ["2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00"]);
}

#[tokio::test]
async fn bad_expressions_zones_and_cursors_are_refused() {
    for bad in ["", "* * * *", "61 * * * *", "* * * * * * * *", "x y z * *", "* * * * MOO"] {
        let error = Cron::new(bad, CatchUp::Skip).unwrap_err();
        assert!(matches!(&error, InvalidCron::Expression { .. }), "{bad:?}: {error}");
    }
    let cause = |bad: &str| match Cron::new(bad, CatchUp::Skip) {
        Err(InvalidCron::Expression { cause, .. }) => cause,
        other => panic!("{bad}: {other:?}"),
    };
    assert_eq!(cause("* 25 * * *"), "its hour, \"25\", is not made of 0 to 23");
    assert_eq!(cause("61 * * * * *"), "its second, \"61\", is not made of 0 to 59");
    assert_eq!(cause("* * * * MOO"), "its day of week, \"MOO\", is not made of 0 to 7, or SUN to SAT");
    assert_eq!(cause("* * *"), "it has 3 fields, not 5 to 7");
    assert_eq!(cause("@dayly"), "there is no such name");
    assert_eq!(Cron::new("0 0 30 2 *", CatchUp::Skip).unwrap_err(), InvalidCron::Never("0 0 30 2 *".to_owned()));
    let cron = Cron::new(" 0  12 * * MON ", CatchUp::Skip).unwrap();
    assert_eq!(cron.clone().zone("Mars/Olympus").unwrap_err(), InvalidCron::Zone("Mars/Olympus".to_owned()));
    assert_eq!(cron.clone().zone("utc").unwrap().definition(), "cron UTC 0 12 * * MON");
    for bad in ["x", "1", "@", "1@yesterday", "x@2026-01-01T00:00:00Z"] {
        assert!(cron.open(bad).await.is_err(), "{bad:?}");
    }
}

proptest! {
    #[test]
    fn the_last_due_time_by_halving_is_that_by_stepping(
        expression in prop_oneof![
            Just("*/7 * * * * *"), Just("13 */5 * * *"), Just("0 3,4 * * 1-5"), Just("59 59 23 * * *"), Just("5 4 * 2 *"),
        ],
        start in 1_700_000_000_i64..1_800_000_000, length in 0_i64..40_000,
    ) {
        let schedule = Schedule::new(expression).unwrap();
        let (last, now) = (Timestamp::from_second(start).unwrap(), Timestamp::from_second(start + length).unwrap());
        let first = schedule.after(last).unwrap().unwrap();
        if first <= now {
            let mut walked = first;
            while let Some(next) = schedule.after(walked).unwrap().filter(|next| *next <= now) {
                walked = next;
            }
            prop_assert_eq!(schedule.latest(first, now).unwrap(), walked);
        }
    }
}
