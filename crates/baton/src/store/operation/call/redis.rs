//! The arguments and the answer of `call.lua`.

use super::{A_CALL, CALL_TTL_MS, CallState, CallView, ReadCall};
use crate::store::{
    StoreError,
    redis::{Arguments, Coded, Number, Reply, numbers},
};

impl Coded for ReadCall {
    const NUMBERS: &'static [Number] = numbers![CALL_TTL_MS, A_CALL];

    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(&self.call)
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Option<CallView>, StoreError> {
        match code {
            "OK" => {
                let state = match reply.text()?.as_str() {
                    "waiting" => CallState::Ready,
                    "delayed" => CallState::Delayed,
                    "running" => CallState::InFlight,
                    "cancelling" => CallState::Cancelling,
                    "done" => CallState::Done,
                    "dead" => CallState::Failed,
                    "cancelled" => CallState::Cancelled,
                    other => return Err(StoreError::Damaged(format!("a call is {other:?}"))),
                };
                let (born, first, next) = (reply.parsed()?, reply.parsed()?, reply.parsed()?);
                let outcome = if reply.is_done() { None } else { Some(reply.bytes()?) };
                Ok(Some(CallView { state, born, outcome, first, next }))
            }
            "NONE" => Ok(None),
            _ => Err(reply.refusal(code)),
        }
    }
}
