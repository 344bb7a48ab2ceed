//! Bodies: whole parcels, shared with whoever reads them.

use super::MemoryTables;
use crate::{
    message::{Gone, Name, Parcel},
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

    fn weigh_bodies(&mut self, queue: &Name, key: BodyKey, start: u32, len: u32) -> Moved<Option<u64>> {
        Ok(self.bodies.get(&(queue.clone(), key)).map(|parcel| parcel.share(start, len)))
    }

    fn replace_bodies(&mut self, queue: &Name, key: BodyKey, parcel: &Parcel) -> Moved<()> {
        self.put_bodies(queue, key, parcel)
    }

    fn drop_bodies(&mut self, queue: &Name, key: BodyKey) -> Moved<u64> {
        let gone = self.bodies.remove(&(queue.clone(), key));
        Ok(gone.map_or(0, |parcel| parcel.bytes().len() as u64))
    }

    fn gone(&mut self, queue: &Name, parcel: u64, _size: u32) -> Moved<Option<Gone>> {
        Ok(self.gone.get(&(queue.clone(), parcel)).cloned())
    }

    fn put_gone(&mut self, queue: &Name, parcel: u64, gone: Option<&Gone>) -> Moved<()> {
        match gone {
            Some(gone) => self.gone.insert((queue.clone(), parcel), gone.clone()),
            None => self.gone.remove(&(queue.clone(), parcel)),
        };
        Ok(())
    }
}
