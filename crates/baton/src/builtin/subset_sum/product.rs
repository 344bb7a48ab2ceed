//! The matches of equal sums: every subset of the one half with every subset of the other.

use std::ops::Range;

use super::{
    half::Half,
    number::Number,
    walk::{Found, Halves},
};

/// A sum of a half, by its places in the two lists.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot<N> {
    pub(super) sum: N,
    pub(super) short: u32,
    pub(super) long: u32,
}

/// Equal sums of both halves whose matches are being given; there may be more of those than anyone can wait for.
#[derive(Debug, Default)]
pub(super) struct Product {
    /// Places of the left sums.
    lefts: Vec<[u32; 2]>,
    /// Places of the right sums.
    rights: Vec<[u32; 2]>,
    /// Those that are equal, where the last is given next.
    equals: Vec<Equal>,
    /// Which subset of each of the four lists is next.
    next: [usize; 4],
}

/// Left and right sums that are equal: each of the one is to go with each of the other.
#[derive(Debug)]
struct Equal {
    lefts: Range<usize>,
    rights: Range<usize>,
    /// The right one that is next.
    right: usize,
}

/// Stretches of equal sums in two ascending lists.
fn equals<'a, N: Number>(
    lefts: &'a [Spot<N>], rights: &'a [Spot<N>],
) -> impl Iterator<Item = (&'a [Spot<N>], &'a [Spot<N>])> {
    let mut rest = rights;
    lefts.chunk_by(|one, other| one.sum == other.sum).filter_map(move |left| {
        let sum = left.first()?.sum;
        let before = rest.iter().take_while(|it| it.sum < sum).count();
        let equal = rest.iter().skip(before).take_while(|it| it.sum == sum).count();
        let (right, behind) = rest.split_at_checked(before + equal)?;
        rest = behind;
        Some((left, right.get(before..)?)).filter(|it| !it.1.is_empty())
    })
}

impl Product {
    /// How many matches these ascending sums have.
    pub(super) fn count<N: Number>(halves: &Halves<N>, lefts: &[Spot<N>], rights: &[Spot<N>]) -> u128 {
        let Halves { left, right } = halves;
        let all = equals(lefts, rights).map(|(lefts, rights)| {
            let count = |half: &Half<N>, it: &Spot<N>| {
                half.short.subsets(it.short).len() as u128 * half.long.subsets(it.long).len() as u128
            };
            let lefts: u128 = lefts.iter().map(|it| count(left, it)).sum();
            lefts * rights.iter().map(|it| count(right, it)).sum::<u128>()
        });
        all.sum()
    }

    /// Takes these ascending sums, after all that it had is given.
    pub(super) fn begin<N: Number>(&mut self, lefts: &[Spot<N>], rights: &[Spot<N>]) {
        self.lefts.clear();
        self.rights.clear();
        for (left, right) in equals(lefts, rights) {
            let (at, right_at) = (self.lefts.len(), self.rights.len());
            self.lefts.extend(left.iter().map(|it| [it.short, it.long]));
            self.rights.extend(right.iter().map(|it| [it.short, it.long]));
            let (lefts, rights) = (at..self.lefts.len(), right_at..self.rights.len());
            self.equals.push(Equal { lefts, rights, right: right_at });
        }
    }

    /// Gives up to so many of the matches; false if there is none left.
    pub(super) fn give<N: Number>(&mut self, halves: &Halves<N>, most: usize, found: &mut Found) -> bool {
        let Halves { left, right } = halves;
        for given in 0..most {
            let places = self.equals.last().and_then(|it| {
                let ([a, b], [c, d]) = (self.lefts.get(it.lefts.start)?, self.rights.get(it.right)?);
                Some([left.short.subsets(*a), left.long.subsets(*b), right.short.subsets(*c), right.long.subsets(*d)])
            });
            let Some(lists) = places else { return given > 0 };
            let parts = lists.iter().zip(self.next).filter_map(|(list, next)| list.get(next));
            found.subsets.push(parts.fold(0, |subset, part| subset | part));
            found.count += 1;
            self.go_on(lists);
        }
        true
    }

    /// One on, as an odometer goes: the last wheel first.
    fn go_on(&mut self, lists: [&[u64]; 4]) {
        for (next, list) in self.next.iter_mut().zip(lists).rev() {
            *next += 1;
            if *next < list.len() {
                return;
            }
            *next = 0;
        }
        let Some(equal) = self.equals.last_mut() else { return };
        equal.right += 1;
        if equal.right == equal.rights.end {
            equal.right = equal.rights.start;
            equal.lefts.start += 1;
        }
        if equal.lefts.is_empty() {
            self.equals.pop();
        }
    }
}
