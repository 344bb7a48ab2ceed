//! Where messages wait: the lines of a queue and its delayed messages.

use std::collections::{BTreeMap, VecDeque};

use super::MemoryTables;
use crate::{
    message::{MessageId, Name, Span},
    store::engine::{Line, Lines, Moved},
};

impl MemoryTables {
    fn in_line(&mut self, queue: &Name, line: Line) -> &mut VecDeque<Span> {
        self.lines.entry((queue.clone(), line)).or_default()
    }
}

impl Lines for MemoryTables {
    fn front(&mut self, queue: &Name, line: Line) -> Moved<Option<Span>> {
        Ok(self.in_line(queue, line).front().copied())
    }

    fn advance(&mut self, queue: &Name, line: Line, rest: Option<&Span>) -> Moved<()> {
        let waiting = self.in_line(queue, line);
        waiting.pop_front();
        if let Some(rest) = rest {
            waiting.push_front(*rest);
        }
        Ok(())
    }

    fn push_back(&mut self, queue: &Name, line: Line, span: &Span) -> Moved<()> {
        self.in_line(queue, line).push_back(*span);
        Ok(())
    }

    fn push_front(&mut self, queue: &Name, line: Line, spans: &[Span]) -> Moved<()> {
        let waiting = self.in_line(queue, line);
        for span in spans.iter().rev() {
            waiting.push_front(*span);
        }
        Ok(())
    }

    fn line(&mut self, queue: &Name, line: Line) -> Moved<Vec<Span>> {
        Ok(self.in_line(queue, line).iter().copied().collect())
    }

    fn put_delayed(&mut self, queue: &Name, due: u64, span: &Span) -> Moved<()> {
        self.delayed.entry(queue.clone()).or_default().insert((due, MessageId(span.range.first)), *span);
        Ok(())
    }

    fn next_delayed(&mut self, queue: &Name) -> Moved<Option<(u64, Span)>> {
        let first = self.delayed.get(queue).and_then(BTreeMap::first_key_value);
        Ok(first.map(|((due, _), span)| (*due, *span)))
    }

    fn delayed_at(&mut self, queue: &Name, due: u64, id: MessageId) -> Moved<Option<Span>> {
        Ok(self.delayed.get(queue).and_then(|delayed| delayed.get(&(due, id))).copied())
    }

    fn drop_delayed(&mut self, queue: &Name, due: u64, id: MessageId) -> Moved<()> {
        self.delayed.entry(queue.clone()).or_default().remove(&(due, id));
        Ok(())
    }

    fn delayed(&mut self, queue: &Name) -> Moved<Vec<Span>> {
        Ok(self.delayed.get(queue).into_iter().flat_map(BTreeMap::values).copied().collect())
    }
}
