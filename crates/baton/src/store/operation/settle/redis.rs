//! The arguments and the answer of `settle.lua`.

use super::{A_RESULT, kept};
use crate::{
    message::{Outcome, Run},
    store::{
        Facts as _, RESULT_TTL_MS, Settle, Settled, StoreError,
        redis::{Arguments, Coded, Number, Reply, Script, Scripts, numbers},
    },
};

impl Coded for Settle {
    const NUMBERS: &'static [Number] = numbers![RESULT_TTL_MS, A_RESULT];

    /// What brings something new is refused at maxmemory, as pushes are.
    fn other_way<'s>(&self, scripts: &'s Scripts) -> Option<&'s Script> {
        self.new_bodies().map(|_| &scripts.settle_bringing)
    }

    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        let to = to
            .text(self.session)
            .text(self.settle_no)
            .number_or_nothing(self.settle_no.checked_sub(1))
            .number(self.max_results);
        self.runs.iter().fold(to, |to, it| run(to, self, it))
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Settled, StoreError> {
        match code {
            "OK" if reply.is_done() => Ok(Settled { refused: Vec::new() }),
            "OK" => Ok(Settled { refused: kept::parse_refused(&reply.text()?)? }),
            _ => Err(reply.refusal(code)),
        }
    }
}

fn run<'r>(to: Arguments<'r>, of: &Settle, run: &Run) -> Arguments<'r> {
    let to = to.text(run.claim_no).text(&run.queue).text(run.range.first).text(run.range.len);
    match &run.outcome {
        Outcome::Done { result: None, follow_ups } if follow_ups.is_empty() => to.text("D"),
        Outcome::Done { result, follow_ups } => {
            let to =
                to.text("d").text(if result.is_some() { "1" } else { "" }).bytes(result.as_deref().unwrap_or_default());
            follow_ups.iter().fold(to.text(follow_ups.len()), |to, submission| {
                to.submission(submission).parcel(of.session, &submission.parcel)
            })
        }
        Outcome::Retry { after_ms, error } => to.text("r").text(after_ms).text(error),
        Outcome::Failed { error } => to.text("x").text(error),
        Outcome::Back => to.text("b"),
    }
}
