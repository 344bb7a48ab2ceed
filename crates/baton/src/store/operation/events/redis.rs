//! The arguments and the answer of `events.lua`.

use super::{EventPage, ReadEvents};
use crate::store::{
    StoreError,
    operation::follow::read_page,
    redis::{Arguments, Coded, Reply},
};

impl Coded for ReadEvents {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(&self.call).text(self.from).text(self.max_bytes)
    }

    fn read(&self, code: &str, reply: Reply) -> Result<EventPage, StoreError> {
        read_page(code, reply)
    }
}
