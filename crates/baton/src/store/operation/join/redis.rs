//! The arguments and the answer of `join.lua`.

use std::collections::BTreeSet;

use crate::{
    message::SessionId,
    store::{
        Join, Joined, Kind, StoreError,
        redis::{Arguments, Coded, Reply},
    },
};

impl Coded for Join {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        let kind = if self.kind == Kind::Node { "n" } else { "c" };
        let offers = self.offers.iter().map(|offer| format!("{},{},{}", offer.source, offer.queue, offer.definition));
        let adopting = self.offers.iter().filter(|offer| offer.adopts).map(|offer| &offer.source);
        to.text(self.session)
            .text(kind)
            .text(&self.host)
            .text(self.pid)
            .joined(self.queues.iter().collect::<BTreeSet<_>>().into_iter(), ",")
            .text(self.lease_ms)
            .joined(offers, ";")
            .text(SessionId::random())
            .number_or_nothing(self.former)
            .joined(adopting, ",")
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Joined, StoreError> {
        match code {
            "OK" => Ok(Joined { incarnation: reply.text()?, now_ms: reply.parsed()?, join_no: reply.parsed()? }),
            _ => Err(reply.refusal(code)),
        }
    }
}
