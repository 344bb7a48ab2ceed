//! Where messages wait: the lines of a queue and its delayed messages.

use super::Moved;
use crate::message::{MessageId, Name, Piece};

/// The two lines in which messages wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Line {
    Ready,
    Suspects,
}

impl Line {
    /// Where a piece waits.
    pub(crate) const fn of(piece: &Piece) -> Self {
        if piece.is_suspect() { Self::Suspects } else { Self::Ready }
    }
}

/// The pieces that wait, in their order.
pub(crate) trait Lines {
    /// The piece at the front of a line.
    fn front(&mut self, queue: &Name, line: Line) -> Moved<Option<Piece>>;
    /// Takes the front away, or leaves `rest` in its place.
    fn advance(&mut self, queue: &Name, line: Line, rest: Option<&Piece>) -> Moved<()>;
    fn push_back(&mut self, queue: &Name, line: Line, piece: &Piece) -> Moved<()>;
    /// Puts pieces before all others, the first of them foremost.
    fn push_front(&mut self, queue: &Name, line: Line, pieces: &[Piece]) -> Moved<()>;
    /// All pieces of a line, in order.
    fn line(&mut self, queue: &Name, line: Line) -> Moved<Vec<Piece>>;

    fn put_delayed(&mut self, queue: &Name, due: u64, piece: &Piece) -> Moved<()>;
    /// The delayed piece with the smallest (due, id).
    fn next_delayed(&mut self, queue: &Name) -> Moved<Option<(u64, Piece)>>;
    /// The delayed piece of this place.
    fn delayed_at(&mut self, queue: &Name, due: u64, id: MessageId) -> Moved<Option<Piece>>;
    fn drop_delayed(&mut self, queue: &Name, due: u64, id: MessageId) -> Moved<()>;
    /// All delayed pieces by (due, id).
    fn delayed(&mut self, queue: &Name) -> Moved<Vec<Piece>>;
}
