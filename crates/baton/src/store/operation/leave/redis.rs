//! The arguments and the answer of `leave.lua`.

use crate::store::{
    Leave, StoreError,
    redis::{Arguments, Coded, Reply},
};

impl Coded for Leave {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(self.session)
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<(), StoreError> {
        match code {
            "OK" => Ok(()),
            _ => Err(reply.refusal(code)),
        }
    }
}
