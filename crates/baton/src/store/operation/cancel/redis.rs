//! The arguments and the answer of `cancel.lua`.

use super::{CancelCall, Cancelling, DELAYED_AT_ONCE};
use crate::store::{
    StoreError,
    redis::{Arguments, Coded, Number, Reply, numbers},
};

impl Coded for CancelCall {
    const NUMBERS: &'static [Number] = numbers![DELAYED_AT_ONCE];

    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(&self.call).text(if self.if_forsaken { "1" } else { "" })
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Cancelling, StoreError> {
        Ok(match code {
            "MARKED" => Cancelling::Marked,
            "LEFT" => Cancelling::More,
            "ENDED" => Cancelling::Ended,
            "FOLLOWED" => Cancelling::Followed,
            "UNKNOWN" => Cancelling::Unknown,
            _ => return Err(reply.refusal(code)),
        })
    }
}
