//! The arguments and the answer of `cache_put.lua`.

use super::{A_CACHED, CachePut, CachePutReply, Computed};
use crate::store::{
    StoreError,
    redis::{Arguments, Coded, Number, Reply, numbers},
};

impl Coded for CachePut {
    const NUMBERS: &'static [Number] = numbers![A_CACHED];

    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        let (kind, value) = match &self.outcome {
            Computed::Value(value) => ("v", &value[..]),
            Computed::Error(error) => ("e", error.as_bytes()),
            Computed::Pass => ("p", &b""[..]),
        };
        let to = to.text(self.session).text(&self.key).text(self.number).text(kind);
        to.text(self.ttl_ms).text(self.max_bytes).bytes(value)
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<CachePutReply, StoreError> {
        Ok(match code {
            "KEPT" => CachePutReply::Kept { generation: reply.parsed()? },
            "PASSED" => CachePutReply::Passed,
            "DROPPED" => CachePutReply::Dropped,
            _ => return Err(reply.refusal(code)),
        })
    }
}
