//! The end of a child's error output.

use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Poll, ready},
    time::Duration,
};

use rustix::io::ioctl_fionread;
use tokio::{
    io::{AsyncRead as _, ReadBuf},
    process::ChildStderr,
    task::JoinSet,
};

/// Bytes kept of a line.
const LINE: usize = 400;
/// Bytes kept in all.
const KEPT: usize = 2_000;
/// Bytes read at once.
const READ: usize = 4 << 10;
/// How long the rest is awaited behind the end of the child: a process it left behind may hold the pipe open.
pub(crate) const LAST_WORDS: Duration = Duration::from_millis(500);

/// Hears each line, with the number of the task that the child had when it printed it.
pub(crate) type Listener = Arc<dyn Fn(&str, Option<u64>) + Send + Sync>;

/// The last lines of what was read, without blank ones; of a long one its beginning, which tells the cause.
#[derive(Debug, Default)]
pub(crate) struct LastLines {
    lines: VecDeque<String>,
    /// Bytes of all of them.
    bytes: usize,
    /// What is read of the line that has not ended yet.
    begun: Vec<u8>,
    /// How many bytes of that are not to be kept.
    old: usize,
    /// How many of the bytes to come are not to be kept.
    unread: usize,
    /// Bytes to come that the child printed for former tasks, in their order.
    former: VecDeque<(usize, Option<u64>)>,
    /// The task that the bytes behind those are for.
    task: Option<u64>,
    /// The task of what was read last.
    read_of: Option<u64>,
}

impl LastLines {
    /// Takes what was read next; `hear` gets each line that has ended.
    pub(crate) fn add(&mut self, mut read: &[u8], hear: &dyn Fn(&str, Option<u64>)) {
        while let Some((bytes, task)) = self.former.pop_front() {
            let (of_task, behind) = read.split_at(bytes.min(read.len()));
            self.read_of = task;
            self.add_of_one(of_task, hear);
            if of_task.len() < bytes {
                self.former.push_front((bytes - of_task.len(), task));
                return;
            }
            read = behind;
        }
        self.read_of = self.task;
        self.add_of_one(read, hear);
    }

    /// The child has this task from now on, and has printed so many bytes that are not read yet for those before.
    fn hand_over(&mut self, unread: usize, task: Option<u64>) {
        let known: usize = self.former.iter().map(|(bytes, _)| bytes).sum();
        let before = std::mem::replace(&mut self.task, task);
        if unread > known {
            self.former.push_back((unread - known, before));
        }
    }

    fn add_of_one(&mut self, read: &[u8], hear: &dyn Fn(&str, Option<u64>)) {
        let (before, since) = read.split_at(self.unread.min(read.len()));
        if !before.is_empty() {
            self.unread -= before.len();
            self.take(before, hear);
            self.forget();
        }
        self.take(since, hear);
    }

    /// Keeps nothing of what was read so far, nor of so many bytes that are printed and not read yet. They are heard all the
    /// same.
    fn begin_anew(&mut self, unread: usize) {
        self.forget();
        self.unread = unread;
    }

    fn forget(&mut self) {
        self.lines.clear();
        (self.bytes, self.old) = (0, self.begun.len());
    }

    fn take(&mut self, read: &[u8], hear: &dyn Fn(&str, Option<u64>)) {
        for part in read.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE.saturating_sub(self.begun.len());
            self.begun.extend_from_slice(part.get(..room).unwrap_or(part));
            if part.ends_with(b"\n") {
                self.end_line(hear);
            }
        }
    }

    /// Ends the line that was begun.
    pub(crate) fn end_line(&mut self, hear: &dyn Fn(&str, Option<u64>)) {
        let begun = std::mem::take(&mut self.begun);
        let shown =
            |bytes: &[u8]| Some(String::from_utf8_lossy(bytes).trim_end().to_owned()).filter(|it| !it.is_empty());
        let line = shown(&begun);
        line.iter().for_each(|line| hear(line, self.read_of));
        let line = match std::mem::take(&mut self.old) {
            0 => line,
            old => begun.get(old..).and_then(shown),
        };
        let Some(line) = line else { return };
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
    heard: Arc<Mutex<Heard>>,
    reading: JoinSet<()>,
}

/// What was read is in the lines, and all else still in the pipe: both change together.
#[derive(Debug)]
struct Heard {
    lines: LastLines,
    errors: ChildStderr,
}

impl Tail {
    /// Begins to read.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub(crate) fn of(errors: ChildStderr, hear: Option<Listener>) -> Self {
        let heard = Arc::new(Mutex::new(Heard { lines: LastLines::default(), errors }));
        let kept = Arc::clone(&heard);
        let reading = JoinSet::from_iter([async move {
            let hear = |line: &str, task| hear.iter().for_each(|hear| hear(line, task));
            let mut room = vec![0; READ];
            while read_some(&kept, &mut room, &hear).await {}
            kept.lock().unwrap_or_else(PoisonError::into_inner).lines.end_line(&hear);
        }]);
        Self { heard, reading }
    }

    /// What the child prints from now on is for this task; with `keeps_nothing`, its complaints up to now are forgotten.
    pub(crate) fn hand_over(&self, task: Option<u64>, keeps_nothing: bool) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let unread = usize::try_from(ioctl_fionread(&heard.errors).unwrap_or(0)).unwrap_or(0);
        heard.lines.hand_over(unread, task);
        if keeps_nothing {
            heard.lines.begin_anew(unread);
        }
    }

    /// The last line, once the child has ended; empty if it complained of nothing.
    ///
    /// # Cancel safety
    /// It can be asked for again.
    pub(crate) async fn last_line(&mut self) -> String {
        self.heard_out().await;
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).lines.last()
    }

    /// What it complained of, once the child has ended: see [`LastLines::told`].
    ///
    /// # Cancel safety
    /// It can be asked for again.
    pub(crate) async fn told(&mut self) -> String {
        self.heard_out().await;
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).lines.told()
    }

    async fn heard_out(&mut self) {
        // Whether all was heard or not: what was heard last is told.
        tokio::time::timeout(LAST_WORDS, self.reading.join_next()).await.ok();
    }
}

/// Reads what is there, or waits for something; whether there may be more.
async fn read_some(heard: &Mutex<Heard>, room: &mut [u8], hear: &(dyn Fn(&str, Option<u64>) + Sync)) -> bool {
    poll_fn(|context| {
        let Heard { lines, errors } = &mut *heard.lock().unwrap_or_else(PoisonError::into_inner);
        let mut read = ReadBuf::new(room);
        let result = ready!(Pin::new(errors).poll_read(context, &mut read));
        lines.add(read.filled(), hear);
        Poll::Ready(result.is_ok() && !read.filled().is_empty())
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_within_bounds() {
        let mut lines = LastLines::default();
        let heard = Mutex::new(Vec::new());
        let hear = |line: &str, _: Option<u64>| heard.lock().unwrap().push(line.to_owned());
        lines.add(b"first\n\n  se", &hear);
        lines.add(b"cond\n", &hear);
        lines.add(&[b'x'; 5_000], &hear);
        lines.end_line(&hear);
        assert_eq!(*heard.lock().unwrap(), ["first".to_owned(), "  second".to_owned(), "x".repeat(LINE)]);
        assert_eq!(lines.text(), format!("first\n  second\n{}", "x".repeat(LINE)));
        for nth in 0..10_000 {
            lines.add(format!("line {nth}\n").as_bytes(), &|_, _| {});
        }
        assert_eq!((lines.last(), lines.told().lines().next()), ("line 9999".to_owned(), Some("line 9999")));
        assert!(lines.text().len() <= KEPT && lines.text().len() > KEPT - 20);
    }

    #[test]
    fn what_was_printed_before_is_heard_and_not_kept() {
        let mut lines = LastLines::default();
        let heard = Mutex::new(Vec::new());
        let hear = |line: &str, _: Option<u64>| heard.lock().unwrap().push(line.to_owned());
        lines.add(b"one\ntw", &hear);
        // The next five bytes are printed already.
        lines.begin_anew(5);
        lines.add(b"o\nol", &hear);
        assert_eq!(lines.text(), "");
        lines.add(b"d new\nlast\n", &hear);
        assert_eq!(lines.text(), " new\nlast");
        assert_eq!(*heard.lock().unwrap(), ["one", "two", "old new", "last"]);
    }

    #[test]
    fn a_line_belongs_to_the_task_that_the_child_had_when_it_printed_it() {
        let mut lines = LastLines::default();
        let heard = Mutex::new(Vec::new());
        let hear = |line: &str, task: Option<u64>| heard.lock().unwrap().push((line.to_owned(), task));
        lines.hand_over(0, Some(1));
        lines.add(b"of 1\n", &hear);
        // Of the first task four bytes are printed and not read yet, and of the time between the tasks three.
        lines.hand_over(4, None);
        lines.hand_over(7, Some(2));
        lines.add(b"la", &hear);
        lines.add(b"t\nid\nof 2\n", &hear);
        lines.hand_over(0, None);
        lines.add(b"idle\n", &hear);
        let of = |text: &str, task| (text.to_owned(), task);
        let told = [of("of 1", Some(1)), of("lat", Some(1)), of("id", None), of("of 2", Some(2)), of("idle", None)];
        assert_eq!(*heard.lock().unwrap(), told);
    }

    #[test]
    fn the_line_that_names_the_error_is_told_first() {
        let told = |text: &str| {
            let mut lines = LastLines::default();
            lines.add(text.as_bytes(), &|_, _| {});
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
