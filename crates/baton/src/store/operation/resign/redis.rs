//! The arguments and the answer of `resign.lua`.

use crate::store::{
    Resign, StoreError,
    redis::{Arguments, Coded, Reply},
};

impl Coded for Resign {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(self.session).text(&self.source).text(self.epoch)
    }

    fn read(&self, code: &str, reply: Reply) -> Result<(), StoreError> {
        reply.done(code)
    }
}
