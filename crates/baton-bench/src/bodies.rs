//! Random bodies, made before anything is timed.

use baton::store::message::{Body, Parcel, ParcelBuilder};

use crate::failure::Failure;

/// The most body bytes kept ready; beyond them the same parcels come round again.
const MOST_BYTES: usize = 128 << 20;

/// A JSON string without its quotes, so long that with them it has `bytes` bytes.
pub(super) fn text(bytes: usize) -> String {
    std::iter::repeat_with(fastrand::alphanumeric).take(bytes.saturating_sub(2)).collect()
}

/// Parcels of random bodies.
pub(super) struct Parcels {
    ready: Vec<Parcel>,
    each: u32,
}

impl Parcels {
    /// Enough parcels of `each` messages of `bytes` bytes for `count` messages, or as many as are kept.
    pub(super) fn make(count: u64, each: u32, bytes: usize) -> Result<Self, Failure> {
        let too_large = |why: String| Failure::usage(why, "take a smaller --parcel or fewer --bytes");
        let kept = (MOST_BYTES / (bytes * each as usize)).max(1) as u64;
        let parcels = count.div_ceil(u64::from(each)).min(kept);
        let make = |_| {
            let mut builder = ParcelBuilder::default();
            for _ in 0..each {
                let body = format!("\"{}\"", text(bytes));
                Body::new(body.as_bytes())
                    .and_then(|body| builder.add(body))
                    .map_err(|error| too_large(error.to_string()))?;
            }
            builder.finish().ok_or_else(|| too_large("a parcel is empty".to_owned()))
        };
        Ok(Self { ready: (0..parcels).map(make).collect::<Result<_, _>>()?, each })
    }

    /// Parcels that hold `count` messages together.
    pub(super) fn of(&self, count: u64) -> impl Iterator<Item = Parcel> + '_ {
        let each = u64::from(self.each);
        let rest = u32::try_from(count % each).unwrap_or(0);
        let whole = usize::try_from(count / each).unwrap_or(usize::MAX);
        let last = self.ready.first().and_then(|parcel| parcel.cut(0, rest));
        self.ready.iter().cycle().take(whole).cloned().chain(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parcels_hold_what_was_asked_for() {
        let parcels = Parcels::make(1000, 64, 20).unwrap();
        let taken: Vec<Parcel> = parcels.of(1000).collect();
        assert_eq!(taken.iter().map(|parcel| u64::from(parcel.len())).sum::<u64>(), 1000);
        for body in taken.iter().flat_map(|parcel| parcel.bodies().collect::<Vec<_>>()) {
            assert_eq!(body.len(), 20);
            assert!(serde_json::from_slice::<String>(&body).is_ok());
        }
    }
}
