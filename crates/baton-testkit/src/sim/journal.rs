//! What happened, in order: kept for the report of a broken rule, and summed up so that two runs can be compared.

use std::{collections::VecDeque, fmt};

use super::chance::digest;

/// Events that are kept.
const KEPT: usize = 60_000;

/// One thing that happened.
#[derive(Debug, Clone, Default)]
pub(super) struct Event {
    pub(super) at_ms: u64,
    pub(super) node: Option<usize>,
    pub(super) kind: &'static str,
    pub(super) queue: Option<usize>,
    /// Messages it is about, if it is about some.
    pub(super) first: u64,
    pub(super) len: u64,
    pub(super) note: String,
}

impl Event {
    fn is_about(&self, queue: usize, id: u64) -> bool {
        self.queue == Some(queue) && (self.first..self.first + self.len).contains(&id)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at_ms, node, kind, queue, first, len, note } = self;
        let who = node.map_or_else(|| "-".to_owned(), |node| format!("node {node}"));
        write!(f, "  {:>9.3} s  {who:<8} {kind}", *at_ms as f64 / 1_000.0)?;
        match (queue, len) {
            (Some(queue), 0) => write!(f, " q{queue}")?,
            (Some(queue), 1) => write!(f, " q{queue}/{first}")?,
            (Some(queue), _) => write!(f, " q{queue}/{first}..{}", first + len - 1)?,
            (None, _) => {}
        }
        write!(f, "{}{note}", if note.is_empty() { "" } else { " " })
    }
}

/// The newest events, and a sum over all.
#[derive(Debug)]
pub(super) struct Journal {
    events: VecDeque<Event>,
    sum: u64,
    /// Whether everything is printed as it happens.
    aloud: bool,
}

impl Default for Journal {
    fn default() -> Self {
        let aloud = std::env::var_os("BATON_TELL").is_some();
        Self { events: VecDeque::new(), sum: 0, aloud }
    }
}

impl Journal {
    pub(super) fn add(&mut self, event: Event) {
        let Event { at_ms, node, kind, queue, first, len, note } = &event;
        let numbers = [*at_ms, node.map_or(0, |it| it as u64 + 1), queue.map_or(0, |it| it as u64 + 1), *first, *len];
        for number in numbers.into_iter().chain([digest(kind.as_bytes()), digest(note.as_bytes())]) {
            self.sum = (self.sum ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        }
        if self.aloud {
            println!("{event}");
        }
        if self.events.len() == KEPT {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Prints something that is not worth keeping, if everything is printed.
    pub(super) fn say(&self, at_ms: u64, node: Option<usize>, what: impl FnOnce() -> String) {
        if self.aloud {
            println!("{} ({})", Event { at_ms, node, kind: "calls", ..Event::default() }, what());
        }
    }

    /// Differs between two runs that differ anywhere.
    pub(super) const fn sum(&self) -> u64 {
        self.sum
    }

    /// The last events that are not about single messages, and those about one message.
    pub(super) fn tell(&self, about: Option<(usize, u64)>) -> String {
        let lines = |events: Vec<&Event>| events.iter().rev().map(|event| format!("{event}\n")).collect::<String>();
        let of_fleet = self.events.iter().rev().filter(|event| event.len == 0).take(40).collect();
        let mut told = format!("the last events of the fleet:\n{}", lines(of_fleet));
        if let Some((queue, id)) = about {
            let of_message = self.events.iter().rev().filter(|event| event.is_about(queue, id)).take(30).collect();
            let of_queue = self.events.iter().rev().filter(|event| event.queue == Some(queue)).take(20).collect();
            told += &format!("events of message q{queue}/{id}:\n{}", lines(of_message));
            told += &format!("the last events of queue q{queue}:\n{}", lines(of_queue));
        }
        told
    }
}
