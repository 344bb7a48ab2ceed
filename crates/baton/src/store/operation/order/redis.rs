//! The arguments and the answer of `order.lua`.

use crate::{
    message::SessionId,
    store::{
        Order, Stop, StoreError,
        redis::{Arguments, Coded, Reply},
    },
};

impl Coded for Order {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        let to = match self {
            Self::Pause(queue) => to.text("pause").text(queue),
            Self::Resume(queue) => to.text("resume").text(queue),
            Self::Stop(Stop::Graceful, _) => to.text("stop").text("drain"),
            Self::Stop(Stop::Now, _) => to.text("stop").text("now"),
        };
        let upto = if let Self::Stop(_, upto) = self { *upto } else { None };
        to.text(SessionId::random()).number_or_nothing(upto)
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<(), StoreError> {
        match code {
            "OK" => Ok(()),
            _ => Err(reply.refusal(code)),
        }
    }
}
