//! Where messages wait: the lines of a queue and its delayed messages.

use super::Moved;
use crate::message::{MessageId, Name, Span};

/// The two lines in which messages wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Line {
    Ready,
    Suspects,
}

impl Line {
    /// Where a span waits.
    pub(crate) const fn of(span: &Span) -> Self {
        if span.is_suspect() { Self::Suspects } else { Self::Ready }
    }
}

/// The spans that wait, in their order.
pub(crate) trait Lines {
    /// The span at the front of a line.
    fn front(&mut self, queue: &Name, line: Line) -> Moved<Option<Span>>;
    /// Takes the front away, or leaves `rest` in its place.
    fn advance(&mut self, queue: &Name, line: Line, rest: Option<&Span>) -> Moved<()>;
    fn push_back(&mut self, queue: &Name, line: Line, span: &Span) -> Moved<()>;
    /// Puts spans before all others, the first of them foremost.
    fn push_front(&mut self, queue: &Name, line: Line, spans: &[Span]) -> Moved<()>;
    /// All spans of a line, in order.
    fn line(&mut self, queue: &Name, line: Line) -> Moved<Vec<Span>>;

    fn put_delayed(&mut self, queue: &Name, due: u64, span: &Span) -> Moved<()>;
    /// The delayed span with the smallest (due, id).
    fn next_delayed(&mut self, queue: &Name) -> Moved<Option<(u64, Span)>>;
    /// The delayed span of this place.
    fn delayed_at(&mut self, queue: &Name, due: u64, id: MessageId) -> Moved<Option<Span>>;
    fn drop_delayed(&mut self, queue: &Name, due: u64, id: MessageId) -> Moved<()>;
    /// All delayed spans by (due, id).
    fn delayed(&mut self, queue: &Name) -> Moved<Vec<Span>>;
}
