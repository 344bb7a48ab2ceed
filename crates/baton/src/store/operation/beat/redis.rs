//! The arguments and the answer of `beat.lua`.

use crate::{
    message::{CallId, Name},
    store::{
        Beat, Beaten, MAX_REPORTED_CANCELLED, MAX_REPORTED_CLAIMS, MAX_REPORTED_EXPIRED, PATIENCE_MS, Stop, StoreError,
        redis::{Arguments, Coded, Number, Reply, numbers, parsed},
    },
};

impl Coded for Beat {
    const NUMBERS: &'static [Number] =
        numbers![MAX_REPORTED_CANCELLED, MAX_REPORTED_CLAIMS, MAX_REPORTED_EXPIRED, PATIENCE_MS];

    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        self.asks.iter().fold(to.text(self.session).bytes(&self.report), Arguments::text)
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Beaten, StoreError> {
        match code {
            "OK" => beaten(reply),
            _ => Err(reply.refusal(code)),
        }
    }
}

fn beaten(mut it: Reply) -> Result<Beaten, StoreError> {
    let now_ms = it.parsed()?;
    let stop = match it.text()?.as_str() {
        "drain" => Some(Stop::Graceful),
        "now" => Some(Stop::Now),
        _ => None,
    };
    let mut claims: Vec<(Name, u64)> = it.list()?.rest(|it| claim_place(&it.text()?))?;
    claims.sort_unstable();
    let expired = it.list()?.rest(Reply::parsed)?;
    let mut due: Vec<Name> = it.list()?.rest(Reply::parsed)?;
    due.sort_unstable();
    let mut held: Vec<(Name, u64)> = it.list()?.rest(|it| Ok((it.parsed()?, it.parsed()?)))?;
    held.sort_unstable();
    let helped = it.list()?.rest(Reply::parsed)?;
    let mut cancelled: Vec<CallId> = it.list()?.rest(Reply::parsed)?;
    cancelled.sort_unstable();
    let mut forsaken: Vec<CallId> = it.list()?.rest(Reply::parsed)?;
    forsaken.sort_unstable();
    let generation = it.parsed()?;
    Ok(Beaten { now_ms, due, held, expired, claims, helped, stop, cancelled, forsaken, generation })
}

/// A claim as `number queue`.
fn claim_place(text: &str) -> Result<(Name, u64), StoreError> {
    let (claim_no, queue) = text.split_once(' ').unwrap_or_default();
    Ok((parsed(queue)?, parsed(claim_no)?))
}
