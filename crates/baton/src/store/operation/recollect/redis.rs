//! The arguments and the answer of `recollect.lua`.

use super::{MAX_AWAITING, MAX_COMPUTE_RIGHTS, Recollect, Recollected};
use crate::store::{
    StoreError,
    redis::{Arguments, Coded, Number, Reply, numbers},
};

impl Coded for Recollect {
    const NUMBERS: &'static [Number] = numbers![MAX_AWAITING, MAX_COMPUTE_RIGHTS];

    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(self.session).text(&self.key).text(self.number).text(self.lasts_ms)
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Recollected, StoreError> {
        Ok(match code {
            "FOUND" => Recollected::Found {
                value: reply.bytes()?,
                is_error: !reply.text()?.is_empty(),
                generation: reply.parsed()?,
                age_ms: reply.parsed()?,
                left_ms: reply.parsed()?,
            },
            "LEAD" => Recollected::Lead { generation: reply.parsed()? },
            "WAIT" => Recollected::Wait { generation: reply.parsed()? },
            "ALONE" => Recollected::Alone { generation: reply.parsed()? },
            _ => return Err(reply.refusal(code)),
        })
    }
}
