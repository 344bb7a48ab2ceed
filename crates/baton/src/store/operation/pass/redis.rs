//! The arguments and the answer of `pass.lua`.

use crate::store::{
    Pass, StoreError,
    redis::{Arguments, Coded, Reply},
};

impl Coded for Pass {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(self.session).text(&self.queue)
    }

    fn read(&self, code: &str, reply: Reply) -> Result<(), StoreError> {
        reply.done(code)
    }
}
