//! A bar for the person who waits for a long push.

use std::{cell::OnceCell, io::IsTerminal as _, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::Instant;

/// A push shorter than this needs no bar.
const SHORT: Duration = Duration::from_millis(500);

/// Draws on stderr if that is a terminal and the push takes a while.
pub(super) struct Progress {
    total: Option<u64>,
    done: u64,
    began: Instant,
    wanted: bool,
    bar: OnceCell<ProgressBar>,
}

impl Progress {
    pub(super) fn new(total: Option<u64>) -> Self {
        let wanted = std::io::stderr().is_terminal();
        Self { total, done: 0, began: Instant::now(), wanted, bar: OnceCell::new() }
    }

    pub(super) fn advance(&mut self, bytes: u64, messages: u64) {
        self.done += bytes;
        if self.wanted && self.began.elapsed() > SHORT {
            let bar = self.bar.get_or_init(|| draw(self.total));
            bar.set_position(self.done);
            bar.set_message(format!("{messages} messages"));
        }
    }

    pub(super) fn end(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

fn draw(total: Option<u64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    let layout = match total {
        Some(_) => "{wide_bar} {bytes}/{total_bytes} {msg} {eta}",
        None => "{spinner} {bytes} {msg} {elapsed}",
    };
    bar.with_style(ProgressStyle::with_template(layout).unwrap_or_else(|_| ProgressStyle::default_bar()))
}
