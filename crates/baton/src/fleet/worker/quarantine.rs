//! A suspect, a message that was lost with its process twice, is run alone: nothing else is begun until the store has its
//! outcome. Whatever else were begun meanwhile could kill the process in its stead, and a suspect that was done and not
//! yet reported would be lost with it once more, until it is dead for the faults of others. It holds up the rest for a
//! moment only, however long it takes.

use std::time::Duration;

use tokio::time::Instant;

use crate::message::{MessageId, Parcel, Run, Span};

/// For how long nothing else is begun at most, from its claim on.
const ALONE: Duration = Duration::from_millis(200);

/// See the module.
#[derive(Default)]
pub(super) struct Quarantine(Option<Suspect>);

struct Suspect {
    id: MessageId,
    since: Instant,
    /// Whether its outcome is in the report under way.
    is_reported: bool,
}

impl Quarantine {
    /// Messages came; a session has one suspect at a time.
    pub(super) fn came(&mut self, spans: &[(Span, Parcel)], since: Instant) {
        if let Some((span, _)) = spans.iter().find(|(span, _)| span.is_suspect()) {
            self.0 = Some(Suspect { id: MessageId(span.range.first), since, is_reported: false });
        }
    }

    /// Whether nothing but the suspect is to be begun.
    pub(super) const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// These outcomes are reported.
    pub(super) fn reports(&mut self, runs: &[Run]) {
        if let Some(suspect) = &mut self.0 {
            let has_it =
                |run: &Run| (run.range.first..run.range.first + u64::from(run.range.len)).contains(&suspect.id.0);
            suspect.is_reported |= runs.iter().any(has_it);
        }
    }

    /// The report was answered.
    pub(super) fn reported(&mut self) {
        self.0.take_if(|suspect| suspect.is_reported);
    }

    /// Ends when it has lasted long enough; when to look again.
    pub(super) fn look(&mut self, now: Instant) -> Option<Instant> {
        self.0.take_if(|suspect| suspect.since + ALONE <= now);
        self.0.as_ref().map(|suspect| suspect.since + ALONE)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::future::AbortHandle;

    use super::*;
    use crate::{
        fleet::worker::{
            buffer::Buffer,
            held::{Assignment, Completed},
        },
        message::{Body, Name, Outcome, Range},
    };

    fn spans() -> Vec<(Span, Parcel)> {
        let one = || Parcel::single(Body::new(b"1").unwrap());
        vec![(Span { crashes: 2, ..Span::fresh(3, 1, 99) }, one()), (Span::fresh(8, 1, 99), one())]
    }

    fn buffer(now: Instant) -> Buffer {
        let mut buffer = Buffer::new(Name::new("q").unwrap(), false);
        buffer.add(5, spans(), now);
        buffer
    }

    /// The message that the next slot gets, if it gets one.
    fn next(buffer: &mut Buffer, completed: &mut Completed) -> Option<u64> {
        let at = buffer.expect(AbortHandle::new_pair().0);
        buffer.came(at, completed);
        match buffer.assign(at, &Arc::default()) {
            Assignment::One(assigned) | Assignment::Handful { assigned, .. } => Some(assigned.id().0),
            _ => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_begun_beside_a_suspect_until_the_store_has_its_outcome() {
        let now = Instant::now();
        let mut buffer = buffer(now);
        assert_eq!(buffer.slots_due(), 1);
        let at = buffer.expect(AbortHandle::new_pair().0);
        buffer.came(at, &mut Completed::default());
        assert!(
            matches!(buffer.assign(at, &Arc::default()), Assignment::Handful { assigned, .. } if assigned.id().0 == 3)
        );
        assert_eq!((buffer.slots_due(), next(&mut buffer, &mut Completed::default())), (0, None));
        let (queue, range) = (Name::new("q").unwrap(), Range { first: 3, len: 1 });
        let done = Outcome::Done { result: None, follow_ups: Vec::new() };
        let mut completed =
            Completed { runs: vec![Run { claim_no: 5, queue, range, outcome: done }], ..Completed::default() };
        buffer.came(at, &mut completed);
        assert!(
            matches!(buffer.assign(at, &Arc::default()), Assignment::Nothing),
            "its outcome is not in the store yet"
        );
        assert_eq!(buffer.report(now, true).len(), 1);
        assert_eq!(buffer.slots_due(), 0);
        buffer.reported();
        assert_eq!(buffer.slots_due(), 1);
        assert_eq!(next(&mut buffer, &mut Completed::default()), Some(8));
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspect_that_takes_long_holds_up_others_for_a_moment_only() {
        let now = Instant::now();
        let mut buffer = buffer(now);
        assert_eq!(next(&mut buffer, &mut Completed::default()), Some(3));
        assert!(buffer.look(now, 4).is_some_and(|then| then <= now + ALONE));
        assert_eq!(buffer.slots_due(), 0);
        buffer.look(now + ALONE, 4);
        // What waited meanwhile went back, and what comes now is begun.
        buffer.add(6, vec![(Span::fresh(9, 1, 99), Parcel::single(Body::new(b"1").unwrap()))], now + ALONE);
        assert!(!buffer.is_quarantined());
    }
}
