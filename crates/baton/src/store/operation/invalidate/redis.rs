//! The arguments and the answer of `invalidate.lua`.

use super::{Invalidate, MAX_INVALIDATIONS, MAX_NOTIFIED_INVALIDATIONS};
use crate::{
    message::SessionId,
    store::{
        StoreError,
        redis::{Arguments, Coded, Number, Reply, numbers},
    },
};

impl Coded for Invalidate {
    const NUMBERS: &'static [Number] = numbers![MAX_INVALIDATIONS, MAX_NOTIFIED_INVALIDATIONS];

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
