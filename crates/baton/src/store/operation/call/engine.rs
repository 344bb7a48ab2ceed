//! The state of a call follows from how many of its messages are open, held and delayed.

use super::{CallState, CallView, ReadCall};
use crate::store::engine::{CallRecord, Effect, Moved, Tables, calls};

impl Effect for ReadCall {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<Option<CallView>> {
        let Some((_, record)) = calls::named(tables, &self.call)? else { return Ok(None) };
        let outcome = record.outcome.clone().filter(|_| record.end.is_some());
        let CallRecord { born, first, next, .. } = record;
        Ok(Some(CallView { state: state(&record), born, outcome, first, next }))
    }
}

fn state(record: &CallRecord) -> CallState {
    match record.end {
        Some(end) => end,
        None if record.is_marked => CallState::Cancelling,
        None if record.running > 0 => CallState::InFlight,
        None if record.delayed == record.open => CallState::Delayed,
        None => CallState::Ready,
    }
}
