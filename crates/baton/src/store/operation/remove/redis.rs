//! The arguments and the answer of `remove.lua`.

use crate::store::{
    Remove, StoreError,
    redis::{Arguments, Coded, Reply},
};

impl Coded for Remove {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(&self.source)
    }

    fn read(&self, code: &str, reply: Reply) -> Result<(), StoreError> {
        reply.done(code)
    }
}
