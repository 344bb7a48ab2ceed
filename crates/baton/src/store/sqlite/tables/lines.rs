//! Where messages wait: the lines of a queue and its delayed messages.

use rusqlite::params;

use super::{SqliteTables, int, ordered, piece, uint};
use crate::{
    message::{Name, Piece},
    store::{
        StoreError,
        engine::{Line, Moved},
    },
};

/// How a line is written in the file.
const fn line_number(line: Line) -> i64 {
    match line {
        Line::Ready => 0,
        Line::Suspects => 1,
    }
}

impl SqliteTables<'_> {
    pub(super) fn read_front(&mut self, queue: &Name, line: Line) -> Moved<Option<Piece>> {
        let Some(queue) = self.queue_number(queue)? else { return Ok(None) };
        let sql = "SELECT place, piece FROM lines WHERE queue = ?1 AND line = ?2 ORDER BY place LIMIT 1";
        let front =
            self.one(sql, params![queue, line_number(line)], |row| Ok((row.get::<_, i64>(0)?, piece(row, 1)?)))?;
        Ok(front.map(|(place, piece)| {
            self.fronts.insert((queue, line), place);
            piece
        }))
    }

    pub(super) fn move_front(&mut self, queue: &Name, line: Line, rest: Option<&Piece>) -> Moved<()> {
        let number = self.own_queue(queue)?;
        if !self.fronts.contains_key(&(number, line)) {
            self.read_front(queue, line)?;
        }
        let Some(place) = self.fronts.get(&(number, line)).copied() else { return Ok(()) };
        match rest {
            Some(rest) => {
                let sql = "UPDATE lines SET piece = ?4 WHERE queue = ?1 AND line = ?2 AND place = ?3";
                self.run(sql, params![number, line_number(line), place, rest.to_string()])?;
            }
            None => {
                self.fronts.remove(&(number, line));
                let sql = "DELETE FROM lines WHERE queue = ?1 AND line = ?2 AND place = ?3";
                self.run(sql, params![number, line_number(line), place])?;
            }
        }
        Ok(())
    }

    pub(super) fn append(&mut self, queue: &Name, line: Line, piece: &Piece) -> Moved<()> {
        let number = self.own_queue(queue)?;
        let back = match self.backs.get(&(number, line)) {
            Some(back) => *back,
            None => self.end_of(number, line, "SELECT max(place) FROM lines WHERE queue = ?1 AND line = ?2")?,
        };
        self.backs.insert((number, line), back + 1);
        let sql = "INSERT INTO lines VALUES (?1, ?2, ?3, ?4)";
        self.run(sql, params![number, line_number(line), back + 1, piece.to_string()])?;
        Ok(())
    }

    pub(super) fn prepend(&mut self, queue: &Name, line: Line, pieces: &[Piece]) -> Moved<()> {
        let number = self.own_queue(queue)?;
        let front = self.end_of(number, line, "SELECT min(place) FROM lines WHERE queue = ?1 AND line = ?2")?;
        let count = i64::try_from(pieces.len()).map_err(|_| StoreError::Damaged("too many pieces".to_owned()))?;
        for (place, piece) in (front - count..).zip(pieces) {
            let sql = "INSERT INTO lines VALUES (?1, ?2, ?3, ?4)";
            self.run(sql, params![number, line_number(line), place, piece.to_string()])?;
        }
        self.fronts.remove(&(number, line));
        Ok(())
    }

    /// The first or last place taken in a line; 0 if it is empty.
    fn end_of(&self, queue: i64, line: Line, sql: &str) -> Moved<i64> {
        let end = self.one(sql, params![queue, line_number(line)], |row| Ok(row.get::<_, Option<i64>>(0)?))?;
        Ok(end.flatten().unwrap_or(0))
    }

    pub(super) fn list_line(&mut self, queue: &Name, line: Line) -> Moved<Vec<Piece>> {
        let Some(queue) = self.queue_number(queue)? else { return Ok(Vec::new()) };
        let sql = "SELECT piece FROM lines WHERE queue = ?1 AND line = ?2 ORDER BY place";
        self.all(sql, params![queue, line_number(line)], |row| piece(row, 0))
    }

    /// A delayed message wakes too: those who wait may have learnt of a later time.
    pub(super) fn write_delayed(&mut self, queue: &Name, due: u64, piece: &Piece) -> Moved<()> {
        let number = self.own_queue(queue)?;
        let sql = "INSERT OR REPLACE INTO delayed VALUES (?1, ?2, ?3, ?4)";
        self.run(sql, params![number, ordered(due), int(piece.range.first), piece.to_string()])?;
        Ok(())
    }

    pub(super) fn read_next_delayed(&mut self, queue: &Name) -> Moved<Option<(u64, Piece)>> {
        let Some(queue) = self.queue_number(queue)? else { return Ok(None) };
        let sql = "SELECT due, piece FROM delayed WHERE queue = ?1 ORDER BY due, id LIMIT 1";
        self.one(sql, [queue], |row| Ok((uint(row, 0)?, piece(row, 1)?)))
    }

    pub(super) fn remove_delayed(&mut self, queue: &Name, due: u64, id: u64) -> Moved<()> {
        let queue = self.own_queue(queue)?;
        let sql = "DELETE FROM delayed WHERE queue = ?1 AND due = ?2 AND id = ?3";
        self.run(sql, params![queue, ordered(due), int(id)]).map(drop)
    }

    pub(super) fn list_delayed(&mut self, queue: &Name) -> Moved<Vec<Piece>> {
        let Some(queue) = self.queue_number(queue)? else { return Ok(Vec::new()) };
        self.all("SELECT piece FROM delayed WHERE queue = ?1 ORDER BY due, id", [queue], |row| piece(row, 0))
    }
}
