//! The state of a call follows from how many of its messages are open, held and delayed.

use super::{CallState, CallView, ReadCall};
use crate::store::engine::{CallRecord, Effect, Moved, Tables};

impl Effect for ReadCall {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<Option<CallView>> {
        let Some(record) = tables.call(&self.call)? else { return Ok(None) };
        let outcome = record.outcome.clone().filter(|_| record.end.is_some());
        Ok(Some(CallView { state: state(&record), outcome, first: record.first, next: record.next }))
    }
}

fn state(record: &CallRecord) -> CallState {
    match record.end {
        Some(end) => end,
        None if record.is_marked => CallState::Cancelling,
        None if record.running > 0 => CallState::Running,
        None if record.delayed == record.open => CallState::Delayed,
        None => CallState::Waiting,
    }
}
