//! A problem made ready: its two halves, what it will cost, and how it is divided.

use std::sync::Arc;

use super::{
    half::Half,
    number::Number,
    problem::{MOST_NUMBERS, Part, Problem, Refusal, SearchOptions},
    walk::{Found, Halves, Steps, Walk},
};

/// Nanoseconds a pair of either half takes on one core.
const PAIR_NANOS: f64 = 8.0;
/// Nanoseconds a match takes until it is printed.
const MATCH_NANOS: f64 = 1000.0;
/// Pairs up to which all matches are counted to know how many there are.
const COUNTED: u64 = 1 << 19;
/// Places among the sums at which matches are counted to guess how many there are.
const SAMPLES: u64 = 16;
/// Pairs that are looked at around each.
const SAMPLE: u64 = 1 << 17;

/// A problem made ready.
#[derive(Debug)]
pub(super) enum Plan {
    /// No sum leaves the narrow integers.
    Narrow(Ready<i64>),
    /// Any other.
    Wide(Ready<i128>),
}

/// What a search is estimated to cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Estimate {
    /// Pairs of both halves.
    pub(super) pairs: u64,
    /// Matches.
    pub(super) matches: u128,
    /// Bytes with so many threads.
    pub(super) bytes: u64,
}

impl Plan {
    /// Makes the problem ready.
    pub(super) fn of(problem: &Problem) -> Result<Self, Refusal> {
        let data = problem.data();
        if data.len() > MOST_NUMBERS {
            return Err(Refusal::TooMany(data.len()));
        }
        let reach: i128 = data.iter().map(|number| i128::from(*number).abs()).sum();
        // A sum out of reach is like the next one that is: the halves have nothing in common.
        let sum = problem.sum().clamp(-reach - 1, reach + 1);
        Ok(match reach < i128::from(i64::MAX / 8) {
            true => Self::Narrow(Ready::of(data, sum, problem.part())),
            false => Self::Wide(Ready::of(data, sum, problem.part())),
        })
    }

    /// Parts of about the same cost.
    pub(super) fn split(&self, parts: usize) -> Vec<Part> {
        match self {
            Self::Narrow(ready) => ready.split(parts),
            Self::Wide(ready) => ready.split(parts),
        }
    }

    /// The way through a part; matches are given or only counted.
    pub(super) fn walk(&self, part: Part, counting: bool) -> Box<dyn Steps> {
        match self {
            Self::Narrow(ready) => Box::new(ready.walk(part, counting)),
            Self::Wide(ready) => Box::new(ready.walk(part, counting)),
        }
    }

    /// The whole of it.
    pub(super) fn whole(&self) -> Part {
        match self {
            Self::Narrow(ready) => ready.whole(),
            Self::Wide(ready) => ready.whole(),
        }
    }

    /// How many matches there were if so many subsets were counted, in all of it or not: the empty one is none.
    pub(super) fn counted(&self, problem: &Problem, subsets: u128, complete: bool) -> u64 {
        let Part(from, to) = self.whole();
        let empty = complete && problem.sum() == 0 && from <= 0 && 0 < to;
        // There are fewer than two to the power of the most numbers.
        u64::try_from(subsets - u128::from(empty)).unwrap_or(u64::MAX)
    }

    /// What it costs with so many threads; too little if it is cancelled meanwhile.
    fn estimate(&self, threads: usize, cancelled: &dyn Fn() -> bool) -> Estimate {
        match self {
            Self::Narrow(ready) => ready.estimate(threads, cancelled),
            Self::Wide(ready) => ready.estimate(threads, cancelled),
        }
    }

    /// Refuses what would cost more than is wished with so many threads; else tells the pairs.
    pub(super) fn check(
        &self, options: &SearchOptions, threads: usize, cancelled: &dyn Fn() -> bool,
    ) -> Result<u64, Refusal> {
        let Estimate { pairs, matches, bytes } = self.estimate(threads, cancelled);
        let given = if options.count_only { 0 } else { matches.min(options.limit.map_or(u128::MAX, u128::from)) };
        let nanos = pairs as f64 * PAIR_NANOS / threads as f64 + given as f64 * MATCH_NANOS;
        let seconds = (nanos / 1e9) as u64;
        if seconds > options.max_seconds {
            return Err(Refusal::TooLong { matches, seconds, most: options.max_seconds });
        }
        if bytes > options.max_bytes {
            return Err(Refusal::TooLarge { bytes, most: options.max_bytes });
        }
        Ok(pairs)
    }
}

/// Two halves and the sums that both may have.
#[derive(Debug)]
pub(super) struct Ready<N> {
    halves: Arc<Halves<N>>,
    from: N,
    to: N,
}

impl<N: Number> Ready<N> {
    fn of(data: &[i64], sum: i128, part: Option<Part>) -> Self {
        // Equal numbers go to the same list, which has fewer sums then.
        let mut numbers: Vec<(i64, u64)> = (0..).zip(data).map(|(place, number)| (*number, 1 << place)).collect();
        numbers.sort_by_key(|(number, _)| *number);
        let (left, right) = numbers.split_at(numbers.len() / 2);
        // The left half has its sums, the right one what is missing to the sum: a match is where they are equal.
        let left: Vec<_> = left.iter().map(|(number, bit)| (N::of(i128::from(*number)), *bit)).collect();
        let right: Vec<_> = right.iter().map(|(number, bit)| (N::of(-i128::from(*number)), *bit)).collect();
        let halves = Halves { left: Half::of(N::of(0), &left), right: Half::of(N::of(sum), &right) };
        let ends = halves.left.ends().zip(halves.right.ends());
        let (mut from, mut to) =
            ends.map_or((0, 0), |(left, right)| (left.0.max(right.0).wide(), left.1.min(right.1).wide() + 1));
        if let Some(Part(part_from, part_to)) = part {
            (from, to) = (from.max(part_from), to.min(part_to));
        }
        Self { halves: Arc::new(halves), from: N::of(from), to: N::of(to.max(from)) }
    }

    fn whole(&self) -> Part {
        Part(self.from.wide(), self.to.wide())
    }

    fn walk(&self, part: Part, counting: bool) -> Walk<N> {
        Walk::new(&self.halves, N::of(part.0), N::of(part.1), counting)
    }

    /// Pairs of both halves before this sum, about.
    fn before(&self, sum: N) -> u64 {
        self.halves.left.roughly_below(sum) + self.halves.right.roughly_below(sum)
    }

    /// The sum before which there are about so many pairs, give or take `about`, from `from` on.
    fn place(&self, from: N, pairs: u64, about: u64) -> N {
        let (mut from, mut to) = (from, self.to);
        while to - from > N::of(1) {
            let middle = from + (to - from).halved();
            let before = self.before(middle);
            if before.abs_diff(pairs) <= about {
                return middle;
            }
            if before < pairs {
                from = middle;
            } else {
                to = middle;
            }
        }
        to
    }

    fn split(&self, parts: usize) -> Vec<Part> {
        let (first, last, parts) = (self.before(self.from), self.before(self.to), parts.max(1) as u64);
        let each = (last - first) / parts;
        let mut split = Vec::new();
        let mut at = self.from;
        for part in 1..parts {
            let to = self.place(at, first + part * each, each / 16);
            if to > at && to < self.to {
                split.push(Part(at.wide(), to.wide()));
                at = to;
            }
        }
        split.push(Part(at.wide(), self.to.wide()));
        split
    }

    fn estimate(&self, threads: usize, cancelled: &dyn Fn() -> bool) -> Estimate {
        let Halves { left, right } = &*self.halves;
        let lists = [left, right].map(|half| half.short.bytes() + half.long.bytes());
        let bytes = lists.iter().sum::<usize>() + threads * Walk::bytes(&self.halves);
        let (first, last) = (self.before(self.from), self.before(self.to));
        let (pairs, mut looked_at, mut found) = (last - first, 0, Found::default());
        let mut count = |part| {
            let mut walk = self.walk(part, true);
            while walk.step(&mut found) && !cancelled() {}
        };
        if left.pairs() + right.pairs() <= COUNTED {
            count(self.whole());
        } else {
            for sample in (0..SAMPLES).take_while(|_| !cancelled()) {
                let middle = first + pairs / SAMPLES * sample + pairs / SAMPLES / 2;
                let from = self.place(self.from, middle, SAMPLE / 8);
                let to = self.place(from, middle + SAMPLE, SAMPLE / 8);
                count(Part(from.wide(), to.wide()));
                looked_at += self.before(to) - self.before(from);
            }
        }
        let matches = match looked_at {
            0 => found.count,
            looked_at => found.count.saturating_mul(u128::from(pairs)) / u128::from(looked_at),
        };
        Estimate { pairs, matches, bytes: bytes as u64 }
    }
}
