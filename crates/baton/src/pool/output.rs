//! Lines that a child prints.

use std::io;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::{io::AsyncReadExt as _, process::ChildStdout};

/// Bytes read at least at a time.
const READ: usize = 4 << 10;

/// What a child prints.
#[derive(Debug)]
pub(super) struct Output {
    pipe: ChildStdout,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were given as lines.
    given: usize,
}

impl Output {
    pub(super) const fn new(pipe: ChildStdout) -> Self {
        Self { pipe, buffer: Vec::new(), given: 0 }
    }

    /// The next line with its end, of at most `limit` bytes without that; at the end of all what is left, without an end.
    ///
    /// # Cancel safety
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
            self.buffer.reserve(READ);
            if searched > limit || self.pipe.read_buf(&mut self.buffer).await? == 0 {
                self.given = searched;
                break;
            }
        }
        Ok(self.buffer.get(..self.given).unwrap_or_default())
    }

    /// Whether nothing came that was not given. The system is asked itself: what came just now is not yet known to the
    /// runtime.
    pub(super) fn is_still(&self) -> bool {
        let mut pipe = [PollFd::new(&self.pipe, PollFlags::IN)];
        let is_silent = matches!(poll(&mut pipe, Some(&Timespec::default())), Ok(0));
        self.buffer.len() == self.given && is_silent
    }
}
