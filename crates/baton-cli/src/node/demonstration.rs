//! The demonstration: ticks into a queue of its own, and a handler that takes a while and fails now and then.

use std::{ffi::OsString, ops::RangeInclusive, time::Duration};

use baton::settings::quantity;

use super::queue_work::Task;
use crate::exit::Failure;

/// The queue of the demonstration, and the name of the source that feeds it.
pub(super) const DEMONSTRATION: &str = "demo";

/// Whether it runs, and how its handler behaves.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Demonstration")]
pub(super) struct Demonstration {
    /// Run the demonstration: ticks into the queue `demo`, the handler demo for them, and the recipes (see --recipes)
    #[arg(id = "demo", long = "demo", conflicts_with_all = ["queues", "exec", "exec_once", "handler", "lines", "lines_from", "cron"])]
    pub(super) wanted: bool,
    /// How long the handler demo takes, as 20ms or 0..1000ms; needs --demo or --handler demo [default: 0..1000ms]
    #[arg(long = "demo-delay", value_name = "RANGE", value_parser = quantity::range)]
    delay: Option<RangeInclusive<Duration>>,
    /// How likely the handler demo fails, from 0 to 1; needs --demo or --handler demo [default: 0.02]
    #[arg(long = "demo-fail", value_name = "SHARE", value_parser = quantity::share)]
    fail: Option<f64>,
}

impl Demonstration {
    /// The first flag about its handler, if there is one.
    pub(super) const fn about_its_handler(&self) -> Option<&'static str> {
        match self {
            Self { delay: Some(_), .. } => Some("--demo-delay"),
            Self { fail: Some(_), .. } => Some("--demo-fail"),
            _ => None,
        }
    }

    /// Gives the handler what the flags say. Refused where another handler, or none, is named.
    pub(super) fn override_in(&self, task: Option<&mut Task>) -> Result<(), Failure> {
        match (task, self.about_its_handler()) {
            (Some(Task::Demo(demo)), _) => {
                demo.delay = self.delay.clone().unwrap_or_else(|| demo.delay.clone());
                demo.fail = self.fail.unwrap_or(demo.fail);
                Ok(())
            }
            (_, Some(flag)) => Err(Failure::usage(
                format!("{flag} is for the handler demo, which is not named"),
                "add --demo or --handler demo, or leave it out",
            )),
            _ => Ok(()),
        }
    }

    /// The flags about its handler for another process.
    pub(super) fn flags(&self) -> impl Iterator<Item = [OsString; 2]> {
        let time = |time: &Duration| format!("{}ms", time.as_secs_f64() * 1000.0);
        let delay = self.delay.as_ref().map(|it| format!("{}..{}", time(it.start()), time(it.end())));
        let flags = [("--demo-delay", delay), ("--demo-fail", self.fail.map(|it| it.to_string()))];
        flags.into_iter().filter_map(|(flag, value)| Some([flag.into(), value?.into()]))
    }
}
