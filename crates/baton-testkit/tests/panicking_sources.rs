//! Sources that panic: a failure that is told, a baton that is given back, and another attempt, here or elsewhere.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at what it did not expect")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use baton::{
    Batch, BoxFuture, Done, Event, Fleet, FleetOptions, Flow, Node, Observer, Shutdown, Source, SourceError, Stream,
    store::{MemoryStore, Survey, TakeSurvey},
};
use baton_testkit::subject::test_fleet;

/// Where a source panics, and how often.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Panics {
    Call,
    Open,
    Pull,
}

/// The numbers 1 to 10, once the panics are used up.
struct Shaky {
    place: Panics,
    left: Arc<AtomicU32>,
}

impl Shaky {
    fn new(place: Panics, times: u32) -> Self {
        Self { place, left: Arc::new(AtomicU32::new(times)) }
    }
}

fn panics_here(left: &AtomicU32, place: Panics, here: Panics) {
    let used =
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(u32::from(place == here)));
    assert!(place != here || used.is_err(), "shaken");
}

impl Source for Shaky {
    fn definition(&self) -> String {
        "numbers".to_owned()
    }

    fn open<'a>(&'a self, cursor: &'a str) -> BoxFuture<'a, Result<Box<dyn Stream>, SourceError>> {
        panics_here(&self.left, self.place, Panics::Call);
        Box::pin(async move {
            panics_here(&self.left, self.place, Panics::Open);
            let at = cursor.parse().unwrap_or(0);
            Ok(Box::new(Numbers { at, place: self.place, left: self.left.clone() }) as Box<dyn Stream>)
        })
    }
}

struct Numbers {
    at: u64,
    place: Panics,
    left: Arc<AtomicU32>,
}

impl Stream for Numbers {
    fn pull<'a>(&'a mut self, batch: &'a mut Batch) -> BoxFuture<'a, Result<Flow, SourceError>> {
        Box::pin(async move {
            if self.at == 5 {
                // What is added before a panic must not be pushed.
                batch.add(b"666")?;
                panics_here(&self.left, self.place, Panics::Pull);
                *batch = Batch::default();
            }
            self.at += 1;
            batch.add(self.at.to_string().as_bytes())?;
            batch.reach(self.at);
            Ok(if self.at == 10 { Flow::End } else { Flow::More })
        })
    }
}

#[derive(Default)]
struct Told(Mutex<Vec<Event>>);

impl Observer for Told {
    fn on_event(&self, event: &Event) {
        self.0.lock().unwrap().push(event.clone());
    }
}

/// Whether the source of the nodes has panicked here.
fn panicked(event: &Event) -> bool {
    matches!(event, Event::SourceFailed { source, error, .. }
        if source.as_str() == "numbers" && error.to_string() == "it panicked: shaken" && !error.is_for_good())
}

/// A fleet in memory and what was run in it.
struct Setting {
    fleet: Fleet,
    seen: Arc<Mutex<Vec<u64>>>,
    told: Arc<Told>,
}

impl Setting {
    fn new() -> Self {
        let fleet = Fleet::over(Arc::new(MemoryStore::default()), FleetOptions::new(test_fleet()));
        Self { fleet, seen: Arc::default(), told: Arc::default() }
    }

    fn node(&self, source: Shaky) -> Node {
        let seen = self.seen.clone();
        let node = self.fleet.node().source("numbers", source).observed_by(self.told.clone());
        node.handler("messages", move |number: u64, _| {
            seen.lock().unwrap().push(number);
            async { Ok(Done::default()) }
        })
    }

    /// Waits until all numbers are done, each once.
    async fn finished(&self) {
        let all_done = |survey: &Survey| {
            survey.sources.iter().any(|source| source.ended) && survey.queues.iter().any(|books| books.done == 10)
        };
        let waiting = async {
            while !all_done(&self.fleet.ask(TakeSurvey).await.unwrap()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap_or_else(|_| panic!("{:?}", self.told.0));
        let mut seen = self.seen.lock().unwrap().clone();
        seen.sort_unstable();
        assert_eq!(seen, (1..=10).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_source_that_panics_has_failed_and_is_tried_again() {
    for place in [Panics::Call, Panics::Open, Panics::Pull] {
        let setting = Setting::new();
        let shutdown = Shutdown::new();
        let running = tokio::spawn(setting.node(Shaky::new(place, 2)).run(shutdown.clone()));
        setting.finished().await;
        shutdown.graceful();
        running.await.unwrap().unwrap();
        let told = setting.told.0.lock().unwrap();
        assert_eq!(told.iter().filter(|event| panicked(event)).count(), 2, "{told:?}");
        let ended = told.iter().filter(|event| matches!(event, Event::SourceEnded { .. }));
        assert_eq!(ended.count(), 1, "{told:?}");
    }
}

#[tokio::test]
async fn a_source_that_panics_here_is_run_elsewhere() {
    for place in [Panics::Call, Panics::Open, Panics::Pull] {
        let setting = Setting::new();
        let shutdown = Shutdown::new();
        let shaky = tokio::spawn(setting.node(Shaky::new(place, u32::MAX)).run(shutdown.clone()));
        let has_panicked = async {
            while !setting.told.0.lock().unwrap().iter().any(panicked) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), has_panicked).await.unwrap();
        let sound = tokio::spawn(setting.node(Shaky::new(place, 0)).run(shutdown.clone()));
        setting.finished().await;
        shutdown.graceful();
        shaky.await.unwrap().unwrap();
        sound.await.unwrap().unwrap();
    }
}
