//! A named pipe, or standard input: read once until its writers have closed it.
//!
//! Bytes that were read from a pipe cannot be read again. A stream opened at a cursor would miss what its predecessor had
//! read and not pushed, so it fails for good instead of skipping lines. The first pull stores the cursor of 0 lines before
//! anything is read: a successor then sees that reading had begun, even if nothing was pushed.

use std::{fmt, path::Path};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    net::unix::pipe::OpenOptions,
};

use super::file::unreadable;
use crate::SourceError;

/// A pipe and its name.
pub(super) struct NamedPipe {
    pub(super) name: String,
    pipe: Box<dyn AsyncRead + Send + Unpin>,
}

impl NamedPipe {
    /// Opens it without waiting for a writer. Any cursor but the empty one is refused.
    pub(super) fn open(path: &Path, cursor: &str) -> Result<Self, SourceError> {
        let name = path.display().to_string();
        at_its_start(&format_args!("{name} is a pipe, whose"), cursor)?;
        let pipe = OpenOptions::new().open_receiver(path).map_err(|error| unreadable(&name, &error))?;
        Ok(Self { name, pipe: Box::new(pipe) })
    }

    /// The standard input of this process. Any cursor but the empty one is refused.
    pub(super) fn stdin(cursor: &str) -> Result<Self, SourceError> {
        at_its_start(&"standard input:", cursor)?;
        Ok(Self { name: "standard input".to_owned(), pipe: Box::new(tokio::io::stdin()) })
    }

    /// Reads more and waits for writers; 0 when the last writer has closed it.
    pub(super) async fn read(&mut self, into: &mut Vec<u8>) -> Result<usize, SourceError> {
        // A pipe without a writer is not readable yet, so the read waits for the first writer.
        self.pipe.read_buf(into).await.map_err(|error| unreadable(&self.name, &error))
    }
}

impl fmt::Debug for NamedPipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamedPipe").field("name", &self.name).finish_non_exhaustive()
    }
}

fn at_its_start(whose: &dyn fmt::Display, cursor: &str) -> Result<(), SourceError> {
    if cursor.is_empty() {
        return Ok(());
    }
    Err(SourceError::until_rewound(format_args!(
        "{whose} lines can be read only once: {cursor} were pushed, and lines that the former node had read but not pushed \
         are lost; rewind the source to read what is written from now on"
    )))
}
