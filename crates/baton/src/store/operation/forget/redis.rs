//! The arguments and the answer of `forget.lua`.

use super::{Forget, MAX_FORGOTTEN, MAX_TOLD_FORGOTTEN};
use crate::{
    message::SessionId,
    store::{
        StoreError,
        redis::{Arguments, Coded, Number, Reply, numbers},
    },
};

impl Coded for Forget {
    const NUMBERS: &'static [Number] = numbers![MAX_FORGOTTEN, MAX_TOLD_FORGOTTEN];

    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(self.scope.as_str()).text(self.lives_ms).text(SessionId::random())
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<u64, StoreError> {
        match code {
            "OK" => reply.parsed(),
            _ => Err(reply.refusal(code)),
        }
    }
}
