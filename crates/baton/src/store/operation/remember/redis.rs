//! The arguments and the answer of `remember.lua`.

use super::{A_RECALLED, Computed, Remember, Remembered};
use crate::store::{
    StoreError,
    redis::{Arguments, Coded, Number, Reply, numbers},
};

impl Coded for Remember {
    const NUMBERS: &'static [Number] = numbers![A_RECALLED];

    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        let (kind, value) = match &self.outcome {
            Computed::Value(value) => ("v", &value[..]),
            Computed::Error(error) => ("e", error.as_bytes()),
            Computed::Pass => ("p", &b""[..]),
        };
        let to = to.text(self.session).text(&self.key).text(self.number).text(kind);
        to.text(self.ttl_ms).text(self.max_bytes).bytes(value)
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Remembered, StoreError> {
        Ok(match code {
            "KEPT" => Remembered::Kept { generation: reply.parsed()? },
            "PASSED" => Remembered::Passed,
            "DROPPED" => Remembered::Dropped,
            _ => return Err(reply.refusal(code)),
        })
    }
}
