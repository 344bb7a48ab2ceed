//! Lines that a child prints.

use std::{
    io,
    time::{Duration, Instant},
};

use tokio::process::ChildStdout;

use crate::process::Pipe;

/// The standard output of a child.
#[derive(Debug)]
pub(super) struct Output {
    pipe: Pipe,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were given as lines.
    given: usize,
    /// Until when the next bytes are waited for in the thread. A line may come in parts: some programs write its end
    /// separately.
    in_thread: Option<Instant>,
}

impl Output {
    pub(super) fn new(pipe: ChildStdout) -> io::Result<Self> {
        Ok(Self { pipe: Pipe::of(pipe.into_owned_fd()?)?, buffer: Vec::new(), given: 0, in_thread: None })
    }

    /// The next line with its end, at most `limit` bytes without the end. At the end of the output, the rest without an end.
    ///
    /// # Cancel safety
    /// Bytes that were read are kept.
    pub(super) async fn line(&mut self, limit: usize) -> io::Result<&[u8]> {
        self.buffer.drain(..self.given);
        self.given = 0;
        let mut searched = 0;
        loop {
            let behind = self.buffer.get(searched..).unwrap_or_default();
            if let Some(end) = memchr::memchr(b'\n', behind) {
                // A line over the limit is returned without its end; by that the caller knows it.
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

    /// Lines are waited for in the thread until then, and by the runtime afterwards.
    pub(super) const fn wait_in_thread(&mut self, until: Option<Instant>) {
        self.in_thread = until;
    }

    /// Whether all output was returned as lines. The system is asked directly, since the runtime may not yet know of the
    /// latest bytes.
    pub(super) fn is_still(&self) -> bool {
        self.buffer.len() == self.given && !self.pipe.has_more(Duration::ZERO)
    }
}
