//! Errors counted by cause: the first line of their text with its numbers folded.

use std::{cmp::Reverse, collections::BTreeMap};

use baton::{message::Name, store::TakeSurvey};
use serde::Serialize;

use super::{Wanted, page};
use crate::{
    connection::Connection,
    exit::Failure,
    output::{Output, table, tame},
};

const LONGEST_CAUSE: usize = 200;

#[derive(Serialize)]
struct Groups {
    errors: u64,
    groups: Vec<Group>,
}

#[derive(Serialize)]
struct Group {
    cause: String,
    count: u64,
    queue: String,
    example_id: u64,
}

/// Prints the causes, the most frequent first; removes nothing.
pub(crate) async fn group(
    connection: &Connection, wanted: &Wanted, output: &mut Output, json: bool,
) -> Result<(), Failure> {
    let survey = connection.ask(TakeSurvey).await?;
    let total = wanted.total(&survey);
    let mut counts: BTreeMap<(Name, String), (u64, u64)> = BTreeMap::new();
    let mut left = wanted.limit.unwrap_or(u64::MAX);
    for books in survey.queues.iter().filter(|books| wanted.queue(books)) {
        let mut after = 0;
        while left > 0 {
            let errors = page(connection, &books.queue, after, books.dead_seq).await?;
            let Some(last) = errors.last() else { break };
            after = last.seq;
            for error in
                errors.iter().filter(|error| wanted.error(error)).take(usize::try_from(left).unwrap_or(usize::MAX))
            {
                let key = (books.queue.clone(), cause(&error.error));
                counts.entry(key).or_insert((0, error.id)).0 += 1;
                left -= 1;
            }
        }
    }
    let groups = counts.into_iter().map(|((queue, cause), (count, example_id))| Group {
        cause,
        count,
        queue: queue.to_string(),
        example_id,
    });
    let mut groups: Vec<Group> = groups.collect();
    groups.sort_by_key(|group| Reverse(group.count));
    let found = Groups { errors: groups.iter().map(|group| group.count).sum(), groups };
    if json {
        output.json(&found)?;
    } else if found.groups.is_empty() {
        total.tell_none();
    } else {
        let row = |it: &Group| vec![it.count.to_string(), it.queue.clone(), it.example_id.to_string(), tame(&it.cause)];
        let rows: Vec<_> = found.groups.iter().map(row).collect();
        for line in table(&["count", "queue", "example", "cause"], &rows) {
            output.line(&line)?;
        }
    }
    output.flush()
}

/// The first line of an error with every run of digits as one `#`.
fn cause(error: &str) -> String {
    let mut folded = String::new();
    for c in error.lines().next().unwrap_or_default().chars().take(LONGEST_CAUSE) {
        match c.is_ascii_digit() {
            true if folded.ends_with('#') => {}
            true => folded.push('#'),
            false => folded.push(c),
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fold() {
        assert_eq!(cause("timed out after 1500 ms at 10.0.0.7\nmore"), "timed out after # ms at #.#.#.#");
        assert_eq!(cause(""), "");
    }
}
