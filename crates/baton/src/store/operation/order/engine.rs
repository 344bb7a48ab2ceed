//! Orders are written down where calls find them.

use crate::store::{
    Order,
    engine::{
        Effect, Moved, Tables,
        queues::{self, open_queue},
    },
};

impl Effect for Order {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<()> {
        match self {
            Order::Pause(name) | Order::Resume(name) => {
                let mut queue = open_queue(tables, name)?;
                queue.books.paused = matches!(self, Order::Pause(_));
                queue.wakes = 1;
                queues::close(tables, &mut queue)
            }
            Order::Stop(stop, upto) => {
                let mut meta = tables.meta()?;
                meta.stop = Some((upto.unwrap_or(meta.joins), *stop));
                tables.put_meta(&meta)
            }
        }
    }
}
