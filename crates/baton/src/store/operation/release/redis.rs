//! The arguments and the answer of `release.lua`.

use super::Release;
use crate::store::{
    StoreError,
    redis::{Arguments, Coded, Reply},
};

impl Coded for Release {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(self.session).text(&self.key).text(self.number)
    }

    fn read(&self, code: &str, reply: Reply) -> Result<(), StoreError> {
        reply.done(code)
    }
}
