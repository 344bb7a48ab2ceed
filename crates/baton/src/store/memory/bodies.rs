//! Bodies: whole parcels, shared with whoever reads them.

use super::MemoryTables;
use crate::{
    message::{Name, Parcel},
    store::engine::{Bodies, BodyKey, Cut, Moved},
};

impl Bodies for MemoryTables {
    fn put_bodies(&mut self, queue: &Name, key: BodyKey, parcel: &Parcel) -> Moved<()> {
        self.bodies.insert((queue.clone(), key), parcel.clone());
        Ok(())
    }

    fn cut_bodies(&mut self, queue: &Name, key: BodyKey, start: u32, len: u32, budget: u64) -> Moved<Cut> {
        let Some(parcel) = self.bodies.get(&(queue.clone(), key)) else { return Ok(Cut::Missing) };
        Ok(Cut::of(parcel, start, len, budget))
    }

    fn has_bodies(&mut self, queue: &Name, key: BodyKey) -> Moved<bool> {
        Ok(self.bodies.contains_key(&(queue.clone(), key)))
    }

    fn drop_bodies(&mut self, queue: &Name, key: BodyKey) -> Moved<u64> {
        let gone = self.bodies.remove(&(queue.clone(), key));
        Ok(gone.map_or(0, |parcel| parcel.bytes().len() as u64))
    }

    fn left(&mut self, queue: &Name, parcel: u64) -> Moved<Option<u32>> {
        Ok(self.left.get(&(queue.clone(), parcel)).copied())
    }

    fn put_left(&mut self, queue: &Name, parcel: u64, left: Option<u32>) -> Moved<()> {
        match left {
            Some(left) => self.left.insert((queue.clone(), parcel), left),
            None => self.left.remove(&(queue.clone(), parcel)),
        };
        Ok(())
    }
}
