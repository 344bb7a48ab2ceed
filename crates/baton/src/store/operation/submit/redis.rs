//! The arguments and the answer of `submit.lua`, and of `submit_one.lua` where that will do.

use std::collections::BTreeMap;

use super::{EXPIRED_A_KEY, MAX_INBOX, SUBMIT_PAGE, kept};
use crate::{
    message::{Name, Submission},
    store::{
        SUBMIT_WINDOW, StoreError, Submit, Submitted,
        redis::{Arguments, CARRIED, Coded, Number, Reply, Script, Scripts, numbers},
        wire,
    },
};

impl Coded for Submit {
    const NUMBERS: &'static [Number] = numbers![SUBMIT_WINDOW, SUBMIT_PAGE, EXPIRED_A_KEY, MAX_INBOX];

    fn other_way<'s>(&self, scripts: &'s Scripts) -> Option<&'s Script> {
        self.short_one().map(|_| &scripts.submit_one)
    }

    fn key<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        match self.short_one() {
            Some(Submission { queue, .. }) => to.way(self.session, self.page(), queue, self.max_queue_bytes),
            None => to.root(),
        }
    }

    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        if let Some(submission) = self.short_one() {
            // The length of a page with this submit, behind the element that is always there.
            return to.number(self.submit_no - self.page() * SUBMIT_PAGE + 1).single(&submission.parcel);
        }
        let to = to.text(self.session).text(self.submit_no).text(self.max_queue_bytes).text(self.max_keys);
        let to = match &self.bookmark {
            None => to.text("").text("").text("").text(""),
            Some(mark) => {
                let mut by_queue: BTreeMap<&Name, u64> = BTreeMap::new();
                for submission in &self.submissions {
                    *by_queue.entry(&submission.queue).or_default() += submission.parcel.bytes().len() as u64;
                }
                let by_queue = by_queue.iter().map(|(queue, bytes)| format!("{queue},{bytes}"));
                to.text(mark.key.as_str())
                    .text(wire::place(&mark.from))
                    .text(wire::place(&mark.to))
                    .joined(by_queue, ";")
            }
        };
        self.submissions
            .iter()
            .fold(to, |to, submission| to.submission(submission).parcel(self.session, &submission.parcel))
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Submitted, StoreError> {
        match code {
            verdict if verdict.starts_with(|kind: char| kind.is_ascii_lowercase()) => {
                Ok(Submitted { submissions: kept::parse_verdicts(verdict)? })
            }
            "OK" => Ok(Submitted { submissions: kept::parse_verdicts(&reply.text()?)? }),
            code => Err(reply.refusal(code)),
        }
    }
}

impl Submit {
    /// The page of the session's submits that its number is on.
    const fn page(&self) -> u64 {
        self.submit_no.saturating_sub(1) / SUBMIT_PAGE
    }

    /// The one submission of a submit that is one short message without key and bookmark.
    fn short_one(&self) -> Option<&Submission> {
        match (&self.bookmark, self.submissions.as_slice()) {
            (None, [submission]) => {
                let is_short = submission.parcel.len() == 1 && submission.parcel.bytes().len() <= CARRIED;
                (is_short && submission.key.is_none() && submission.call.is_none()).then_some(submission)
            }
            _ => None,
        }
    }
}
