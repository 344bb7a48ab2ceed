//! The end of a child's error output.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader},
    task::JoinSet,
};

/// Bytes kept of a line.
const LINE: u64 = 400;
/// How long the rest is awaited behind the end of the child: a process it left behind may hold the pipe open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Reads error output to its end, so that the child is never held up by it, and keeps the last line that is not blank.
#[derive(Debug)]
pub(crate) struct Tail {
    line: Arc<Mutex<String>>,
    reading: JoinSet<()>,
}

impl Tail {
    /// Begins to read.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub(crate) fn of(errors: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let line = Arc::default();
        let reading = JoinSet::from_iter([read(errors, Arc::clone(&line))]);
        Self { line, reading }
    }

    /// The last line, once the child has ended; empty if it complained of nothing.
    ///
    /// # Cancel safety
    /// It can be asked for again.
    pub(crate) async fn last_line(&mut self) -> String {
        // Whether all was heard or not: what was heard last is told.
        tokio::time::timeout(LAST_WORDS, self.reading.join_next()).await.ok();
        self.line.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn read(errors: impl AsyncRead + Unpin, last: Arc<Mutex<String>>) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    // A longer line is read in several parts; the first one tells the cause.
    let mut begins = true;
    while let Ok(1..) = (&mut errors).take(LINE).read_until(b'\n', &mut line).await {
        let text = String::from_utf8_lossy(&line);
        if begins && !text.trim().is_empty() {
            text.trim().clone_into(&mut last.lock().unwrap_or_else(PoisonError::into_inner));
        }
        begins = line.ends_with(b"\n");
        line.clear();
    }
}
