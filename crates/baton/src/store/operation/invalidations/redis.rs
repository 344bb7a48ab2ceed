//! The arguments and the answer of `invalidations.lua`.

use super::{Invalidations, MAX_READ_INVALIDATIONS, ReadInvalidations};
use crate::{
    message::Scope,
    store::{
        StoreError,
        redis::{Arguments, Coded, Number, Reply, numbers},
    },
};

impl Coded for ReadInvalidations {
    const NUMBERS: &'static [Number] = numbers![MAX_READ_INVALIDATIONS];

    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(self.since)
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Invalidations, StoreError> {
        if code != "OK" {
            return Err(reply.refusal(code));
        }
        let (generation, floor) = (reply.parsed()?, reply.parsed()?);
        let scopes = reply.list()?.rest(|it| Ok((Scope::from_text(&it.text()?), it.parsed()?)))?;
        Ok(Invalidations { generation, floor, scopes })
    }
}
