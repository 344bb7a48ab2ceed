//! The arguments and the answer of `forgotten.lua`.

use super::{Forgotten, MAX_READ_FORGOTTEN, ReadForgotten};
use crate::{
    message::Scope,
    store::{
        StoreError,
        redis::{Arguments, Coded, Number, Reply, numbers},
    },
};

impl Coded for ReadForgotten {
    const NUMBERS: &'static [Number] = numbers![MAX_READ_FORGOTTEN];

    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(self.since)
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Forgotten, StoreError> {
        if code != "OK" {
            return Err(reply.refusal(code));
        }
        let (generation, floor) = (reply.parsed()?, reply.parsed()?);
        let scopes = reply.list()?.rest(|it| Ok((Scope::from_text(&it.text()?), it.parsed()?)))?;
        Ok(Forgotten { generation, floor, scopes })
    }
}
