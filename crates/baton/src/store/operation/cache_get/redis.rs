//! The arguments and the answer of `cache_get.lua`.

use super::{CacheGet, CacheGetReply, MAX_AWAITING, MAX_COMPUTE_RIGHTS};
use crate::store::{
    StoreError,
    redis::{Arguments, Coded, Number, Reply, numbers},
};

impl Coded for CacheGet {
    const NUMBERS: &'static [Number] = numbers![MAX_AWAITING, MAX_COMPUTE_RIGHTS];

    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(self.session).text(&self.key).text(self.number).text(self.lasts_ms)
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<CacheGetReply, StoreError> {
        Ok(match code {
            "FOUND" => CacheGetReply::Found {
                value: reply.bytes()?,
                is_error: !reply.text()?.is_empty(),
                generation: reply.parsed()?,
                age_ms: reply.parsed()?,
                left_ms: reply.parsed()?,
            },
            "LEAD" => CacheGetReply::Lead { generation: reply.parsed()? },
            "WAIT" => CacheGetReply::Wait { generation: reply.parsed()? },
            "ALONE" => CacheGetReply::Alone { generation: reply.parsed()? },
            _ => return Err(reply.refusal(code)),
        })
    }
}
