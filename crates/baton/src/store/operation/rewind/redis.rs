//! The arguments and the answer of `rewind.lua`.

use crate::store::{
    Rewind, StoreError,
    redis::{Arguments, Coded, Reply},
};

impl Coded for Rewind {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(&self.source).text(if self.goes_on { "1" } else { "0" })
    }

    fn read(&self, code: &str, reply: Reply) -> Result<(), StoreError> {
        reply.done(code)
    }
}
