//! Reading and checking the input, in a thread of its own.
//!
//! Bodies leave as parcels. A parcel is sent on when it is full, and before waiting for a pipe that has no more at
//! the moment, so that a slow producer's lines are not kept back. What is read and not yet stored stays within a
//! bound of bytes.

use std::{
    io::{BufRead as _, BufReader, Read},
    sync::Arc,
};

use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
};

use super::{
    BadBody, Chunks, ImportCause,
    bookmark::{Bookmark, Chain},
    input::{Input, Inputs, Labels, Spot},
};
use crate::{
    message::{Parcel, ParcelBuilder},
    store::Place,
};

const PARCEL_MESSAGES: usize = 1024;
const PARCEL_BYTES: usize = 256 << 10;
/// KiB read and not yet stored.
const AHEAD_KIB: usize = 48 << 10;
const READ_BUFFER: usize = 256 << 10;
/// White space a line may have around its body.
const SLACK: usize = 64 << 10;

/// Bodies on their way.
#[derive(Debug)]
pub(super) struct Chunk {
    /// 1, 2, 3 …
    pub(super) number: u64,
    pub(super) parcel: Parcel,
    pub(super) first: Spot,
    pub(super) last: Spot,
    /// Where a bookmark stands after it; without a key there is none.
    pub(super) place: Option<Place>,
    /// Bytes of input it was made from.
    pub(super) bytes: u64,
    /// Room in the bound on what is read ahead; free when the chunk is dropped.
    _room: Option<OwnedSemaphorePermit>,
}

/// Why reading ended before the input did.
#[derive(Debug)]
pub(super) enum Stop {
    /// A body that cannot be taken.
    Bad { at: Spot, why: BadBody },
    /// The lines already taken under the key are not these.
    OtherInput,
    /// There are fewer lines than were already taken under the key.
    TooShort { lines: u64 },
    /// The input itself failed.
    Unreadable { input: usize, why: String },
    /// Nobody wants more.
    Unwanted,
}

impl Stop {
    /// What is told of it, with what had been taken under the key before.
    pub(super) fn cause(self, labels: &Labels, bookmark: Option<&Bookmark>) -> ImportCause {
        match (self, bookmark) {
            (Self::Bad { at, why }, _) => ImportCause::Bad { at: labels.at(at), why },
            (Self::OtherInput, Some(it)) => {
                ImportCause::OtherInput { key: it.key.clone(), queue: it.queue.clone(), lines: it.taken.lines }
            }
            (Self::TooShort { lines }, Some(it)) => {
                ImportCause::TooShort { key: it.key.clone(), found: lines, lines: it.taken.lines }
            }
            (Self::Unreadable { input, why }, _) => ImportCause::Unreadable { name: labels.name(input), why },
            (Self::Unwanted, _) => ImportCause::BrokenOff,
            (Self::OtherInput | Self::TooShort { .. }, None) => ImportCause::Fault,
        }
    }
}

/// Starts to read; under a key, what was already taken is compared and passed over.
pub(super) fn start(inputs: Inputs, max_body: usize, bookmark: Option<Bookmark>) -> Result<Chunks, ImportCause> {
    let (out, chunks) = mpsc::channel(1024);
    let reader = Reader {
        max_body,
        keyed: bookmark.map(|bookmark| (bookmark.start(), bookmark)),
        lines: 0,
        builder: ParcelBuilder::default(),
        span: None,
        bytes: 0,
        number: 0,
        ahead: Arc::new(Semaphore::new(AHEAD_KIB)),
        runtime: Handle::current(),
        out,
    };
    let thread = std::thread::Builder::new().name("input".to_owned()).spawn(move || reader.run(inputs));
    thread.map_err(|error| ImportCause::Thread(error.to_string()))?;
    Ok(chunks)
}

struct Reader {
    max_body: usize,
    /// How far the input is digested, and where it stood before.
    keyed: Option<(Chain, Bookmark)>,
    /// Lines read, blank ones not counted.
    lines: u64,
    builder: ParcelBuilder,
    /// The first and last line in the builder.
    span: Option<(Spot, Spot)>,
    bytes: u64,
    number: u64,
    ahead: Arc<Semaphore>,
    runtime: Handle,
    out: mpsc::Sender<Result<Chunk, Stop>>,
}

impl Reader {
    fn run(mut self, inputs: Inputs) {
        // A chunk that a bad body belongs to is dropped with it: none of it is stored.
        if let Err(stop) = self.read_all(inputs) {
            self.out.blocking_send(Err(stop)).ok();
        }
    }

    fn read_all(&mut self, inputs: Inputs) -> Result<(), Stop> {
        for (number, input) in inputs.list.into_iter().enumerate() {
            match input {
                Input::Body(body) => self.take(&body, Spot { input: number, line: 1 })?,
                Input::Lines { from, size } => self.read_lines(number, from, size.is_some())?,
            }
        }
        if self.is_passing_over() {
            return Err(Stop::TooShort { lines: self.lines });
        }
        self.send()
    }

    /// Whether the next line was taken under the key before.
    fn is_passing_over(&self) -> bool {
        self.keyed.as_ref().is_some_and(|(_, bookmark)| self.lines < bookmark.taken.lines)
    }

    fn read_lines(&mut self, input: usize, from: Box<dyn Read + Send>, regular: bool) -> Result<(), Stop> {
        let mut from = BufReader::with_capacity(READ_BUFFER, from);
        let mut line = Vec::new();
        let longest = (self.max_body + SLACK) as u64;
        for number in 1.. {
            if !regular && from.buffer().is_empty() {
                self.send()?;
            }
            line.clear();
            let read = (&mut from).take(longest).read_until(b'\n', &mut line);
            let read = read.map_err(|error| Stop::Unreadable { input, why: error.to_string() })?;
            if read == 0 {
                break;
            }
            let at = Spot { input, line: number };
            if read as u64 == longest && line.last() != Some(&b'\n') {
                return Err(Stop::Bad { at, why: BadBody::TooLarge { limit: self.max_body } });
            }
            self.bytes += read as u64;
            self.take(&line, at)?;
        }
        Ok(())
    }

    fn take(&mut self, line: &[u8], at: Spot) -> Result<(), Stop> {
        let body = line.trim_ascii();
        if body.is_empty() {
            return Ok(());
        }
        let passed_over = self.is_passing_over();
        if !passed_over {
            let body = BadBody::check(body, self.max_body).map_err(|why| Stop::Bad { at, why })?;
            let full = self.builder.len() >= PARCEL_MESSAGES || self.builder.body_bytes() + body.len() > PARCEL_BYTES;
            if full && !self.builder.is_empty() {
                self.send()?;
            }
            self.builder.add(body).map_err(|why| Stop::Bad { at, why: why.into() })?;
            self.span = Some((self.span.map_or(at, |(first, _)| first), at));
        }
        self.lines += 1;
        if let Some((chain, bookmark)) = &mut self.keyed {
            chain.then(body, bookmark);
            if passed_over && self.lines == bookmark.taken.lines && !bookmark.is_of(chain) {
                return Err(Stop::OtherInput);
            }
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), Stop> {
        let (Some(parcel), Some((first, last))) = (self.builder.finish(), self.span.take()) else { return Ok(()) };
        let kib = (parcel.bytes().len() / 1024 + 1).min(AHEAD_KIB);
        let room = self.ahead.clone().acquire_many_owned(u32::try_from(kib).unwrap_or(1));
        let room = self.runtime.block_on(room).ok();
        self.number += 1;
        let bytes = std::mem::take(&mut self.bytes);
        let place = self.keyed.as_ref().map(|(chain, _)| chain.place());
        let chunk = Chunk { number: self.number, parcel, first, last, place, bytes, _room: room };
        self.out.blocking_send(Ok(chunk)).map_err(|_| Stop::Unwanted)
    }
}
