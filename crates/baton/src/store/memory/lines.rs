//! Where messages wait: the lines of a queue and its delayed messages.

use std::collections::{BTreeMap, VecDeque};

use super::MemoryTables;
use crate::{
    message::{MessageId, Name, Piece},
    store::engine::{Line, Lines, Moved},
};

impl MemoryTables {
    fn in_line(&mut self, queue: &Name, line: Line) -> &mut VecDeque<Piece> {
        self.lines.entry((queue.clone(), line)).or_default()
    }
}

impl Lines for MemoryTables {
    fn front(&mut self, queue: &Name, line: Line) -> Moved<Option<Piece>> {
        Ok(self.in_line(queue, line).front().copied())
    }

    fn advance(&mut self, queue: &Name, line: Line, rest: Option<&Piece>) -> Moved<()> {
        let waiting = self.in_line(queue, line);
        waiting.pop_front();
        if let Some(rest) = rest {
            waiting.push_front(*rest);
        }
        Ok(())
    }

    fn push_back(&mut self, queue: &Name, line: Line, piece: &Piece) -> Moved<()> {
        self.in_line(queue, line).push_back(*piece);
        Ok(())
    }

    fn push_front(&mut self, queue: &Name, line: Line, pieces: &[Piece]) -> Moved<()> {
        let waiting = self.in_line(queue, line);
        for piece in pieces.iter().rev() {
            waiting.push_front(*piece);
        }
        Ok(())
    }

    fn line(&mut self, queue: &Name, line: Line) -> Moved<Vec<Piece>> {
        Ok(self.in_line(queue, line).iter().copied().collect())
    }

    fn put_delayed(&mut self, queue: &Name, due: u64, piece: &Piece) -> Moved<()> {
        self.delayed.entry(queue.clone()).or_default().insert((due, MessageId(piece.range.first)), *piece);
        Ok(())
    }

    fn next_delayed(&mut self, queue: &Name) -> Moved<Option<(u64, Piece)>> {
        let first = self.delayed.get(queue).and_then(BTreeMap::first_key_value);
        Ok(first.map(|((due, _), piece)| (*due, *piece)))
    }

    fn delayed_at(&mut self, queue: &Name, due: u64, id: MessageId) -> Moved<Option<Piece>> {
        Ok(self.delayed.get(queue).and_then(|delayed| delayed.get(&(due, id))).copied())
    }

    fn drop_delayed(&mut self, queue: &Name, due: u64, id: MessageId) -> Moved<()> {
        self.delayed.entry(queue.clone()).or_default().remove(&(due, id));
        Ok(())
    }

    fn delayed(&mut self, queue: &Name) -> Moved<Vec<Piece>> {
        Ok(self.delayed.get(queue).into_iter().flat_map(BTreeMap::values).copied().collect())
    }
}
