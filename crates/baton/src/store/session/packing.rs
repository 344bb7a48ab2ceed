//! Single messages that wait for the same queue travel as one parcel.
//!
//! The order within a queue is kept: a lot that cannot be merged closes the parcel before it.

use std::collections::BTreeMap;

use crate::{
    message::{Body, Lot, MAX_BODY_BYTES, Name, ParcelBuilder},
    store::LotVerdict,
};

/// The same lots with the single messages of each queue in as few parcels as hold them.
pub(crate) fn packed(lots: Vec<Lot>) -> Vec<Lot> {
    Packing::of(lots).0
}

/// Lots as they are sent, and where each lot handed in went.
#[derive(Default)]
pub(super) struct Packing {
    lots: Vec<Lot>,
    open: BTreeMap<Name, Open>,
    /// For each lot handed in: the lot that carries it and its place there.
    places: Vec<(usize, u32)>,
}

/// A parcel being filled for one queue.
#[derive(Default)]
struct Open {
    builder: ParcelBuilder,
    members: Vec<usize>,
}

impl Packing {
    /// Packs lots; `verdicts` are then read back with [`Packed::verdict`].
    pub(super) fn of(lots: Vec<Lot>) -> (Vec<Lot>, Packed) {
        let mut packing = Self::default();
        for lot in lots {
            packing.add(lot);
        }
        packing.finish()
    }

    /// Adds a lot behind those of its queue. One that cannot be merged travels as it is, so this never fails.
    fn add(&mut self, lot: Lot) {
        let member = self.places.len();
        self.places.push((0, 0));
        let single =
            (lot.parcel.len() == 1 && lot.key.is_none() && lot.call.is_none()).then(|| lot.parcel.body(0)).flatten();
        // One for which a larger limit was set travels alone.
        if !single.is_some_and(|body| body.len() <= MAX_BODY_BYTES && self.merge(&lot.queue, member, &body)) {
            self.close(&lot.queue);
            self.place(member, 0);
            self.lots.push(lot);
        }
    }

    /// Puts a single message into the open parcel of its queue; false if none takes it.
    fn merge(&mut self, queue: &Name, member: usize, body: &[u8]) -> bool {
        if !self.open.get(queue).is_none_or(|open| open.builder.has_room(body.len())) {
            self.close(queue);
        }
        let open = self.open.entry(queue.clone()).or_default();
        let fits = open.builder.add(Body::taken_before(body)).is_ok();
        if fits {
            open.members.push(member);
        }
        fits
    }

    /// A lot that goes by itself goes as it is.
    pub(super) const fn one(lot: Vec<Lot>) -> (Vec<Lot>, Packed) {
        (lot, Packed { places: None })
    }

    fn finish(mut self) -> (Vec<Lot>, Packed) {
        for queue in self.open.keys().cloned().collect::<Vec<_>>() {
            self.close(&queue);
        }
        (self.lots, Packed { places: Some(self.places) })
    }

    fn close(&mut self, queue: &Name) {
        let Some(mut open) = self.open.remove(queue) else { return };
        let Some(parcel) = open.builder.finish() else { return };
        for (offset, member) in (0..).zip(open.members) {
            self.place(member, offset);
        }
        self.lots.push(Lot { queue: queue.clone(), parcel, key: None, call: None });
    }

    fn place(&mut self, member: usize, offset: u32) {
        if let Some(place) = self.places.get_mut(member) {
            *place = (self.lots.len(), offset);
        }
    }
}

/// Where the lots handed in went.
pub(super) struct Packed {
    /// Nothing if each went as it was.
    places: Option<Vec<(usize, u32)>>,
}

impl Packed {
    /// The verdict on the lot that was added as number `member`.
    pub(super) fn verdict(&self, member: usize, verdicts: &[LotVerdict]) -> Option<LotVerdict> {
        let (lot, offset) = match &self.places {
            Some(places) => *places.get(member)?,
            None => (member, 0),
        };
        Some(match verdicts.get(lot)? {
            LotVerdict::Stored { first } => LotVerdict::Stored { first: first + u64::from(offset) },
            verdict => *verdict,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lot(queue: &str, bodies: &[&str]) -> Lot {
        let mut builder = ParcelBuilder::default();
        for body in bodies {
            builder.add(Body::new(body.as_bytes()).unwrap()).unwrap();
        }
        Lot { queue: Name::new(queue).unwrap(), parcel: builder.finish().unwrap(), key: None, call: None }
    }

    #[test]
    fn singles_merge_and_order_within_a_queue_stays() {
        let handed_in = [lot("a", &["1"]), lot("b", &["2"]), lot("a", &["3"]), lot("a", &["4", "5"]), lot("a", &["6"])];
        let (lots, packed) = Packing::of(handed_in.into());
        let of_a =
            lots.iter().filter(|lot| lot.queue.as_str() == "a").flat_map(|lot| lot.parcel.bodies().collect::<Vec<_>>());
        assert_eq!(of_a.collect::<Vec<_>>(), ["1", "3", "4", "5", "6"]);
        assert_eq!(lots.len(), 4);
        let verdicts: Vec<_> = (0..4).map(|lot| LotVerdict::Stored { first: lot * 100 }).collect();
        let index = |queue: &str, body: &str| {
            let has = |lot: &Lot| lot.queue.as_str() == queue && lot.parcel.bodies().any(|it| it == body);
            lots.iter().position(has).unwrap() as u64 * 100
        };
        assert_eq!(packed.verdict(2, &verdicts), Some(LotVerdict::Stored { first: index("a", "3") + 1 }));
        assert_eq!(packed.verdict(4, &verdicts), Some(LotVerdict::Stored { first: index("a", "6") }));
        assert_eq!(packed.verdict(5, &verdicts), None);
    }
}
