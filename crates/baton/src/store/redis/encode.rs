//! Requests as the arguments of their scripts, in the order each script's head tells.

use std::collections::BTreeSet;

use redis::Cmd;

use super::{
    keys::Root,
    scripts::{Call, Script, Scripts},
};
use crate::{
    message::{Lot, Name, Outcome, Parcel, Run, SessionId},
    store::{Disposal, Join, Kind, Order, Place, Push, Request, Stop, Submit},
};

/// Longer parcels are staged in plain commands: what a script gets is copied and hashed byte by byte.
const INLINE: usize = 4096;
/// How long what is staged and not taken away lasts.
const STAGED_MS: u64 = 10_000;

/// The call of a request's script; nothing for a request that takes more than one call.
pub(super) fn call<'a>(scripts: &'a Scripts, root: &Root, request: &Request) -> Option<Call<'a>> {
    let (script, Arguments { command, staged, .. }) = arguments(scripts, root, request)?;
    Some(if staged.is_empty() { script.call(command) } else { script.call_with_staged(staged, command) })
}

/// The script of a request that stages nothing, and the command that runs it.
pub(super) fn command<'a>(scripts: &'a Scripts, root: &Root, request: &Request) -> Option<(&'a Script, Cmd)> {
    let (script, Arguments { command, .. }) = arguments(scripts, root, request)?;
    Some((script, command))
}

fn arguments<'a, 'r>(scripts: &'a Scripts, root: &'r Root, request: &Request) -> Option<(&'a Script, Arguments<'r>)> {
    let start =
        |script: &'a Script| (script, Arguments { root, command: script.command(root.as_str()), staged: Vec::new() });
    Some(match request {
        Request::Join(it) => with(start(&scripts.join), |to| join(to, it)),
        Request::Beat(it) => {
            with(start(&scripts.beat), |to| it.asks.iter().fold(to.text(it.session).bytes(&it.report), Arguments::text))
        }
        Request::Leave(it) => with(start(&scripts.leave), |to| to.text(it.session)),
        Request::Reap(it) => with(start(&scripts.reap), |to| to.text(it.session).text(it.target)),
        Request::Take(it) => with(start(&scripts.take), |to| to.text(it.session).text(&it.source)),
        Request::Resign(it) => with(start(&scripts.resign), |to| to.text(it.session).text(&it.source).text(it.epoch)),
        Request::Rewind(it) => with(start(&scripts.rewind), |to| to.text(&it.source)),
        Request::Remove(it) => with(start(&scripts.remove), |to| to.text(&it.source)),
        Request::Push(it) => with(start(&scripts.push), |to| push(to, it)),
        Request::Submit(it) => with(start(&scripts.submit), |to| submit(to, it)),
        Request::Claim(it) => with(start(&scripts.claim), |to| {
            to.text(it.session).text(&it.queue).text(it.claim_no).text(it.n).text(it.max_bytes)
        }),
        Request::Pass(it) => with(start(&scripts.pass), |to| to.text(it.session).text(&it.queue)),
        Request::Look(it) => with(start(&scripts.look), |to| to.text(it.session)),
        Request::Settle(it) => {
            with(start(&scripts.settle), |to| it.runs.iter().fold(to.text(it.session).text(it.settle_no), run))
        }
        Request::DrainBegin(it) => with(start(&scripts.drain_begin), |to| to.text(it.session).text(&it.queue)),
        Request::Peek(it) => with(start(&scripts.peek), |to| {
            to.text(&it.queue).text(it.after).text(it.upto).text(it.limit).text(it.max_bytes)
        }),
        Request::Dispose(it) => with(start(&scripts.dispose), |to| {
            let disposal = if it.disposal == Disposal::Drain { "d" } else { "q" };
            let ids = join_texts(it.ids.iter(), ",");
            to.text(it.session).text(it.dispose_no).text(&it.queue).text(disposal).text(ids)
        }),
        Request::Order(it) => with(start(&scripts.order), |to| order(to, it)),
        Request::Survey(_) => with(start(&scripts.survey), |to| to),
        Request::Result(it) => with(start(&scripts.result), |to| to.text(&it.queue).text(it.id)),
        Request::Bookmark(it) => with(start(&scripts.bookmark), |to| to.text(it.key.as_str())),
        Request::Recount(_) | Request::Purge(_) => return None,
    })
}

fn with<'a, 'r>(
    (script, arguments): (&'a Script, Arguments<'r>), fill: impl FnOnce(Arguments<'r>) -> Arguments<'r>,
) -> (&'a Script, Arguments<'r>) {
    (script, fill(arguments))
}

/// A call that is being filled.
struct Arguments<'r> {
    root: &'r Root,
    command: Cmd,
    /// What goes before it in the same transaction.
    staged: Vec<Cmd>,
}

impl Arguments<'_> {
    fn text(mut self, value: impl ToString) -> Self {
        self.command.arg(value.to_string());
        self
    }

    fn bytes(mut self, value: &[u8]) -> Self {
        self.command.arg(value);
        self
    }

    /// A parcel: its bytes, or the place where they are staged.
    fn parcel(mut self, session: SessionId, parcel: &Parcel) -> Self {
        if parcel.bytes().len() <= INLINE {
            return self.bytes(parcel.bytes());
        }
        let place = self.staged.len();
        let mut stage = redis::cmd("SET");
        stage.arg(self.root.staged(session, place)).arg(&parcel.bytes()[..]).arg("PX").arg(STAGED_MS);
        self.staged.push(stage);
        self.text(place)
    }

    /// The head of a lot takes four: queue, messages, key, digest. Its parcel is the fifth.
    fn lot(self, lot: &Lot) -> Self {
        let to = self.text(&lot.queue).text(lot.parcel.len());
        match &lot.key {
            Some(key) => to.text(key.key.as_str()).text(key.digest),
            None => to.text("").text(""),
        }
    }
}

fn join<'r>(to: Arguments<'r>, it: &Join) -> Arguments<'r> {
    let kind = if it.kind == Kind::Node { "n" } else { "c" };
    let offers = it.offers.iter().map(|offer| format!("{},{},{}", offer.source, offer.queue, offer.definition));
    let adopting = it.offers.iter().filter(|offer| offer.adopts).map(|offer| &offer.source);
    to.text(it.session)
        .text(kind)
        .text(&it.host)
        .text(it.pid)
        .text(join_texts(it.queues.iter().collect::<BTreeSet<_>>().into_iter(), ","))
        .text(it.lease_ms)
        .text(join_texts(offers, ";"))
        .text(SessionId::random())
        .text(number_or_nothing(it.former))
        .text(join_texts(adopting, ","))
}

fn number_or_nothing(number: Option<u64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

fn push<'r>(to: Arguments<'r>, it: &Push) -> Arguments<'r> {
    let to = to
        .text(it.session)
        .text(&it.source)
        .text(it.epoch)
        .text(it.batch_no)
        .text(&it.from)
        .text(&it.to)
        .text(u8::from(it.end))
        .text(it.max_backlog);
    it.parcels.iter().fold(to, |to, parcel| to.text(parcel.len()).parcel(it.session, parcel))
}

fn submit<'r>(to: Arguments<'r>, it: &Submit) -> Arguments<'r> {
    let to = to.text(it.session).text(it.submit_no).text(it.max_backlog).text(it.max_keys);
    let to = match &it.bookmark {
        None => to.text("").text("").text("").text(""),
        Some(mark) => {
            let mut by_queue: std::collections::BTreeMap<&Name, u64> = std::collections::BTreeMap::new();
            for lot in &it.lots {
                *by_queue.entry(&lot.queue).or_default() += lot.parcel.bytes().len() as u64;
            }
            let by_queue = by_queue.iter().map(|(queue, bytes)| format!("{queue},{bytes}"));
            to.text(mark.key.as_str()).text(place(&mark.from)).text(place(&mark.to)).text(join_texts(by_queue, ";"))
        }
    };
    it.lots.iter().fold(to, |to, lot| to.lot(lot).parcel(it.session, &lot.parcel))
}

fn place(place: &Place) -> String {
    format!("{},{}", place.lines, place.digest)
}

fn run<'r>(to: Arguments<'r>, run: &Run) -> Arguments<'r> {
    let to = to.text(run.claim_no).text(&run.queue).text(run.range.first).text(run.range.len);
    match &run.outcome {
        Outcome::Done { result: None, follow_ups } if follow_ups.is_empty() => to.text("D"),
        Outcome::Done { result, follow_ups } => {
            let to = to.text("d").text(u8::from(result.is_some())).bytes(result.as_deref().unwrap_or_default());
            follow_ups.iter().fold(to.text(follow_ups.len()), |to, lot| to.lot(lot).bytes(lot.parcel.bytes()))
        }
        Outcome::Retry { after_ms } => to.text("r").text(after_ms),
        Outcome::Dead { error } => to.text("x").text(error),
        Outcome::Back => to.text("b"),
    }
}

fn order<'r>(to: Arguments<'r>, it: &Order) -> Arguments<'r> {
    let to = match it {
        Order::Pause(queue) => to.text("pause").text(queue),
        Order::Resume(queue) => to.text("resume").text(queue),
        Order::Stop(Stop::Drain, _) => to.text("stop").text("drain"),
        Order::Stop(Stop::Now, _) => to.text("stop").text("now"),
    };
    let upto = if let Order::Stop(_, upto) = it { *upto } else { None };
    to.text(SessionId::random()).text(number_or_nothing(upto))
}

fn join_texts<T: ToString>(values: impl Iterator<Item = T>, separator: &str) -> String {
    values.map(|value| value.to_string()).collect::<Vec<_>>().join(separator)
}
