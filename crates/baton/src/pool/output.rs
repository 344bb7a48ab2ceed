//! Lines that a child prints.

use std::{
    io,
    time::{Duration, Instant},
};

use tokio::process::ChildStdout;

use crate::process::Pipe;

/// What a child prints.
#[derive(Debug)]
pub(super) struct Output {
    pipe: Pipe,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were given as lines.
    given: usize,
    /// Until when what comes next is waited for in the thread. A line may come in parts: some programs write its end by itself.
    in_thread: Option<Instant>,
}

impl Output {
    pub(super) fn new(pipe: ChildStdout) -> io::Result<Self> {
        Ok(Self { pipe: Pipe::of(pipe.into_owned_fd()?)?, buffer: Vec::new(), given: 0, in_thread: None })
    }

    /// The next line with its end, of at most `limit` bytes without that; at the end of all what is left, without an end.
    ///
    /// # Shutdown safety
    /// What was read is kept.
    pub(super) async fn line(&mut self, limit: usize) -> io::Result<&[u8]> {
        self.buffer.drain(..self.given);
        self.given = 0;
        let mut searched = 0;
        loop {
            let behind = self.buffer.get(searched..).unwrap_or_default();
            if let Some(end) = memchr::memchr(b'\n', behind) {
                // One that is too long is told by its missing end.
                let length = searched + end;
                self.given = if length > limit { length } else { length + 1 };
                break;
            }
            searched = self.buffer.len();
            if searched > limit || self.pipe.read(&mut self.buffer, &mut self.in_thread).await? == 0 {
                self.given = searched;
                break;
            }
        }
        Ok(self.buffer.get(..self.given).unwrap_or_default())
    }

    /// Has lines waited for in the thread until then, and by the runtime afterwards.
    pub(super) const fn wait_in_thread(&mut self, until: Option<Instant>) {
        self.in_thread = until;
    }

    /// Whether nothing came that was not given. The system is asked itself: what came just now is not yet known to the
    /// runtime.
    pub(super) fn is_still(&self) -> bool {
        self.buffer.len() == self.given && !self.pipe.has_more(Duration::ZERO)
    }
}
