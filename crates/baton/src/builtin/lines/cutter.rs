//! Cuts the bytes of an input into lines and makes messages of them.

use std::fmt;

use memchr::memchr;
use serde::de::IgnoredAny;

use super::{
    command::Command,
    file::NamedFile,
    followed::{Followed, Growth},
    pipe::NamedPipe,
    printed::Printed,
};
use crate::{
    Batch, BoxFuture, Flow, SourceError, Stream,
    builtin::foreign,
    message::{Body, InvalidMessage, MAX_BODY_BYTES},
};

/// Bytes read at once. The hop to the blocking pool must cost little compared with cutting the lines.
const CHUNK: usize = 1 << 20;

/// How a line becomes a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As a JSON string.
    Text,
    /// It is JSON.
    Json,
}

/// The origin of the bytes.
#[derive(Debug)]
pub(super) enum Input {
    File(NamedFile),
    Followed(Followed),
    Pipe(NamedPipe),
    Command(Command),
}

/// The outcome of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stretch {
    More,
    /// The end of the input.
    End,
    /// The end of a file; another file follows.
    Seam,
}

impl Input {
    /// Reads more; the end of a command that failed is an error.
    async fn read(&mut self, into: &mut Vec<u8>) -> Result<Stretch, SourceError> {
        into.reserve(CHUNK);
        let read = match self {
            Self::File(file) => file.read(into).await?,
            Self::Pipe(pipe) => pipe.read(into).await?,
            Self::Followed(file) => match file.read(into).await? {
                Growth::More => return Ok(Stretch::More),
                Growth::Replaced => return Ok(Stretch::Seam),
            },
            Self::Command(command) => {
                let read = command.read(into).await?;
                if read == 0 {
                    command.finish().await?;
                }
                read
            }
        };
        Ok(if read > 0 { Stretch::More } else { Stretch::End })
    }

    /// An error about a line of it. It is for good, since another attempt would read the same line.
    fn bad(&self, line: u64, cause: impl fmt::Display) -> SourceError {
        let name = match self {
            Self::File(file) => &file.name,
            Self::Followed(file) => &file.name,
            Self::Pipe(pipe) => &pipe.name,
            Self::Command(_) => "the command's output",
        };
        SourceError::for_good(format_args!("{name}: line {line} {cause}"))
    }
}

/// How far lines were read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) lines: u64,
    /// The byte behind them; only files use it.
    pub(super) offset: u64,
    /// A digest by which a file is recognised, or of the lines that a command printed.
    pub(super) head: Option<u32>,
}

impl Cursor {
    pub(super) fn parse(cursor: &str) -> Result<Self, SourceError> {
        if cursor.is_empty() {
            return Ok(Self::default());
        }
        let (lines, rest) = cursor.split_once(':').unwrap_or((cursor, "0"));
        let (offset, head) = rest.split_once(':').map_or((rest, None), |(offset, head)| (offset, Some(head)));
        let head = head.map(|digits| u32::from_str_radix(digits, 16)).transpose();
        let (Ok(lines), Ok(offset), Ok(head)) = (lines.parse(), offset.parse(), head) else {
            return Err(foreign(cursor));
        };
        Ok(Self { lines, offset, head })
    }
}

/// The stream of messages.
#[derive(Debug)]
pub(super) struct Cutter {
    input: Input,
    form: Form,
    at: Cursor,
    /// Lines to skip first: a predecessor gave them.
    skip: u64,
    /// Their digest, if the cursor has one.
    skipped: Option<u32>,
    count: u64,
    /// Digest of the output of a command, up to `noted`.
    printed: Printed,
    /// Bytes of the buffer that `printed`, or the file, has taken into account.
    noted: usize,
    buffer: Vec<u8>,
    /// Bytes of the buffer that are used up.
    used: usize,
    /// Bytes of the buffer that were searched for a line end.
    searched: usize,
    /// The outcome of the last read.
    found: Stretch,
    /// Whether the cursor must be stored before the first read: the bytes of a pipe cannot be read again.
    unmarked: bool,
    body: Vec<u8>,
}

impl Cutter {
    /// Goes on at `at`, the position of the input. Gives no line before `start` and none after line `count`.
    pub(super) fn new(input: Input, form: Form, at: Cursor, start: Cursor, count: u64) -> Self {
        let unmarked = matches!(input, Input::Pipe(_));
        Self {
            input,
            form,
            at,
            skip: start.lines,
            skipped: start.head,
            count,
            printed: Printed::default(),
            noted: 0,
            buffer: Vec::new(),
            used: 0,
            searched: 0,
            found: Stretch::More,
            unmarked,
            body: Vec::new(),
        }
    }

    async fn fill(&mut self, batch: &mut Batch) -> Result<Flow, SourceError> {
        if self.skip >= self.count {
            return Ok(Flow::End);
        }
        if std::mem::take(&mut self.unmarked) {
            self.reach(batch);
            return Ok(Flow::More);
        }
        let mut given = false;
        let before = self.at.lines.max(self.skip);
        loop {
            while self.at.lines < self.count && !batch.is_full() {
                match self.next_line(batch) {
                    Ok(Some(gave)) => given |= gave,
                    Ok(None) => break,
                    // The line stays in the buffer, so the next pull fails with it. The lines before it are handed over first.
                    Err(_) if given => break,
                    Err(error) => return Err(error),
                }
            }
            let used_up = self.used == self.buffer.len();
            if self.found == Stretch::Seam && used_up {
                self.found = Stretch::More;
                self.at.offset = 0;
            }
            let over = self.at.lines >= self.count || (self.found == Stretch::End && used_up);
            if over && self.at.lines < self.skip {
                let (lines, skip) = (self.at.lines, self.skip);
                let s = if lines == 1 { "" } else { "s" };
                return Err(SourceError::until_rewound(format_args!(
                    "the command printed {lines} line{s}, but {skip} were read before; rewind the source to start over"
                )));
            }
            // The cursor also passes blank lines at the end, so that they are not read again.
            if given || (over && self.at.lines > before) {
                self.reach(batch);
            }
            if over {
                return Ok(Flow::End);
            }
            if given {
                return Ok(Flow::More);
            }
            self.read().await?;
        }
    }

    fn reach(&mut self, batch: &mut Batch) {
        self.note();
        let Cursor { lines, offset, .. } = self.at;
        match &self.input {
            Input::File(file) => batch.reach(format_args!("{lines}:{offset}:{:08x}", file.digest())),
            Input::Followed(file) => batch.reach(format_args!("{lines}:{offset}:{:08x}", file.head(offset))),
            Input::Command(_) => batch.reach(format_args!("{lines}:{offset}:{:08x}", self.printed.digest())),
            Input::Pipe(_) => batch.reach(lines),
        }
    }

    /// Adds the used bytes to the digest, many lines at once for speed.
    fn note(&mut self) {
        let used = self.buffer.get(self.noted..self.used).unwrap_or_default();
        match &mut self.input {
            Input::Command(_) => self.printed.add(used),
            Input::File(file) => file.note(used),
            Input::Followed(_) | Input::Pipe(_) => {}
        }
        self.noted = self.used;
    }

    /// Checks the digest of all skipped lines at the last one, which ends at `next`.
    fn check_skipped(&self, next: usize) -> Result<(), SourceError> {
        let mut printed = self.printed.clone();
        printed.add(self.buffer.get(self.noted..next).unwrap_or_default());
        match self.skipped {
            Some(before) if before != printed.digest() => Err(SourceError::until_rewound(format_args!(
                "the command printed other lines than before up to line {}; rewind the source to start over",
                self.skip
            ))),
            _ => Ok(()),
        }
    }

    async fn read(&mut self) -> Result<(), SourceError> {
        self.note();
        self.buffer.drain(..self.used);
        self.searched -= self.used;
        self.used = 0;
        self.noted = 0;
        self.found = self.input.read(&mut self.buffer).await?;
        Ok(())
    }

    /// Takes the next line, if the buffer has all of it, and returns whether it gave a message.
    fn next_line(&mut self, batch: &mut Batch) -> Result<Option<bool>, SourceError> {
        let number = self.at.lines + 1;
        let fresh = self.buffer.get(self.searched..).unwrap_or_default();
        let (end, next) = match memchr(b'\n', fresh) {
            Some(at) => (self.searched + at, self.searched + at + 1),
            None if self.found != Stretch::More && self.used < self.buffer.len() => {
                (self.buffer.len(), self.buffer.len())
            }
            // One byte more than a body: a carriage return may belong to the line's end.
            None if self.buffer.len() - self.used <= MAX_BODY_BYTES + 1 => {
                self.searched = self.buffer.len();
                return Ok(None);
            }
            None => return Err(self.input.bad(number, TooLong)),
        };
        let line = self.buffer.get(self.used..end).unwrap_or_default();
        let gave = if self.at.lines < self.skip {
            if number == self.skip {
                self.check_skipped(next)?;
            }
            false
        } else {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            add(batch, self.form, line, &mut self.body).map_err(|cause| self.input.bad(number, cause))?
        };
        self.at.lines = number;
        self.at.offset += (next - self.used) as u64;
        self.used = next;
        self.searched = next;
        Ok(Some(gave))
    }
}

impl Stream for Cutter {
    fn pull<'a>(&'a mut self, batch: &'a mut Batch) -> BoxFuture<'a, Result<Flow, SourceError>> {
        Box::pin(self.fill(batch))
    }
}

struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "is over the limit of {MAX_BODY_BYTES} bytes")
    }
}

/// Adds the line's message, unless the line is blank. The error says what is wrong with the line.
fn add(batch: &mut Batch, form: Form, line: &[u8], body: &mut Vec<u8>) -> Result<bool, String> {
    Body::new(line).map_err(|_| TooLong.to_string())?;
    let text =
        std::str::from_utf8(line).map_err(|error| format!("is not UTF-8 text (byte {})", error.valid_up_to() + 1))?;
    let value = text.trim_ascii();
    if value.is_empty() {
        return Ok(false);
    }
    let added = match form {
        Form::Json => {
            serde_json::from_str::<IgnoredAny>(text).map_err(|error| not_json(&error))?;
            batch.add(value.as_bytes())
        }
        Form::Text => {
            body.clear();
            serde_json::to_writer(&mut *body, text).map_err(|error| error.to_string())?;
            batch.add(body)
        }
    };
    match added {
        Ok(()) => Ok(true),
        Err(InvalidMessage::BodyTooLarge { len, limit }) => {
            Err(format!("makes a body of {len} bytes, over the limit of {limit} bytes"))
        }
        Err(invalid) => Err(invalid.to_string()),
    }
}

fn not_json(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or_default();
    format!("is not JSON: {what} (column {})", error.column())
}
