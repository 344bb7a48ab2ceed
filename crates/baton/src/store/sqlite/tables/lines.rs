//! Where messages wait: the lines of a queue and its delayed messages.

use std::collections::VecDeque;

use rusqlite::params;

use super::{SqliteTables, int, ordered, span, uint};
use crate::{
    message::{MessageId, Name, Span},
    store::{
        StoreError,
        engine::{Line, Lines, Moved},
    },
};

/// How a line is written in the file.
const fn line_number(line: Line) -> i64 {
    match line {
        Line::Ready => 0,
        Line::Suspects => 1,
    }
}

/// How many spans are read at once when the first of them was not enough: as many as were read, within these bounds.
const AHEAD: (usize, usize) = (8, 64);

/// The front of a line as it is held during a transaction.
pub(super) struct Head {
    /// Spans read and not gone, with their places.
    spans: VecDeque<(i64, Span)>,
    /// Whether the first of them is not yet written as it is.
    changed: bool,
    /// Up to this place all have gone,
    upto: i64,
    /// so many of them with a row that is still there.
    gone: usize,
    /// How many were read, and whether nothing is behind them.
    read: usize,
    whole: bool,
}

impl Default for Head {
    fn default() -> Self {
        Self { spans: VecDeque::new(), changed: false, upto: i64::MIN, gone: 0, read: 0, whole: false }
    }
}

impl SqliteTables<'_> {
    /// Writes what has become of the fronts of lines, and holds them no longer: a line that is empty then counts its
    /// places anew.
    pub(super) fn flush_heads(&mut self) -> Moved<()> {
        for ((queue, line), head) in std::mem::take(&mut self.heads) {
            let line = line_number(line);
            let sql = match head.gone {
                0 => None,
                1 => Some("DELETE FROM lines WHERE queue = ?1 AND line = ?2 AND place = ?3"),
                _ => Some("DELETE FROM lines WHERE queue = ?1 AND line = ?2 AND place <= ?3"),
            };
            if let Some(sql) = sql {
                self.run(sql, params![queue, line, head.upto])?;
            }
            if let Some((place, front)) = head.spans.front().filter(|_| head.changed) {
                let sql = "UPDATE lines SET piece = ?4 WHERE queue = ?1 AND line = ?2 AND place = ?3";
                self.run(sql, params![queue, line, place, front.to_string()])?;
            }
        }
        Ok(())
    }

    /// The first or last place taken in a line; 0 if it is empty.
    fn end_of(&self, queue: i64, line: Line, sql: &str) -> Moved<i64> {
        let end = self.one(sql, params![queue, line_number(line)], |row| Ok(row.get::<_, Option<i64>>(0)?))?;
        Ok(end.flatten().unwrap_or(0))
    }
}

impl Lines for SqliteTables<'_> {
    fn front(&mut self, queue: &Name, line: Line) -> Moved<Option<Span>> {
        let Some(queue) = self.queue_number(queue)? else { return Ok(None) };
        let mut head = self.heads.remove(&(queue, line)).unwrap_or_default();
        if head.spans.is_empty() && !head.whole {
            let limit = if head.read == 0 { 1 } else { head.read.clamp(AHEAD.0, AHEAD.1) };
            let sql = "SELECT place, piece FROM lines WHERE queue = ?1 AND line = ?2 AND place > ?3 \
                       ORDER BY place LIMIT ?4";
            let most = i64::try_from(limit).unwrap_or(i64::MAX);
            self.each(sql, params![queue, line_number(line), head.upto, most], |row| {
                head.spans.push_back((row.get(0)?, span(row, 1)?));
                Ok(())
            })?;
            head.read += head.spans.len();
            head.whole = head.spans.len() < limit;
        }
        let front = head.spans.front().map(|(_, span)| *span);
        self.heads.insert((queue, line), head);
        Ok(front)
    }

    fn advance(&mut self, queue: &Name, line: Line, rest: Option<&Span>) -> Moved<()> {
        let number = self.own_queue(queue)?;
        self.front(queue, line)?;
        let Some(head) = self.heads.get_mut(&(number, line)) else { return Ok(()) };
        if let (Some(rest), Some((_, front))) = (rest, head.spans.front_mut()) {
            *front = *rest;
            head.changed = true;
        } else if let Some((place, _)) = head.spans.pop_front() {
            (head.upto, head.changed) = (place, false);
            head.gone += 1;
        }
        Ok(())
    }

    fn push_back(&mut self, queue: &Name, line: Line, span: &Span) -> Moved<()> {
        let number = self.own_queue(queue)?;
        let back = match self.backs.get(&(number, line)) {
            Some(back) => *back,
            None => self.end_of(number, line, "SELECT max(place) FROM lines WHERE queue = ?1 AND line = ?2")?,
        };
        self.backs.insert((number, line), back + 1);
        if let Some(head) = self.heads.get_mut(&(number, line)) {
            head.whole = false;
        }
        let sql = "INSERT INTO lines VALUES (?1, ?2, ?3, ?4)";
        self.run(sql, params![number, line_number(line), back + 1, span.to_string()])?;
        Ok(())
    }

    fn push_front(&mut self, queue: &Name, line: Line, spans: &[Span]) -> Moved<()> {
        self.flush_heads()?;
        let number = self.own_queue(queue)?;
        let front = self.end_of(number, line, "SELECT min(place) FROM lines WHERE queue = ?1 AND line = ?2")?;
        let count = i64::try_from(spans.len()).map_err(|_| StoreError::Damaged("too many spans".to_owned()))?;
        for (place, span) in (front - count..).zip(spans) {
            let sql = "INSERT INTO lines VALUES (?1, ?2, ?3, ?4)";
            self.run(sql, params![number, line_number(line), place, span.to_string()])?;
        }
        Ok(())
    }

    fn line(&mut self, queue: &Name, line: Line) -> Moved<Vec<Span>> {
        self.flush_heads()?;
        let Some(queue) = self.queue_number(queue)? else { return Ok(Vec::new()) };
        let sql = "SELECT piece FROM lines WHERE queue = ?1 AND line = ?2 ORDER BY place";
        self.all(sql, params![queue, line_number(line)], |row| span(row, 0))
    }

    fn put_delayed(&mut self, queue: &Name, due: u64, span: &Span) -> Moved<()> {
        let number = self.own_queue(queue)?;
        let sql = "INSERT OR REPLACE INTO delayed VALUES (?1, ?2, ?3, ?4)";
        self.run(sql, params![number, ordered(due), int(span.range.first), span.to_string()])?;
        Ok(())
    }

    fn next_delayed(&mut self, queue: &Name) -> Moved<Option<(u64, Span)>> {
        let Some(queue) = self.queue_number(queue)? else { return Ok(None) };
        let sql = "SELECT due, piece FROM delayed WHERE queue = ?1 ORDER BY due, id LIMIT 1";
        self.one(sql, [queue], |row| Ok((uint(row, 0)?, span(row, 1)?)))
    }

    fn delayed_at(&mut self, queue: &Name, due: u64, id: MessageId) -> Moved<Option<Span>> {
        let Some(queue) = self.queue_number(queue)? else { return Ok(None) };
        let sql = "SELECT piece FROM delayed WHERE queue = ?1 AND due = ?2 AND id = ?3";
        self.one(sql, params![queue, ordered(due), int(id.0)], |row| span(row, 0))
    }

    fn drop_delayed(&mut self, queue: &Name, due: u64, id: MessageId) -> Moved<()> {
        let queue = self.own_queue(queue)?;
        let sql = "DELETE FROM delayed WHERE queue = ?1 AND due = ?2 AND id = ?3";
        self.run(sql, params![queue, ordered(due), int(id.0)]).map(drop)
    }

    fn delayed(&mut self, queue: &Name) -> Moved<Vec<Span>> {
        let Some(queue) = self.queue_number(queue)? else { return Ok(Vec::new()) };
        self.all("SELECT piece FROM delayed WHERE queue = ?1 ORDER BY due, id", [queue], |row| span(row, 0))
    }
}
