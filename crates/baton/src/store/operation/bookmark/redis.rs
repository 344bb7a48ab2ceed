//! The arguments and the answer of `bookmark.lua`.

use crate::store::{
    Place, ReadBookmark, StoreError,
    redis::{Arguments, Coded, Reply},
    wire,
};

impl Coded for ReadBookmark {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(self.key.as_str())
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Place, StoreError> {
        match code {
            "OK" => wire::parse_place(&reply.text()?),
            _ => Err(reply.refusal(code)),
        }
    }
}
