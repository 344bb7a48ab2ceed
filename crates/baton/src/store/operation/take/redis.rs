//! The arguments and the answer of `take.lua`.

use crate::store::{
    StoreError, Take, Taken,
    redis::{Arguments, Coded, Reply},
};

impl Coded for Take {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(self.session).text(&self.source)
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Taken, StoreError> {
        match code {
            "OK" => Ok(Taken { epoch: reply.parsed()?, cursor: reply.text()?, batch_no: reply.parsed()? }),
            _ => Err(reply.refusal(code)),
        }
    }
}
