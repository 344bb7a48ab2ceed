//! The figures `up` shows while it runs: one line that changes on a terminal, a log line a second elsewhere.

use std::{
    io::{self, IsTerminal as _},
    time::Duration,
};

use baton::{
    Name,
    operate::{Glance, Operator},
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::node::Log;

const EVERY: Duration = Duration::from_secs(1);

/// The line on a terminal, if there is one.
pub(crate) struct Panel(Option<ProgressBar>);

impl Panel {
    pub(crate) fn new(quiet: bool) -> Self {
        let shown = !quiet && io::stderr().is_terminal();
        Self(shown.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(4));
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            bar
        }))
    }

    /// What log lines have to be written around.
    pub(crate) fn bar(&self) -> Option<ProgressBar> {
        self.0.clone()
    }

    /// Shows figures of one queue, or of all, for ever; what the store does not tell is not shown.
    pub(crate) async fn show(&self, operator: &Operator, queue: Option<&Name>, log: &Log) {
        let mut watch = operator.watch(queue, EVERY);
        loop {
            match (watch.next().await, &self.0) {
                (Err(_), _) => tokio::time::sleep(EVERY).await,
                (Ok(glance), Some(bar)) => {
                    bar.set_message(line(&glance));
                    bar.tick();
                }
                (Ok(glance), None) => log.line(&line(&glance)),
            }
        }
    }

    /// Takes the line away.
    pub(crate) fn close(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn line(it: &Glance) -> String {
    let generators: Vec<String> = it.generators.iter().map(ToString::to_string).collect();
    let generators = if generators.is_empty() { "none".to_owned() } else { generators.join(", ") };
    let (done, ready, dead, count) = (it.rates.done_per_s, it.rates.ready, it.dead, it.nodes);
    let paused = if it.paused { ", paused" } else { "" };
    format!("{done} done/s, {ready} ready, {dead} dead, {count} nodes, generator {generators}{paused}")
}
