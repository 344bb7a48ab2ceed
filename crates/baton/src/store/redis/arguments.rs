//! The arguments of a script while they are gathered.

use std::{fmt::Display, io::Write};

use redis::{Cmd, RedisWrite as _};

use super::keys::Root;
use crate::message::{Calling, Name, Parcel, SessionId, Submission};

/// Longer parcels are staged in plain commands, and pointed to when they are claimed: what a script gets is copied and hashed byte by byte.
pub(super) const INLINE: usize = 4096;
/// The bytes that the parcels of one script may have together, beyond those that wait in their line: the rest is staged.
const INLINE_TOGETHER: usize = 64 << 10;
/// The longest parcel of one message that waits in its line instead of under a key of its own.
pub(in crate::store) const CARRIED: usize = 512;
/// How long what is staged and not taken away lasts.
const STAGED_MS: u64 = 10_000;

/// The digits of the time that a message in an inbox begins with.
const BORN_DIGITS: usize = 13;

/// Writes a number in decimal digits, zeros before it up to `least`. Every push writes some: a fifth of what formatting
/// takes.
fn write_number(to: &mut impl Write, number: u64, least: usize) {
    let (mut text, mut rest, mut written) = ([b'0'; 20], number, 0);
    for digit in text.iter_mut().rev() {
        if rest == 0 && written >= least {
            break;
        }
        *digit += (rest % 10) as u8;
        (rest, written) = (rest / 10, written + 1);
    }
    // Writing to memory does not fail.
    to.write_all(text.get(text.len() - written..).unwrap_or_default()).ok();
}

/// A call that is being filled.
pub(in crate::store) struct Arguments<'r> {
    root: &'r Root,
    /// The server's time, if it is known.
    now: Option<u64>,
    pub(super) command: Cmd,
    /// What goes before it in the same transaction.
    pub(super) staged: Vec<Cmd>,
    /// Bytes of parcels among the arguments.
    inline: usize,
}

impl<'r> Arguments<'r> {
    pub(super) const fn new(root: &'r Root, now: Option<u64>, command: Cmd) -> Self {
        Self { root, now, command, staged: Vec::new(), inline: 0 }
    }

    /// The root of the fleet.
    pub(in crate::store) fn root(mut self) -> Self {
        self.command.arg(self.root.as_str());
        self
    }

    /// What is the same for most that a session pushes singly to a queue, as `ways.lua` reads it.
    pub(in crate::store) fn way(mut self, session: SessionId, page: u64, queue: &Name, max_queue_bytes: u64) -> Self {
        let mut key = self.command.writer_for_next_arg();
        // Writing to memory does not fail.
        key.write_all(self.root.as_str().as_bytes()).ok();
        key.write_all(b":n:").ok();
        key.write_all(&session.digits()).ok();
        key.write_all(b":").ok();
        write_number(&mut key, page, 1);
        key.write_all(b" ").ok();
        key.write_all(queue.as_str().as_bytes()).ok();
        key.write_all(b" ").ok();
        write_number(&mut key, max_queue_bytes, 1);
        drop(key);
        self
    }

    pub(in crate::store) fn text(mut self, value: impl Display) -> Self {
        // Writing to memory does not fail.
        write!(self.command.writer_for_next_arg(), "{value}").ok();
        self
    }

    /// A number, as every push has one.
    pub(in crate::store) fn number(mut self, number: u64) -> Self {
        self.command.arg(number);
        self
    }

    /// A number, or nothing as empty text.
    pub(in crate::store) fn number_or_nothing(self, number: Option<u64>) -> Self {
        self.text(number.map(|number| number.to_string()).unwrap_or_default())
    }

    /// Values as one text.
    pub(in crate::store) fn joined<V: ToString>(self, values: impl Iterator<Item = V>, separator: &str) -> Self {
        self.text(values.map(|value| value.to_string()).collect::<Vec<_>>().join(separator))
    }

    pub(in crate::store) fn bytes(mut self, value: &[u8]) -> Self {
        self.command.arg(value);
        self
    }

    /// The parcel of one message as it lies in an inbox, with the time; one argument more if that is not known.
    pub(in crate::store) fn single(mut self, parcel: &Parcel) -> Self {
        let mut entry = self.command.writer_for_next_arg();
        // Writing to memory does not fail.
        if let Some(now) = self.now {
            write_number(&mut entry, now, BORN_DIGITS);
        }
        entry.write_all(b"|").ok();
        entry.write_all(parcel.bytes()).ok();
        drop(entry);
        if self.now.is_none() { self.text("") } else { self }
    }

    /// A parcel: its bytes, or the place where they are staged.
    pub(in crate::store) fn parcel(mut self, session: SessionId, parcel: &Parcel) -> Self {
        let bytes = parcel.bytes().len();
        if bytes <= CARRIED || (bytes <= INLINE && self.inline + bytes <= INLINE_TOGETHER) {
            self.inline += bytes;
            return self.bytes(parcel.bytes());
        }
        let place = self.staged.len();
        let mut stage = redis::cmd("SET");
        stage.arg(self.root.staged(session, place)).arg(&parcel.bytes()[..]).arg("PX").arg(STAGED_MS);
        self.staged.push(stage);
        self.text(place)
    }

    /// The head of a submission takes four: queue, messages (and what they are to a call), key, `digest,milliseconds it lives`. Its parcel is the fifth.
    pub(in crate::store) fn submission(self, submission: &Submission) -> Self {
        let to = self.text(&submission.queue);
        let to = match submission.call {
            None => to.text(submission.parcel.len()),
            Some(Calling::Joins) => to.text("1j"),
            Some(Calling::Begins { linger_ms, share }) => {
                let linger = linger_ms.map(|ms| ms.to_string()).unwrap_or_default();
                to.text(format_args!("1c{linger}{}", if share { ",1" } else { "" }))
            }
        };
        match &submission.key {
            Some(key) => to.text(key.key.as_str()).text(format_args!("{},{}", key.digest, key.lives_ms)),
            None => to.text("").text(""),
        }
    }
}
