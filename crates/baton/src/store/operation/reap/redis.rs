//! The arguments and the answer of `reap.lua`.

use crate::store::{
    Reap, Reaped, StoreError,
    redis::{Arguments, Coded, Reply},
};

impl Coded for Reap {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(self.session).text(self.target)
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Reaped, StoreError> {
        match code {
            "OK" => Ok(Reaped::Taken { back: reply.parsed()?, dead: reply.parsed()? }),
            "ALIVE" => Ok(Reaped::Alive),
            "GONE" => Ok(Reaped::Gone),
            _ => Err(reply.refusal(code)),
        }
    }
}
