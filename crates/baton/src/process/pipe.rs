//! The reading end of a pipe, of which the runtime is told only if it is waited for.
//!
//! What is ready when it is looked for costs a call and nothing else: no registration, and no thread is woken for it.

use std::{
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    buffer::spare_capacity,
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, ioctl_fionbio},
};
use tokio::net::unix::pipe::Receiver;

/// Bytes read at least at a time.
const READ: usize = 4 << 10;

/// A pipe whose reads do not wait.
#[derive(Debug)]
pub(crate) enum Pipe {
    /// Nobody waits for it, or its reader in its own thread.
    Plain(OwnedFd),
    /// The runtime does, and is told whenever something comes.
    Watched(Receiver),
    /// The system would not have it so.
    Lost,
}

impl Pipe {
    /// The pipe of this reading end.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn of(end: impl Into<OwnedFd>) -> io::Result<Self> {
        let end = end.into();
        ioctl_fionbio(&end, true)?;
        Ok(Self::Plain(end))
    }

    /// Reads what there is to the end of the buffer, once there is something; nothing at the end. It is waited for in the
    /// thread up to a time, which is forgotten once it is over, and by the runtime afterwards.
    ///
    /// # Errors
    /// The system's.
    ///
    /// # Cancel safety
    /// What was read is in the buffer.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub(crate) async fn read(&mut self, buffer: &mut Vec<u8>, in_thread: &mut Option<Instant>) -> io::Result<usize> {
        buffer.reserve(READ);
        loop {
            if let Some(until) = *in_thread {
                if self.has_more(until.saturating_duration_since(Instant::now())) {
                    self.unwatch()?;
                } else {
                    *in_thread = None;
                }
            }
            match self {
                Self::Plain(pipe) => match rustix::io::read(pipe, spare_capacity(buffer)) {
                    Err(Errno::AGAIN) if in_thread.is_none() => self.watch()?,
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    read => return Ok(read?),
                },
                Self::Watched(pipe) => match pipe.try_read_buf(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => pipe.readable().await?,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => return read,
                },
                Self::Lost => return Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
    }

    /// Whether there is something to be read, or the end, within this part of a second; also if that cannot be told.
    pub(crate) fn has_more(&self, within: Duration) -> bool {
        let Some(pipe) = self.as_fd() else { return true };
        let within = Timespec { tv_sec: 0, tv_nsec: within.subsec_nanos().into() };
        !matches!(poll(&mut [PollFd::from_borrowed_fd(pipe, PollFlags::IN)], Some(&within)), Ok(0))
    }

    fn watch(&mut self) -> io::Result<()> {
        if let Self::Plain(pipe) = std::mem::replace(self, Self::Lost) {
            *self = Self::Watched(Receiver::from_owned_fd_unchecked(pipe)?);
        }
        Ok(())
    }

    fn unwatch(&mut self) -> io::Result<()> {
        *self = match std::mem::replace(self, Self::Lost) {
            Self::Watched(pipe) => Self::Plain(pipe.into_nonblocking_fd()?),
            other => other,
        };
        Ok(())
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Plain(pipe) => Some(pipe.as_fd()),
            Self::Watched(pipe) => Some(pipe.as_fd()),
            Self::Lost => None,
        }
    }
}
