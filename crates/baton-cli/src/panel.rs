//! The figures `up` shows while it runs: one line that changes on a terminal; elsewhere log lines when they have changed,
//! one a second at first and then one in ten.
//!
//! On a terminal the line is drawn only while this process is in the foreground there: behind a prompt it would be in
//! somebody's way.

use std::{
    io::{self, Write as _},
    time::Duration,
};

use baton::{
    Name,
    admin::{Admin, Glance, Workforce},
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::{
    process::getpgrp,
    termios::{tcgetpgrp, tcgetwinsize},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::{node::Log, output::plural};

const EVERY: Duration = Duration::from_secs(1);
/// Queues that are named in one place.
const QUEUES_SHOWN: usize = 3;
/// So many lines are logged as they come, of the others one in as many.
const AT_FIRST: u32 = 10;

/// The line on a terminal, if there is one.
pub(crate) struct Panel {
    bar: Option<ProgressBar>,
    /// Whether what is left is what people wait for.
    until_done: bool,
}

impl Panel {
    pub(crate) fn new(shown: bool, until_done: bool) -> Self {
        let bar = shown.then(|| {
            let bar = ProgressBar::with_draw_target(None, place());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self { bar, until_done }
    }

    /// What log lines have to be written around.
    pub(crate) fn bar(&self) -> Option<ProgressBar> {
        self.bar.clone()
    }

    /// Shows figures of one queue, or of all, and of this machine's workers, for ever; what the store does not tell is not
    /// shown.
    pub(crate) async fn show(
        &self, admin: &Admin, queue: Option<&Name>, workers: &watch::Receiver<Workforce>, log: &Log,
    ) {
        tokio::join!(self.figures(admin, queue, workers, log), self.follow_width());
    }

    /// A line of a terminal that became narrower was broken into several: those before the last are taken away, for ever.
    async fn follow_width(&self) {
        let Some((bar, mut changes)) = self.bar.as_ref().zip(signal(SignalKind::window_change()).ok()) else { return };
        let mut before = width();
        while changes.recv().await.is_some() {
            let now = width();
            let broken = before.checked_div(now).map_or(0, |_| before.div_ceil(now).saturating_sub(1));
            before = now;
            if broken > 0 && is_in_front() {
                // A terminal that cannot be written has no line either.
                bar.suspend(|| write!(io::stderr().lock(), "\x1b[{broken}A\x1b[J").ok());
            }
        }
    }

    async fn figures(&self, admin: &Admin, queue: Option<&Name>, workers: &watch::Receiver<Workforce>, log: &Log) {
        let mut watch = admin.watch(queue, EVERY);
        let (mut seen, mut last) = (0_u32, String::new());
        loop {
            let Ok(glance) = watch.next().await else {
                tokio::time::sleep(EVERY).await;
                continue;
            };
            let shown = if self.until_done { progress(&glance) } else { line(&glance, *workers.borrow()) };
            match &self.bar {
                Some(bar) => {
                    if bar.is_hidden() == is_in_front() {
                        bar.set_draw_target(place());
                    }
                    bar.set_message(shown);
                    bar.tick();
                }
                None => {
                    seen = seen.saturating_add(1);
                    if shown != last && (seen <= AT_FIRST || seen.is_multiple_of(AT_FIRST)) {
                        log.line(&shown);
                        last = shown;
                    }
                }
            }
        }
    }

    /// Takes the line away.
    pub(crate) fn close(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Whether this process is in the foreground of its terminal; where nobody can tell, it is.
fn is_in_front() -> bool {
    tcgetpgrp(io::stderr()).map_or(true, |group| group == getpgrp())
}

/// How many characters fit into a line of the terminal.
fn width() -> u16 {
    tcgetwinsize(io::stderr()).map_or(0, |size| size.ws_col)
}

/// Where the line is drawn at the moment.
fn place() -> ProgressDrawTarget {
    if is_in_front() { ProgressDrawTarget::stderr_with_hz(4) } else { ProgressDrawTarget::hidden() }
}

fn line(it: &Glance, workers: Workforce) -> String {
    let generators: Vec<String> = it.generators.iter().map(ToString::to_string).collect();
    let generators = if generators.is_empty() { "none".to_owned() } else { generators.join(", ") };
    let (done, failed, count) = (it.rates.done_per_s, it.failed, it.nodes);
    let (ready, paused, workers) = (waiting(&it.waiting), paused(&it.paused), told(workers));
    let s = plural(count as u64);
    format!("{done} done/s, {ready}, {failed} failed, {count} node{s}{workers}, generator {generators}{paused}")
}

/// How many messages are ready, and in which queues.
fn waiting(queues: &[(Name, u64)]) -> String {
    let all: u64 = queues.iter().map(|(_, ready)| ready).sum();
    let (shown, others) = queues.split_at(queues.len().min(QUEUES_SHOWN));
    let others = match others.len() {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    match shown {
        [] => "0 ready".to_owned(),
        [(queue, _)] => format!("{all} ready in {queue}"),
        several => {
            let several: Vec<String> = several.iter().map(|(queue, ready)| format!("{queue} {ready}")).collect();
            format!("{all} ready ({}{others})", several.join(", "))
        }
    }
}

/// The queues that are paused, if there are some.
fn paused(queues: &[Name]) -> String {
    let (shown, others) = queues.split_at(queues.len().min(QUEUES_SHOWN));
    let shown: Vec<&str> = shown.iter().map(Name::as_str).collect();
    match (shown.is_empty(), others.len()) {
        (true, _) => String::new(),
        (_, 0) => format!(", paused: {}", shown.join(", ")),
        (_, others) => format!(", paused: {} and {others} more", shown.join(", ")),
    }
}

/// How many workers this machine has, those that are in trouble or leave named apart; nothing where there are none, as where
/// children run the messages.
fn told(Workforce { running, resting, leaving }: Workforce) -> String {
    let apart = [(resting, "crashed"), (leaving, "leaving")];
    let apart = apart.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!(", {count} {what}"));
    let apart: String = apart.collect();
    match running {
        0 if apart.is_empty() => apart,
        _ => format!(", {running} worker{} here{apart}", plural(running as u64)),
    }
}

/// How far it is, and how long the rest takes at this pace, once it is known how much that is.
fn progress(it: &Glance) -> String {
    let Glance { rates, done, failed, left, is_fed, .. } = it;
    let ended_per_s = rates.done_per_s + rates.failed_per_s;
    let when = match (is_fed, ended_per_s > 0.0) {
        (true, _) => "more to come".to_owned(),
        (false, _) if *left == 0 => "all done".to_owned(),
        (false, true) => format!("about {} to go", span(*left as f64 / ended_per_s)),
        (false, false) => "nothing ends at the moment".to_owned(),
    };
    let paused = paused(&it.paused);
    format!("{done} done, {failed} failed, {left} left, {}/s, {when}{paused}", rates.done_per_s)
}

/// Seconds as people say them.
fn span(seconds: f64) -> String {
    let seconds = seconds.ceil() as u64;
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3_600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_named_where_there_are_some() {
        let force = |running, resting, leaving| told(Workforce { running, resting, leaving });
        assert_eq!(force(0, 0, 0), "");
        assert_eq!(force(1, 0, 0), ", 1 worker here");
        assert_eq!(force(0, 1, 2), ", 0 workers here, 1 crashed, 2 leaving");
    }

    #[test]
    fn what_waits_and_what_is_paused_names_its_queue() {
        let name = |text: &str| Name::new(text).unwrap();
        let ready = |queues: &[(&str, u64)]| {
            waiting(&queues.iter().map(|(queue, ready)| (name(queue), *ready)).collect::<Vec<_>>())
        };
        assert_eq!(ready(&[]), "0 ready");
        assert_eq!(ready(&[("charge", 7)]), "7 ready in charge");
        assert_eq!(ready(&[("charge", 7), ("mail", 2)]), "9 ready (charge 7, mail 2)");
        assert_eq!(ready(&[("a", 4), ("b", 3), ("c", 2), ("d", 1), ("e", 1)]), "11 ready (a 4, b 3, c 2 and 2 more)");
        assert_eq!(paused(&[]), "");
        assert_eq!(paused(&[name("a"), name("b")]), ", paused: a, b");
    }

    #[test]
    fn spans_are_rounded_up() {
        assert_eq!([0.2, 119.0, 120.5, 7_200.0].map(span), ["1 s", "119 s", "3 min", "2 h"]);
    }
}
