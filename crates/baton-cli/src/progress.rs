//! A bar for the person who waits for a long push.

use std::{cell::OnceCell, io::IsTerminal as _, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::Instant;

/// A push shorter than this needs no bar.
const SHORT: Duration = Duration::from_millis(500);

/// Draws on stderr if that is a terminal and the push takes a while.
pub(crate) struct Progress {
    total: Option<u64>,
    began: Instant,
    wanted: bool,
    bar: OnceCell<ProgressBar>,
}

impl Progress {
    pub(crate) fn new(total: Option<u64>) -> Self {
        let wanted = std::io::stderr().is_terminal();
        Self { total, began: Instant::now(), wanted, bar: OnceCell::new() }
    }

    pub(crate) fn show(&self, bytes: u64, messages: u64) {
        if self.wanted && self.began.elapsed() > SHORT {
            let bar = self.bar.get_or_init(|| draw(self.total));
            bar.set_position(bytes);
            bar.set_message(format!("{messages} messages"));
        }
    }

    pub(crate) fn end(&self) {
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
