//! The arguments and the answer of `drain_begin.lua`.

use crate::store::{
    DrainBegin, Draining, StoreError,
    redis::{Arguments, Coded, Reply},
};

impl Coded for DrainBegin {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(self.session).text(&self.queue)
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Draining, StoreError> {
        match code {
            "OK" => Ok(Draining { upto: reply.parsed()?, dispose_no: reply.parsed()? }),
            _ => Err(reply.refusal(code)),
        }
    }
}
