//! The arguments and the answer of `resign.lua`.

use crate::store::{
    Resign, StoreError,
    redis::{Arguments, Coded, Reply},
};

impl Coded for Resign {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(self.session).text(&self.source).text(self.epoch)
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<(), StoreError> {
        match code {
            "OK" => Ok(()),
            _ => Err(reply.refusal(code)),
        }
    }
}
