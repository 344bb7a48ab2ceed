//! Errors counted by cause: the first line of their text with its numbers folded, but for how programs ended.

use std::{cmp::Reverse, collections::BTreeMap};

use serde::Serialize;

use super::{Admin, AdminError, Wanted};
use crate::message::{MessageId, Name};

const LONGEST_CAUSE: usize = 200;

/// Errors by cause, the most frequent first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Causes {
    /// How many were counted.
    pub failed: u64,
    /// A cause and a queue each.
    pub groups: Vec<Cause>,
    /// How many there were to choose from.
    #[serde(skip)]
    pub total: u64,
}

/// Errors of one queue with one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// The first line of the error with every run of digits as one `#`, but for exit codes and signals.
    pub cause: String,
    /// How many.
    pub count: u64,
    /// The queue.
    pub queue: Name,
    /// The first of them.
    pub example_id: MessageId,
}

impl Admin {
    /// Counts errors by cause; removes nothing.
    ///
    /// # Errors
    /// [`AdminError::Unknown`] if the fleet has no such queue; the store's failure after the time to wait for it.
    pub async fn causes(&self, wanted: &Wanted) -> Result<Causes, AdminError> {
        let survey = self.survey().await?;
        let total = self.total(wanted, &survey, false)?;
        let mut counts: BTreeMap<(Name, String), (u64, MessageId)> = BTreeMap::new();
        let (mut left, mut seen) = (wanted.limit.unwrap_or(u64::MAX), 0);
        for books in survey.queues.iter().filter(|books| wanted.queue(books)) {
            let mut after = 0;
            while left > 0 {
                let errors = self.page(&books.queue, after, books.failed_seq).await?;
                let Some(last) = errors.last() else { break };
                after = last.seq;
                seen += errors.len() as u64;
                for error in
                    errors.iter().filter(|error| wanted.error(error)).take(usize::try_from(left).unwrap_or(usize::MAX))
                {
                    let key = (books.queue.clone(), cause(&error.error));
                    counts.entry(key).or_insert((0, error.id)).0 += 1;
                    left -= 1;
                }
            }
        }
        // Others may have removed some since the first look.
        let total = if left > 0 { seen } else { total };
        let groups = counts.into_iter();
        let groups = groups.map(|((queue, cause), (count, example_id))| Cause { cause, count, queue, example_id });
        let mut groups: Vec<Cause> = groups.collect();
        groups.sort_by_key(|group| Reverse(group.count));
        Ok(Causes { failed: groups.iter().map(|group| group.count).sum(), groups, total })
    }
}

/// What a number behind it says of the cause: how a program ended.
const TELLING: [&str; 2] = ["exit code ", "signal "];

/// The first line of an error with every run of digits as one `#`, but for those that say how a program ended.
#[must_use]
pub fn cause(error: &str) -> String {
    let (mut folded, mut tells) = (String::new(), false);
    for c in error.lines().next().unwrap_or_default().chars() {
        if folded.chars().count() >= LONGEST_CAUSE {
            break;
        }
        tells = c.is_ascii_digit() && (tells || TELLING.iter().any(|words| folded.ends_with(words)));
        match c.is_ascii_digit() {
            true if tells => folded.push(c),
            true if folded.ends_with('#') => {}
            true => folded.push('#'),
            false => folded.push(c),
        }
    }
    folded
}

/// Whether a text contains this one, in which a `#` stands for a run of digits too: a cause finds the errors it counts.
pub(super) fn contains(text: &str, wanted: &str) -> bool {
    let literally = text.contains(wanted);
    if literally || !wanted.contains('#') {
        return literally;
    }
    let parts: Vec<&str> = wanted.split('#').collect();
    text.char_indices().filter_map(|(at, _)| text.get(at..)).any(|rest| begins_with(rest, &parts))
}

/// Whether a text begins with these parts and a run of digits, or of what stands for one, between each two.
fn begins_with(text: &str, parts: &[&str]) -> bool {
    let is_number = |c: char| c == '#' || c.is_ascii_digit();
    let mut rest = text.strip_prefix(parts.first().copied().unwrap_or_default());
    for (nth, part) in parts.iter().enumerate().skip(1) {
        // What follows a run at once belongs to it.
        let goes_on = nth > 1 && parts.get(nth - 1).is_some_and(|before| before.is_empty());
        rest = rest.and_then(|rest| {
            let behind = rest.trim_start_matches(is_number);
            (goes_on || behind.len() < rest.len()).then_some(behind)?.strip_prefix(part)
        });
    }
    rest.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_cause_become_one_sign() {
        assert_eq!(cause("timed out after 1500 ms at 10.0.0.7\nmore"), "timed out after # ms at #.#.#.#");
        assert_eq!(cause(""), "");
        assert_eq!(cause("failed with exit code 31 after 20 s"), "failed with exit code 31 after # s");
        assert_eq!(cause("was killed by signal 9"), "was killed by signal 9");
    }

    #[test]
    fn a_cause_finds_what_it_was_made_of() {
        for error in
            ["timed out after 1500 ms at 10.0.0.7\nmore", "issue #5 of 7", "##1 and 2##", "no number", "\u{e9} 7"]
        {
            assert!(contains(error, &cause(error)), "{error:?} {:?}", cause(error));
        }
        for (text, wanted, found) in [
            ("after 15 ms", "after # ms", true),
            ("after 15 ms", "r # m", true),
            ("after a ms", "after # ms", false),
            ("5 of 7", "5 of #", true),
            ("6 of 7", "5 of #", false),
            ("anything", "", true),
            ("anything", "#", false),
        ] {
            assert_eq!(contains(text, wanted), found, "{text:?} {wanted:?}");
        }
    }
}
