//! Lines that a child prints.
//!
//! A child that answers at once is waited for in this very thread, for a moment: the system then goes from it to its reader
//! and back without a detour by the runtime, which would take three times as long. Others are waited for by the runtime.

use std::{io, time::Duration};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::{io::AsyncReadExt as _, process::ChildStdout};

/// The longest that a thread of the runtime waits for an answer.
pub(super) const AT_ONCE: Duration = Duration::from_micros(100);
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
    pub(super) async fn line(&mut self, limit: usize, at_once: bool) -> io::Result<&[u8]> {
        self.buffer.drain(..self.given);
        self.given = 0;
        let (mut searched, mut at_once) = (0, at_once);
        loop {
            let behind = self.buffer.get(searched..).unwrap_or_default();
            if let Some(end) = memchr::memchr(b'\n', behind) {
                // One that is too long is told by its missing end.
                let length = searched + end;
                self.given = if length > limit { length } else { length + 1 };
                break;
            }
            searched = self.buffer.len();
            if searched > limit || !self.read(std::mem::take(&mut at_once)).await? {
                self.given = searched;
                break;
            }
        }
        Ok(self.buffer.get(..self.given).unwrap_or_default())
    }

    /// Reads more; false at the end.
    async fn read(&mut self, at_once: bool) -> io::Result<bool> {
        self.buffer.reserve(READ);
        if at_once && self.is_ready(AT_ONCE) {
            match rustix::io::read(&self.pipe, rustix::buffer::spare_capacity(&mut self.buffer)) {
                Ok(read) => return Ok(read > 0),
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.pipe.read_buf(&mut self.buffer).await? > 0)
    }

    /// Whether nothing came that was not given. The system is asked itself: what came just now is not yet known to the
    /// runtime.
    pub(super) fn is_still(&self) -> bool {
        self.buffer.len() == self.given && !self.is_ready(Duration::ZERO)
    }

    /// Whether there is something to read, or the end, within this time.
    fn is_ready(&self, within: Duration) -> bool {
        let within = Timespec { tv_sec: 0, tv_nsec: within.subsec_nanos().into() };
        matches!(poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)], Some(&within)), Ok(1..))
    }
}
