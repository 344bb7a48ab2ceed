//! Single messages that wait for the same queue travel as one parcel.
//!
//! The order within a queue is kept: a submission that cannot be merged closes the parcel before it.

use std::collections::BTreeMap;

use crate::{
    message::{Body, MAX_BODY_BYTES, Name, ParcelBuilder, Submission},
    store::SubmissionVerdict,
};

/// The same submissions with the single messages of each queue in as few parcels as hold them.
pub(crate) fn packed(submissions: Vec<Submission>) -> Vec<Submission> {
    Packing::of(submissions).0
}

/// Submissions as they are sent, and where each submission handed in went.
#[derive(Default)]
pub(super) struct Packing {
    submissions: Vec<Submission>,
    open: BTreeMap<Name, Open>,
    /// For each submission handed in: the submission that carries it and its place there.
    places: Vec<(usize, u32)>,
}

/// A parcel being filled for one queue.
#[derive(Default)]
struct Open {
    builder: ParcelBuilder,
    members: Vec<usize>,
}

impl Packing {
    /// Packs submissions; `verdicts` are then read back with [`Packed::verdict`].
    pub(super) fn of(submissions: Vec<Submission>) -> (Vec<Submission>, Packed) {
        let mut packing = Self::default();
        for submission in submissions {
            packing.add(submission);
        }
        packing.finish()
    }

    /// Adds a submission behind those of its queue. One that cannot be merged travels as it is, so this never fails.
    fn add(&mut self, submission: Submission) {
        let member = self.places.len();
        self.places.push((0, 0));
        let single = (submission.parcel.len() == 1 && submission.key.is_none() && submission.call.is_none())
            .then(|| submission.parcel.body(0))
            .flatten();
        // One for which a larger limit was set travels alone.
        if !single.is_some_and(|body| body.len() <= MAX_BODY_BYTES && self.merge(&submission.queue, member, &body)) {
            self.close(&submission.queue);
            self.place(member, 0);
            self.submissions.push(submission);
        }
    }

    /// Puts a single message into the open parcel of its queue; false if none takes it.
    fn merge(&mut self, queue: &Name, member: usize, body: &[u8]) -> bool {
        if !self.open.get(queue).is_none_or(|open| open.builder.has_room(body.len())) {
            self.close(queue);
        }
        let open = self.open.entry(queue.clone()).or_default();
        let fits = open.builder.add(Body::taken_before(body)).is_ok();
        if fits {
            open.members.push(member);
        }
        fits
    }

    /// A submission that goes by itself goes as it is.
    pub(super) const fn one(submission: Vec<Submission>) -> (Vec<Submission>, Packed) {
        (submission, Packed { places: None })
    }

    fn finish(mut self) -> (Vec<Submission>, Packed) {
        for queue in self.open.keys().cloned().collect::<Vec<_>>() {
            self.close(&queue);
        }
        (self.submissions, Packed { places: Some(self.places) })
    }

    fn close(&mut self, queue: &Name) {
        let Some(mut open) = self.open.remove(queue) else { return };
        let Some(parcel) = open.builder.finish() else { return };
        for (offset, member) in (0..).zip(open.members) {
            self.place(member, offset);
        }
        self.submissions.push(Submission { queue: queue.clone(), parcel, key: None, call: None });
    }

    fn place(&mut self, member: usize, offset: u32) {
        if let Some(place) = self.places.get_mut(member) {
            *place = (self.submissions.len(), offset);
        }
    }
}

/// Where the submissions handed in went.
pub(super) struct Packed {
    /// Nothing if each went as it was.
    places: Option<Vec<(usize, u32)>>,
}

impl Packed {
    /// The verdict on the submission that was added as number `member`.
    pub(super) fn verdict(&self, member: usize, verdicts: &[SubmissionVerdict]) -> Option<SubmissionVerdict> {
        let (submission, offset) = match &self.places {
            Some(places) => *places.get(member)?,
            None => (member, 0),
        };
        Some(match verdicts.get(submission)? {
            SubmissionVerdict::Stored { first } => SubmissionVerdict::Stored { first: first + u64::from(offset) },
            verdict => *verdict,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submission(queue: &str, bodies: &[&str]) -> Submission {
        let mut builder = ParcelBuilder::default();
        for body in bodies {
            builder.add(Body::new(body.as_bytes()).unwrap()).unwrap();
        }
        Submission { queue: Name::new(queue).unwrap(), parcel: builder.finish().unwrap(), key: None, call: None }
    }

    #[test]
    fn singles_merge_and_order_within_a_queue_stays() {
        let handed_in = [
            submission("a", &["1"]),
            submission("b", &["2"]),
            submission("a", &["3"]),
            submission("a", &["4", "5"]),
            submission("a", &["6"]),
        ];
        let (submissions, packed) = Packing::of(handed_in.into());
        let of_a = submissions
            .iter()
            .filter(|submission| submission.queue.as_str() == "a")
            .flat_map(|submission| submission.parcel.bodies().collect::<Vec<_>>());
        assert_eq!(of_a.collect::<Vec<_>>(), ["1", "3", "4", "5", "6"]);
        assert_eq!(submissions.len(), 4);
        let verdicts: Vec<_> = (0..4).map(|submission| SubmissionVerdict::Stored { first: submission * 100 }).collect();
        let index = |queue: &str, body: &str| {
            let has = |submission: &Submission| {
                submission.queue.as_str() == queue && submission.parcel.bodies().any(|it| it == body)
            };
            submissions.iter().position(has).unwrap() as u64 * 100
        };
        assert_eq!(packed.verdict(2, &verdicts), Some(SubmissionVerdict::Stored { first: index("a", "3") + 1 }));
        assert_eq!(packed.verdict(4, &verdicts), Some(SubmissionVerdict::Stored { first: index("a", "6") }));
        assert_eq!(packed.verdict(5, &verdicts), None);
    }
}
