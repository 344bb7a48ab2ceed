//! The arguments and the answer of `unfollow.lua`.

use super::UnfollowCall;
use crate::store::{
    StoreError,
    redis::{Arguments, Coded, Reply},
};

impl Coded for UnfollowCall {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(self.session).text(&self.call).text(self.number)
    }

    fn read(&self, code: &str, reply: Reply) -> Result<(), StoreError> {
        reply.done(code)
    }
}
