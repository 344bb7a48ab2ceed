//! The arguments and the answer of `rewind.lua`.

use crate::store::{
    Rewind, StoreError,
    redis::{Arguments, Coded, Reply},
};

impl Coded for Rewind {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(&self.source)
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<(), StoreError> {
        match code {
            "OK" => Ok(()),
            _ => Err(reply.refusal(code)),
        }
    }
}
