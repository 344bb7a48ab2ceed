//! Handing messages to a session: a suspect, then what is due, then what is ready.
//!
//! A claim that could have taken more enters its session among those that wait for the queue; one that leaves something
//! behind wakes another of them. So whoever has a free slot has either a claim under way or a place among those who wait.

use super::{BodyKey, ClaimNumbers, ClaimRecord, Line, Moved, QueueRecord, Tables, clock::touch, waits};
use crate::{
    message::{Name, Parcel, Piece, Range},
    store::{CLAIM_WINDOW, Claim, Claimed, MAX_PIECES, Refusal, Rest, StoreError},
};

pub(super) fn claim<T: Tables>(tables: &mut T, now: u64, it: &Claim) -> Moved<Claimed> {
    let (_, mut session) = touch(tables, now, it.session)?;
    if let Some(record) = tables.claim(it.session, &it.queue, it.claim_no)? {
        return again(tables, record);
    }
    let mut numbers = tables.numbers(it.session, &it.queue)?;
    check_number(&numbers, it.claim_no)?;
    let mut hand = Hand { n: it.n, budget: it.max_bytes, pieces: Vec::new(), stopped: false };
    let queue = tables.queue(&it.queue)?.filter(|queue| !queue.books.paused);
    let Some(mut queue) = queue else {
        waits::enter(tables, now, it.session, &it.queue)?;
        return Ok(Claimed { queue: it.queue.clone(), pieces: Vec::new(), rest: Rest::Nothing { next_due_ms: None } });
    };
    hand.fill(tables, now, &mut queue, session.suspects == 0)?;
    let more = hand.stopped || !hand.has_room();
    if !hand.pieces.is_empty() {
        tables.put_queue(&queue)?;
        let pieces = hand.pieces.iter().map(|(piece, _)| *piece).collect();
        tables.put_claim(it.session, it.claim_no, &ClaimRecord { queue: it.queue.clone(), pieces })?;
        use_number(&mut numbers, it.claim_no);
        tables.put_numbers(it.session, &it.queue, &numbers)?;
        session.suspects += suspects(hand.pieces.iter().map(|(piece, _)| piece));
        tables.put_session(it.session, &session)?;
        waits::left_behind(tables, now, &queue, more)?;
    }
    let rest = if more {
        tables.drop_waiter(&it.queue, it.session)?;
        Rest::More
    } else {
        waits::enter(tables, now, it.session, &it.queue)?;
        let next_due = tables.next_delayed(&it.queue)?;
        Rest::Nothing { next_due_ms: next_due.map(|(due, _)| due.saturating_sub(now)) }
    };
    Ok(Claimed { queue: it.queue.clone(), pieces: hand.pieces, rest })
}

/// How many of these pieces are suspects.
pub(super) fn suspects<'a>(pieces: impl Iterator<Item = &'a Piece>) -> u32 {
    pieces.filter(|piece| piece.is_suspect()).map(|piece| piece.range.len).sum()
}

/// The answer to a repeat: what is still in flight under the number.
fn again<T: Tables>(tables: &mut T, record: ClaimRecord) -> Moved<Claimed> {
    let ClaimRecord { queue, pieces } = record;
    let mut with_bodies = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let parcel = cut(tables, &queue, &piece, u64::MAX)?.ok_or_else(|| missing(&queue, &piece))?;
        with_bodies.push((piece, parcel));
    }
    Ok(Claimed { queue, pieces: with_bodies, rest: Rest::More })
}

/// As many of a piece's messages as the budget allows, with their bodies.
pub(super) fn cut<T: Tables>(tables: &mut T, queue: &Name, piece: &Piece, budget: u64) -> Moved<Option<Parcel>> {
    tables.cut_bodies(queue, BodyKey::of(piece), piece.offset(), piece.range.len, budget)
}

/// The store has a piece without its bodies.
pub(super) fn missing(queue: &Name, piece: &Piece) -> StoreError {
    StoreError::Damaged(format!("the bodies of {queue}/{} are missing", piece.range.first))
}

fn check_number(numbers: &ClaimNumbers, claim_no: u64) -> Moved<()> {
    let lowest = numbers.holes.first().copied().unwrap_or(numbers.high + 1);
    if claim_no >= lowest + CLAIM_WINDOW {
        return Err(Refusal::OutOfTurn { last: numbers.high }.into());
    }
    if claim_no <= numbers.high && !numbers.holes.contains(&claim_no) {
        return Err(Refusal::Spent { claim_no }.into());
    }
    Ok(())
}

fn use_number(numbers: &mut ClaimNumbers, claim_no: u64) {
    if claim_no > numbers.high {
        numbers.holes.extend(numbers.high + 1..claim_no);
        numbers.high = claim_no;
    } else {
        numbers.holes.retain(|hole| *hole != claim_no);
    }
}

/// What a claim has gathered, and how much more it may.
struct Hand {
    n: u32,
    budget: u64,
    pieces: Vec<(Piece, Parcel)>,
    /// Whether the bound of bytes kept it from taking more.
    stopped: bool,
}

impl Hand {
    fn fill<T: Tables>(&mut self, tables: &mut T, now: u64, queue: &mut QueueRecord, suspect: bool) -> Moved<()> {
        let name = queue.books.queue.clone();
        if suspect && let Some(piece) = tables.front(&name, Line::Suspects)? {
            self.take(tables, &name, &piece)?;
            tables.advance(&name, Line::Suspects, None)?;
            queue.books.ready -= u64::from(piece.range.len);
            queue.books.in_flight += u64::from(piece.range.len);
        }
        while self.has_room() {
            let Some((due, piece)) = tables.next_delayed(&name)?.filter(|(due, _)| *due <= now) else { break };
            if self.take(tables, &name, &piece)? == 0 {
                self.stopped = true;
                return Ok(());
            }
            tables.drop_delayed(&name, due, piece.range.first)?;
            queue.books.delayed -= 1;
            queue.books.in_flight += 1;
        }
        while self.has_room() {
            let Some(piece) = tables.front(&name, Line::Ready)? else { break };
            let len = piece.range.len.min(self.n);
            let wanted = piece.over(Range { len, ..piece.range });
            let taken = self.take(tables, &name, &wanted)?;
            if taken == 0 {
                self.stopped = true;
                break;
            }
            let [_, rest] = piece.without(Range { len: taken, ..piece.range });
            tables.advance(&name, Line::Ready, rest.as_ref())?;
            queue.books.ready -= u64::from(taken);
            queue.books.in_flight += u64::from(taken);
            if taken < len {
                self.stopped = true;
                break;
            }
        }
        Ok(())
    }

    const fn has_room(&self) -> bool {
        self.n > 0 && self.pieces.len() < MAX_PIECES
    }

    /// Takes as much of a piece as fits, at least one message if the hand is empty; how many.
    fn take<T: Tables>(&mut self, tables: &mut T, queue: &Name, piece: &Piece) -> Moved<u32> {
        let parcel = match cut(tables, queue, piece, self.budget)? {
            Some(parcel) => parcel,
            None if self.pieces.is_empty() => {
                let one = piece.over(Range { len: 1, ..piece.range });
                cut(tables, queue, &one, u64::MAX)?.ok_or_else(|| missing(queue, piece))?
            }
            None => return Ok(0),
        };
        let len = parcel.len();
        self.n -= len;
        self.budget = self.budget.saturating_sub(parcel.body_bytes() as u64);
        self.pieces.push((piece.over(Range { len, ..piece.range }), parcel));
        Ok(len)
    }
}
