//! The arguments and the answer of `follow.lua`.

use super::{EVENTS_AT_ONCE, FollowCall};
use crate::store::{
    EventPage, StoreError,
    redis::{Arguments, Coded, Number, Reply, numbers},
};

impl Coded for FollowCall {
    const NUMBERS: &'static [Number] = numbers![EVENTS_AT_ONCE];

    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(self.session).text(&self.call).text(self.from).text(self.number).text(self.max_bytes)
    }

    fn read(&self, code: &str, reply: Reply) -> Result<EventPage, StoreError> {
        read_page(code, reply)
    }
}

/// A page of events, from the rest of a reply.
pub(in super::super) fn read_page(code: &str, mut reply: Reply) -> Result<EventPage, StoreError> {
    if code != "OK" {
        return Err(reply.refusal(code));
    }
    let (from, next, ended) = (reply.parsed()?, reply.parsed()?, !reply.text()?.is_empty());
    Ok(EventPage { from, events: reply.list()?.rest(Reply::bytes)?, next, ended })
}
