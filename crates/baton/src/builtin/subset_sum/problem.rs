//! What is asked: some integers and the sum to be reached.

use std::{num::NonZero, thread, time::Duration};

use serde::{Deserialize, Serialize};

use super::plan::Plan;

/// Integers a problem may have.
pub const MOST_NUMBERS: usize = 64;

/// Which non-empty subsets of some integers have a given sum.
///
/// Integers at different places are different, also if they are equal: of `[1, 1]`, two subsets have the sum 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    data: Vec<i64>,
    sum: i128,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<Part>,
}

/// A part of a problem: the matches whose left half has a sum from the first to before the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part(pub(super) i128, pub(super) i128);

impl Problem {
    /// Of these integers and this sum.
    #[must_use]
    pub const fn new(data: Vec<i64>, sum: i128) -> Self {
        Self { data, sum, part: None }
    }

    /// The integers.
    #[must_use]
    pub fn data(&self) -> &[i64] {
        &self.data
    }

    /// The sum.
    #[must_use]
    pub const fn sum(&self) -> i128 {
        self.sum
    }

    pub(super) const fn part(&self) -> Option<Part> {
        self.part
    }

    /// At most so many problems that together have the same matches, each of them once, and that take about the same
    /// time: each can be written as JSON, carried to another machine and solved by itself.
    ///
    /// # Errors
    /// If there are too many integers.
    pub fn split(&self, parts: usize) -> Result<Vec<Self>, Refusal> {
        let parts = Plan::of(self)?.split(parts);
        Ok(parts.into_iter().map(|part| Self { part: Some(part), ..self.clone() }).collect())
    }

    /// Whether a search on this machine would refuse this as too large. Blocks its thread for a moment; `cancelled` ends
    /// that, and what is not known by then is not refused.
    ///
    /// # Errors
    /// [`Refusal`]: it would cost more than is wished.
    pub fn check(&self, options: &SearchOptions, cancelled: &dyn Fn() -> bool) -> Result<(), Refusal> {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Plan::of(self)?.check(options, cores, cancelled).map(drop)
    }

    /// The integers of a subset, in their order.
    pub(super) fn chosen(&self, subset: u64) -> Vec<i64> {
        let chosen = self.data.iter().enumerate().filter(|(place, _)| subset >> place & 1 == 1);
        chosen.map(|(_, number)| *number).collect()
    }
}

/// What is wanted of the matches, and what they may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchOptions {
    /// End after so many matches.
    pub limit: Option<u64>,
    /// Only count them.
    pub count_only: bool,
    /// Refuse what is estimated to take more seconds than this.
    pub max_seconds: u64,
    /// Refuse what is estimated to take more bytes of memory than this.
    pub max_bytes: u64,
}

impl Default for SearchOptions {
    /// All matches, in ten minutes and 512 MiB.
    fn default() -> Self {
        let (max_seconds, max_bytes) = (Self::default_seconds(), Self::default_bytes());
        Self { limit: None, count_only: false, max_seconds, max_bytes }
    }
}

impl SearchOptions {
    /// How long a search of this options may take, unless that is said: twice what it may be estimated to take, and a minute at
    /// least.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        let seconds = self.max_seconds.saturating_mul(2);
        Duration::from_secs(if seconds < 60 { 60 } else { seconds })
    }

    const fn default_seconds() -> u64 {
        600
    }

    const fn default_bytes() -> u64 {
        512 << 20
    }
}

/// Why a problem is not even begun.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// More than 64 integers.
    #[error("{0} integers are more than the {MOST_NUMBERS} that can be searched: leave some out")]
    TooMany(usize),
    /// It would take too long.
    #[error(
        "about {matches} matches would take about {seconds} s, more than {most} s: limit them, only count them, or allow \
         more time"
    )]
    TooLong {
        /// Matches there are, about.
        matches: u128,
        /// Seconds it would take.
        seconds: u64,
        /// Seconds it may take.
        most: u64,
    },
    /// It would need too much memory.
    #[error("it would need about {} MiB of memory, more than {} MiB: allow more", .bytes >> 20, .most >> 20)]
    TooLarge {
        /// Bytes it would need.
        bytes: u64,
        /// Bytes it may need.
        most: u64,
    },
}

/// How a search went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Matches that were found: given, or only counted.
    pub count: u64,
    /// Whether these are all; not if it ended at a limit or was broken off.
    pub complete: bool,
}

impl Summary {
    /// Matches of subsets that were found, as far as they are wanted; they are counted as given.
    pub(super) fn take(&mut self, problem: &Problem, options: &SearchOptions, subsets: Vec<u64>) -> Vec<Vec<i64>> {
        self.wanted(options, subsets).into_iter().map(|subset| problem.chosen(subset)).collect()
    }

    /// The same as subsets.
    pub(super) fn wanted(&mut self, options: &SearchOptions, subsets: Vec<u64>) -> Vec<u64> {
        let wanted = options.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.count));
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let subsets: Vec<u64> = subsets.into_iter().filter(|subset| *subset != 0).take(wanted).collect();
        self.count += subsets.len() as u64;
        subsets
    }

    /// Whether no more are wanted.
    pub(super) fn is_enough(&self, options: &SearchOptions) -> bool {
        options.limit.is_some_and(|limit| self.count >= limit)
    }
}

/// A problem and what is wanted, in one JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    data: Vec<i64>,
    sum: i128,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<Part>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    #[serde(default)]
    count_only: bool,
    #[serde(default = "SearchOptions::default_seconds")]
    max_seconds: u64,
    #[serde(default = "SearchOptions::default_bytes")]
    max_bytes: u64,
    /// Into how many messages it is split; nothing for one that is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parts: Option<u32>,
}

impl Task {
    pub(super) fn new(problem: &Problem, options: &SearchOptions) -> Self {
        let Problem { data, sum, part } = problem.clone();
        let SearchOptions { limit, count_only, max_seconds, max_bytes } = *options;
        Self { data, sum, part, limit, count_only, max_seconds, max_bytes, parts: None }
    }

    /// The same, to be split.
    pub(super) fn split_into(self, parts: u32) -> Self {
        Self { parts: Some(parts), ..self }
    }

    pub(super) fn told(self) -> (Problem, SearchOptions) {
        let Self { data, sum, part, limit, count_only, max_seconds, max_bytes, parts: _ } = self;
        (Problem { data, sum, part }, SearchOptions { limit, count_only, max_seconds, max_bytes })
    }
}
