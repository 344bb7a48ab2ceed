//! The arguments and the answer of `purge.lua`.

use super::{MOST_PURGED, Purged, kept};
use crate::store::{
    Purge, StoreError,
    redis::{Arguments, Coded, Number, Reply, numbers},
};

impl Coded for Purge {
    const NUMBERS: &'static [Number] = numbers![MOST_PURGED];

    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        let to = to.text(self.session).text(self.dispose_no).text(&self.queue).number_or_nothing(self.upto);
        to.text(u8::from(self.failed))
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Purged, StoreError> {
        match code {
            "OK" => kept::read(&reply.text()?),
            _ => Err(reply.refusal(code)),
        }
    }
}
