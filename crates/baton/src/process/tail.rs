//! The end of a child's error output.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    task::JoinSet,
};

/// Bytes kept of a line.
const LINE: usize = 400;
/// Bytes kept in all.
const KEPT: usize = 2_000;
/// How long the rest is awaited behind the end of the child: a process it left behind may hold the pipe open.
pub(crate) const LAST_WORDS: Duration = Duration::from_millis(500);

/// Who hears each line.
pub(crate) type Listener = Arc<dyn Fn(&str) + Send + Sync>;

/// The last lines of what was read, without blank ones; of a long one its beginning, which tells the cause.
#[derive(Debug, Default)]
pub(crate) struct LastLines {
    lines: VecDeque<String>,
    /// Bytes of all of them.
    bytes: usize,
    /// What is read of the line that has not ended yet.
    begun: Vec<u8>,
}

impl LastLines {
    /// Takes what was read next; `hear` gets each line that has ended.
    pub(crate) fn add(&mut self, read: &[u8], hear: &dyn Fn(&str)) {
        for part in read.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE.saturating_sub(self.begun.len());
            self.begun.extend_from_slice(part.get(..room).unwrap_or(part));
            if part.ends_with(b"\n") {
                self.end_line(hear);
            }
        }
    }

    /// Ends the line that was begun.
    pub(crate) fn end_line(&mut self, hear: &dyn Fn(&str)) {
        let line = String::from_utf8_lossy(&self.begun).trim_end().to_owned();
        self.begun.clear();
        if line.trim().is_empty() {
            return;
        }
        hear(&line);
        self.bytes += line.len() + 1;
        self.lines.push_back(line);
        while self.bytes > KEPT {
            let Some(first) = self.lines.pop_front() else { break };
            self.bytes -= first.len() + 1;
        }
    }

    /// The lines, the last one at the end.
    fn text(&self) -> String {
        self.lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// The line that tells most, and below it all of them if there are more. Those that name an error are told before the last
    /// one, since some programs end with something else.
    pub(crate) fn told(&self) -> String {
        let names_one = |line: &&String| {
            !line.starts_with(char::is_whitespace)
                && ["rror", "xception", "panicked"].iter().any(|word| line.contains(word))
        };
        let Some(cause) = self.lines.iter().rfind(names_one).or_else(|| self.lines.back()) else {
            return String::new();
        };
        if self.lines.len() == 1 { cause.trim().to_owned() } else { format!("{}\n{}", cause.trim(), self.text()) }
    }

    fn last(&self) -> String {
        self.lines.back().map(|line| line.trim().to_owned()).unwrap_or_default()
    }
}

/// Reads error output to its end, so that the child is never held up by it, and keeps its last lines.
#[derive(Debug)]
pub(crate) struct Tail {
    lines: Arc<Mutex<LastLines>>,
    reading: JoinSet<()>,
}

impl Tail {
    /// Begins to read.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub(crate) fn of(errors: impl AsyncRead + Unpin + Send + 'static, hear: Option<Listener>) -> Self {
        let lines: Arc<Mutex<LastLines>> = Arc::default();
        let kept = Arc::clone(&lines);
        let reading = JoinSet::from_iter([async move {
            let add = |read: &[u8]| {
                let hear = |line: &str| hear.iter().for_each(|hear| hear(line));
                let mut lines = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if read.is_empty() { lines.end_line(&hear) } else { lines.add(read, &hear) }
            };
            read_all(errors, add).await;
        }]);
        Self { lines, reading }
    }

    /// The last line, once the child has ended; empty if it complained of nothing.
    ///
    /// # Cancel safety
    /// It can be asked for again.
    pub(crate) async fn last_line(&mut self) -> String {
        self.heard_out().await;
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).last()
    }

    /// What it complained of, once the child has ended: see [`LastLines::told`].
    ///
    /// # Cancel safety
    /// It can be asked for again.
    pub(crate) async fn told(&mut self) -> String {
        self.heard_out().await;
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).told()
    }

    async fn heard_out(&mut self) {
        // Whether all was heard or not: what was heard last is told.
        tokio::time::timeout(LAST_WORDS, self.reading.join_next()).await.ok();
    }
}

/// Hands over what is read, and nothing at the end.
async fn read_all(mut from: impl AsyncRead + Unpin, mut take: impl FnMut(&[u8])) {
    let mut read = Vec::with_capacity(4 << 10);
    while let Ok(1..) = from.read_buf(&mut read).await {
        take(&read);
        read.clear();
    }
    take(&[]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_within_bounds() {
        let mut lines = LastLines::default();
        let heard = Mutex::new(Vec::new());
        let hear = |line: &str| heard.lock().unwrap().push(line.to_owned());
        lines.add(b"first\n\n  se", &hear);
        lines.add(b"cond\n", &hear);
        lines.add(&[b'x'; 5_000], &hear);
        lines.end_line(&hear);
        assert_eq!(*heard.lock().unwrap(), ["first".to_owned(), "  second".to_owned(), "x".repeat(LINE)]);
        assert_eq!(lines.text(), format!("first\n  second\n{}", "x".repeat(LINE)));
        for nth in 0..10_000 {
            lines.add(format!("line {nth}\n").as_bytes(), &|_| {});
        }
        assert_eq!((lines.last(), lines.told().lines().next()), ("line 9999".to_owned(), Some("line 9999")));
        assert!(lines.text().len() <= KEPT && lines.text().len() > KEPT - 20);
    }
    #[test]
    fn the_line_that_names_the_error_is_told_first() {
        let told = |text: &str| {
            let mut lines = LastLines::default();
            lines.add(text.as_bytes(), &|_| {});
            lines.told().lines().next().unwrap_or_default().to_owned()
        };
        assert_eq!(told("Traceback (most recent call last):\n  File \"x\"\nKeyError: 'a'\n"), "KeyError: 'a'");
        let node =
            "/x/h.js:7\n  throw new Error(\"no\");\n  ^\n\nError: no\n    at x (/x/h.js:7:9)\n\nNode.js v20.1.0\n";
        assert_eq!(told(node), "Error: no");
        assert_eq!(told("one\ntwo\n"), "two");
        assert_eq!(told(""), "");
    }
}
