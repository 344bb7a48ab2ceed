//! The arguments and the answer of `result.lua`.

use bytes::Bytes;

use crate::store::{
    ReadResult, StoreError,
    redis::{Arguments, Coded, Reply},
};

impl Coded for ReadResult {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(&self.queue).text(self.id)
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Option<Bytes>, StoreError> {
        match code {
            "OK" => reply.bytes().map(Some),
            "NONE" => Ok(None),
            _ => Err(reply.refusal(code)),
        }
    }
}
