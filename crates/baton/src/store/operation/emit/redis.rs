//! The arguments and the answer of `emit.lua`.

use super::{AN_EVENT, Emit, Emitted, MAX_EMIT_KEYS};
use crate::{
    message::Key,
    store::{
        StoreError,
        redis::{Arguments, Coded, Number, Reply, numbers},
    },
};

impl Coded for Emit {
    const NUMBERS: &'static [Number] = numbers![AN_EVENT, MAX_EMIT_KEYS];

    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        let to = to.text(self.session).text(self.claim_no).text(&self.queue).text(self.id).text(self.number);
        let to = to.text(self.max_log).text(if self.force { "1" } else { "" });
        self.events.iter().fold(to, |to, event| to.text(event.key.as_ref().map_or("", Key::as_str)).bytes(&event.bytes))
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Emitted, StoreError> {
        match code {
            "OK" => Ok(Emitted::Kept),
            "FULL" => Ok(Emitted::Full),
            _ => Err(reply.refusal(code)),
        }
    }
}
