//! All sums of a few numbers, in order.

use std::ops::Range;

use super::number::Number;

/// The sums of all subsets of some numbers, ascending, each once, with the subsets that have it.
#[derive(Debug)]
pub(super) struct Sums<N> {
    sums: Vec<N>,
    /// Where the subsets of each sum begin, and behind the last where they end.
    starts: Vec<u32>,
    /// Subsets as bits, those of equal sums side by side.
    subsets: Vec<u64>,
}

impl<N: Number> Sums<N> {
    /// Of these numbers, at most 31, each with its bit; the empty subset has the sum `base`.
    ///
    /// A further number doubles the list: it is merged with itself, shifted, so that nothing is ever sorted.
    pub(super) fn of(base: N, numbers: &[(N, u64)]) -> Self {
        let mut list = vec![(base, 0)];
        for (number, bit) in numbers {
            list = merged(&list, *number, *bit);
        }
        let (mut sums, mut starts, mut subsets) = (Vec::<N>::new(), Vec::new(), Vec::with_capacity(list.len()));
        for (place, (sum, subset)) in (0_u32..).zip(list) {
            if sums.last() != Some(&sum) {
                sums.push(sum);
                starts.push(place);
            }
            subsets.push(subset);
        }
        starts.push(u32::try_from(subsets.len()).unwrap_or(u32::MAX));
        sums.shrink_to_fit();
        starts.shrink_to_fit();
        Self { sums, starts, subsets }
    }

    /// How many different sums there are; one at least.
    pub(super) const fn len(&self) -> usize {
        self.sums.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = N> {
        self.sums.iter().copied()
    }

    /// Some sums that follow each other.
    pub(super) fn stretch(&self, places: Range<u32>) -> &[N] {
        self.sums.get(places.start as usize..places.end as usize).unwrap_or_default()
    }

    /// How many sums are less than this one.
    pub(super) fn below(&self, sum: N) -> usize {
        self.sums.partition_point(|it| *it < sum)
    }

    /// How many sums are less than this one, if at least `known` are: quick where that is not much less.
    pub(super) fn below_from(&self, known: u32, sum: N) -> u32 {
        let (mut known, mut step) = (known as usize, 1);
        while self.sums.get(known + step - 1).is_some_and(|it| *it < sum) {
            known += step;
            step *= 2;
        }
        let rest = self.sums.get(known..self.sums.len().min(known + step - 1)).unwrap_or_default();
        u32::try_from(known + rest.partition_point(|it| *it < sum)).unwrap_or(u32::MAX)
    }

    /// The least and the greatest sum.
    pub(super) fn ends(&self) -> Option<(N, N)> {
        Some((*self.sums.first()?, *self.sums.last()?))
    }

    /// The subsets that have the sum at this place.
    pub(super) fn subsets(&self, place: u32) -> &[u64] {
        let start = |place: u32| self.starts.get(place as usize).map_or(0, |it| *it as usize);
        self.subsets.get(start(place)..start(place + 1)).unwrap_or_default()
    }

    /// Bytes it takes.
    pub(super) const fn bytes(&self) -> usize {
        self.sums.len() * (size_of::<N>() + size_of::<u32>()) + self.subsets.len() * size_of::<u64>()
    }
}

/// The list, and the list with a number added, in order.
fn merged<N: Number>(list: &[(N, u64)], number: N, bit: u64) -> Vec<(N, u64)> {
    let mut merged = Vec::with_capacity(list.len() * 2);
    let mut with = list.iter().map(|(sum, subset)| (*sum + number, subset | bit)).peekable();
    for without in list {
        while let Some(earlier) = with.next_if(|it| it.0 < without.0) {
            merged.push(earlier);
        }
        merged.push(*without);
    }
    merged.extend(with);
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_in_order_each_once_with_all_that_have_it() {
        let sums = Sums::<i64>::of(10, &[(2, 1), (-2, 2), (0, 4)]);
        assert_eq!(sums.iter().collect::<Vec<_>>(), [8, 10, 12]);
        let subsets = |place| {
            let mut subsets = sums.subsets(place).to_vec();
            subsets.sort_unstable();
            subsets
        };
        assert_eq!([subsets(0), subsets(1), subsets(2)], [vec![2, 6], vec![0, 3, 4, 7], vec![1, 5]]);
        assert_eq!((sums.ends(), sums.len(), sums.below(11)), (Some((8, 12)), 3, 2));
    }

    #[test]
    fn a_place_is_found_from_every_place_before_it() {
        let sums = Sums::<i64>::of(0, &[(1, 1), (2, 2), (4, 4), (8, 8)]);
        for sum in -1..18 {
            let below = u32::try_from(sums.below(sum)).unwrap();
            for known in 0..=below {
                assert_eq!(sums.below_from(known, sum), below, "{sum} from {known}");
            }
        }
    }
}
