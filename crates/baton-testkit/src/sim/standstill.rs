//! A watchman for time that stands still: simulated time only goes on when everything waits, so something that spins
//! without a call holds it up for ever, and no rule is looked at any more.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Real time without any simulated time after which a run is given up.
const LIMIT: Duration = Duration::from_secs(120);

/// Watches a run until it is dropped.
pub(super) struct Standstill {
    /// Where the run shows how far it is.
    pub(super) time: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
}

impl Standstill {
    /// Watches the fleet of a seed; if its time stands still, says so and ends the process, since nothing else can.
    pub(super) fn watch(seed: u64) -> Self {
        let (time, over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (shown, ended) = (time.clone(), over.clone());
        thread::spawn(move || {
            let mut last = (0, Instant::now());
            while !ended.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(200));
                let now = shown.load(Ordering::Relaxed);
                if now != last.0 {
                    last = (now, Instant::now());
                } else if last.1.elapsed() > LIMIT {
                    eprintln!(
                        "seed {seed}: time stands still at {now} ms, something spins (BATON_TELL=1 tells what happened)"
                    );
                    std::process::exit(101);
                }
            }
        });
        Self { time, over }
    }
}

impl Drop for Standstill {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}
