//! The figures `up` shows while it runs: one line that changes on a terminal, a log line a second elsewhere.

use std::{
    io::{self, IsTerminal as _},
    time::Duration,
};

use baton::{
    message::Name,
    store::{Survey, TakeSurvey},
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{
    connection::Connection,
    figures::{Figures, is_live, nodes},
    member::Log,
    output::tame,
};

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

    /// Shows figures of the queue for ever; what the store does not tell is not shown.
    pub(crate) async fn show(&self, connection: &Connection, queue: &Name, log: &Log) {
        let mut earlier: Option<Survey> = None;
        loop {
            let Ok(later) = connection.fleet().ask(TakeSurvey).await else {
                tokio::time::sleep(EVERY).await;
                continue;
            };
            if let Some(earlier) = &earlier {
                let line = line(earlier, &later, queue);
                match &self.0 {
                    Some(bar) => {
                        bar.set_message(line);
                        bar.tick();
                    }
                    None => log.line(&line),
                }
            }
            earlier = Some(later);
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Takes the line away.
    pub(crate) fn close(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn line(earlier: &Survey, later: &Survey, queue: &Name) -> String {
    let figures = Figures::between(earlier, later, Some(queue));
    let dead = later.queues.iter().find(|it| it.queue == *queue).map_or(0, |it| it.dead);
    let paused = later.queues.iter().any(|it| it.queue == *queue && it.paused);
    let live: Vec<_> = nodes(later).filter(|node| is_live(later, node)).collect();
    let generators = later.sources.iter().filter(|it| it.queue == *queue);
    let generators = generators.filter_map(|it| live.iter().find(|node| Some(node.session) == it.holder));
    let generators: Vec<String> = generators.map(|it| format!("{}/{}", tame(&it.host), it.pid)).collect();
    let generators = if generators.is_empty() { "none".to_owned() } else { generators.join(", ") };
    let (done, ready, count) = (figures.done_per_s, figures.ready, live.len());
    let paused = if paused { ", paused" } else { "" };
    format!("{done} done/s, {ready} ready, {dead} dead, {count} nodes, generator {generators}{paused}")
}
