//! What handlers do every day: burn the processor, wait for something, fail now and then. A worker process for each.
//!
//! The worker says a line once it has finished as many messages as it was told of, so that nobody has to ask the store
//! meanwhile how far it is.

use std::{
    io::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use baton::{Context, Done, Failure as Unfinished, QueuePolicy, Role, Shutdown, admin::obey_leash, settings::Settings};
use clap::ValueEnum;

use super::{
    Tell,
    burning::{burn, steps_in},
    producer::NUMBER_DIGITS,
    target::connect,
};
use crate::failure::Failure;

/// The processor time of a workload that burns.
const BURN: Duration = Duration::from_millis(1);
/// What a workload that waits waits for, and how many do so at once.
const WAIT: (Duration, usize) = (Duration::from_millis(10), 256);
/// One in so many messages fails.
const FAILS: u64 = 10;
/// How often such a workload is tried again; the last time it works.
const RETRIES: u32 = 2;

/// What a handler does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// Burns a core for 1 ms
    Burn,
    /// Waits for 10 ms, 256 at once
    Wait,
    /// One in ten fails twice; it is tried again at once
    Fail,
}

impl Workload {
    /// The queue of such messages.
    pub(super) const fn queue(self) -> &'static str {
        match self {
            Self::Burn => "work-burn",
            Self::Wait => "work-wait",
            Self::Fail => "work-fail",
        }
    }

    /// As an argument.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Burn => "burn",
            Self::Wait => "wait",
            Self::Fail => "fail",
        }
    }

    fn policy(self) -> QueuePolicy {
        let usual = QueuePolicy::default();
        match self {
            Self::Burn => usual,
            Self::Wait => QueuePolicy { concurrency: WAIT.1, ..usual },
            Self::Fail => QueuePolicy { retries: RETRIES, backoff: Duration::ZERO, ..usual },
        }
    }

    /// Works until its leash says that it is over, and says when it has finished so many.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn run(self, messages: u64, settings: &Settings, ear: &Tell) -> Result<(), Failure> {
        let shutdown = Shutdown::new();
        obey_leash(&shutdown)
            .map_err(|error| Failure::new(format!("cannot start a thread: {error}"), "free some threads"))?;
        let admin = connect(settings, None, ear)?;
        let (steps, finished) = (steps_in(BURN), Arc::new(AtomicU64::new(0)));
        let node = admin.fleet().node().role(Role::Worker).policy(self.policy());
        let node = node.handler(self.queue(), move |body: String, context: Context| {
            let finished = finished.clone();
            async move {
                match self {
                    Self::Burn => burn(steps),
                    Self::Wait => tokio::time::sleep(WAIT.0).await,
                    Self::Fail if fails(&body) && context.attempt() <= RETRIES => {
                        return Err(Unfinished::new("it fails on purpose"));
                    }
                    Self::Fail => {}
                }
                if finished.fetch_add(1, Relaxed) + 1 == messages {
                    // Nobody reads what cannot be written.
                    writeln!(std::io::stdout().lock(), "finished").ok();
                }
                Ok(Done::default())
            }
        });
        node.run(shutdown).await.map_err(|error| Failure::new(error.to_string(), "run the command again"))
    }
}

/// Whether the message of this body fails, by the number at its head.
fn fails(body: &str) -> bool {
    let number = body.get(..NUMBER_DIGITS).and_then(|number| number.parse::<u64>().ok());
    number.is_some_and(|number| number.is_multiple_of(FAILS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_ten_fails() {
        let failing = (0..1000).filter(|number| fails(&format!("{number:010}noise"))).count();
        assert_eq!(failing, 100);
        assert!(!fails("noise"));
    }
}
