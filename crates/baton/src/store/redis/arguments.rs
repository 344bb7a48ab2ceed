//! The arguments of a script while they are gathered.

use std::{fmt::Display, io::Write as _};

use redis::{Cmd, RedisWrite as _};

use super::keys::Root;
use crate::message::{Lot, Parcel, SessionId};

/// Longer parcels are staged in plain commands, and pointed to when they are claimed: what a script gets is copied and hashed byte by byte.
pub(super) const INLINE: usize = 4096;
/// The bytes that the parcels of one script may have together, beyond those that wait in their line: the rest is staged.
const INLINE_TOGETHER: usize = 64 << 10;
/// The longest parcel of one message that waits in its line instead of under a key of its own.
pub(in crate::store) const CARRIED: usize = 512;
/// How long what is staged and not taken away lasts.
const STAGED_MS: u64 = 10_000;

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

    pub(in crate::store) fn text(mut self, value: impl Display) -> Self {
        // Writing to memory does not fail.
        write!(self.command.writer_for_next_arg(), "{value}").ok();
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

    /// The parcel of one message as it lies in an inbox, with the time if that is known.
    pub(in crate::store) fn single(mut self, parcel: &Parcel) -> Self {
        let mut entry = self.command.writer_for_next_arg();
        // Writing to memory does not fail.
        if let Some(now) = self.now {
            write!(entry, "{now:013}").ok();
        }
        entry.write_all(b"|").ok();
        entry.write_all(parcel.bytes()).ok();
        drop(entry);
        self
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

    /// The head of a lot takes four: queue, messages, key, `digest,milliseconds it lives`. Its parcel is the fifth.
    pub(in crate::store) fn lot(self, lot: &Lot) -> Self {
        let to = self.text(&lot.queue).text(lot.parcel.len());
        match &lot.key {
            Some(key) => to.text(key.key.as_str()).text(format_args!("{},{}", key.digest, key.lives_ms)),
            None => to.text("").text(""),
        }
    }
}
