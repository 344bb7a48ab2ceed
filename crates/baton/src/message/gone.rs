//! Which messages of a parcel have gone, one bit each.

/// Once no more than one in so many is left of a parcel, it is stored without the bodies of the others.
pub(crate) const THINNED_AT: u32 = 8;

/// The messages of a parcel that have gone: a bit for each in the order of ids, the highest of a byte first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gone {
    size: u32,
    bits: Vec<u8>,
}

impl Gone {
    /// None of `size` messages.
    pub(crate) fn none(size: u32) -> Self {
        Self::read(size, Vec::new())
    }

    /// As it was stored; what is not there has not gone.
    pub(crate) fn read(size: u32, mut bits: Vec<u8>) -> Self {
        bits.resize(size.div_ceil(8) as usize, 0);
        Self { size, bits }
    }

    /// As it is stored.
    #[cfg(any(test, feature = "sqlite"))]
    pub(crate) fn bits(&self) -> &[u8] {
        &self.bits
    }

    /// Notes that the messages `start .. start + len` have gone, or are there.
    pub(crate) fn set(&mut self, start: u32, len: u32, gone: bool) {
        for index in start..start.saturating_add(len).min(self.size) {
            if let Some(byte) = self.bits.get_mut(index as usize / 8) {
                let bit = 0x80 >> (index % 8);
                *byte = if gone { *byte | bit } else { *byte & !bit };
            }
        }
    }

    pub(crate) fn has(&self, index: u32) -> bool {
        self.bits.get(index as usize / 8).is_some_and(|byte| byte & (0x80 >> (index % 8)) != 0)
    }

    /// How many have not.
    pub(crate) fn left(&self) -> u32 {
        self.size.saturating_sub(self.bits.iter().map(|byte| byte.count_ones()).sum())
    }

    /// Whether so few are left, and were not before, that their parcel is to be stored without the others' bodies.
    pub(crate) fn thins(&self, before: u32) -> bool {
        let most = self.size / THINNED_AT;
        most > 0 && before > most && self.left() <= most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parcel_is_thinned_once_when_an_eighth_is_left() {
        let mut gone = Gone::none(20);
        gone.set(3, 16, true);
        assert_eq!((gone.left(), gone.has(2), gone.has(3), gone.has(18), gone.has(19)), (4, false, true, true, false));
        assert!(!gone.thins(20));
        gone.set(0, 2, true);
        assert_eq!(gone, Gone::read(20, gone.bits().to_vec()));
        assert!(gone.thins(4) && !gone.thins(2));
        gone.set(0, 99, true);
        gone.set(5, 2, false);
        assert_eq!(gone.left(), 2);
        let mut few = Gone::none(7);
        few.set(0, 6, true);
        assert!(!few.thins(7), "a few are not worth it");
    }
}
