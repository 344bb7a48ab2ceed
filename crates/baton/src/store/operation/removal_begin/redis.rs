//! The arguments and the answer of `removal_begin.lua`.

use crate::store::{
    RemovalBegin, RemovalBegun, StoreError,
    redis::{Arguments, Coded, Reply},
};

impl Coded for RemovalBegin {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(self.session).text(&self.queue)
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<RemovalBegun, StoreError> {
        match code {
            "OK" => Ok(RemovalBegun { upto: reply.parsed()?, dispose_no: reply.parsed()? }),
            _ => Err(reply.refusal(code)),
        }
    }
}
