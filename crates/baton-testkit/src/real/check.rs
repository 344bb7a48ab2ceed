//! When all is finished: the store, the journals and the drawn fleet must tell one story.
//!
//! Bodies and outcomes follow from the seed. So how far the sources came and which messages died tells exactly which
//! messages there must have been, and which of them had to die.

use std::collections::{BTreeMap, BTreeSet};

use baton::{
    Fleet, MessageId, Name,
    store::{ErrorRecord, Peek, ReadResult, Recount, StoreError, TakeSurvey, ask},
};

use super::journal::Account;
use crate::{
    sim::{
        body::Body,
        topology::{QueuePlan, Topology},
        work::Work,
    },
    soak::findings::Findings,
};

/// Checks everything; how many messages there were, and how many of them are dead.
pub(super) async fn check(
    topology: &Topology, fleet: &Fleet, account: &Account, disturbed: &BTreeSet<usize>, findings: &Findings,
) -> (u64, u64) {
    for stray in &account.strays {
        findings.note(format!("no handler sees another queue's message: {stray}"));
    }
    begun_once(account, disturbed, findings);
    let compared = compare(topology, fleet, account, findings).await;
    findings.demand(compared.is_ok(), || format!("the store cannot be read: {compared:?}"));
    compared.unwrap_or_default()
}

/// An attempt is begun again only if a node that began it was killed, held, or lost its session.
fn begun_once(account: &Account, disturbed: &BTreeSet<usize>, findings: &Findings) {
    for ((queue, id, attempt), nodes) in &account.begun {
        let undisturbed = nodes.iter().filter(|node| !disturbed.contains(node) && !account.over.contains(node)).count();
        findings.demand(undisturbed <= 1, || {
            format!("nothing is done twice: attempt {attempt} of q{queue}/{id} was begun by nodes {nodes:?}")
        });
    }
    for ((queue, id), uniques) in &account.uniques {
        findings.demand(uniques.len() == 1, || format!("a message has one body: q{queue}/{id} has {uniques:?}"));
    }
}

async fn compare(
    topology: &Topology, fleet: &Fleet, account: &Account, findings: &Findings,
) -> Result<(u64, u64), StoreError> {
    let store = &**fleet.store();
    let survey = ask(store, TakeSurvey).await?;
    let mut dead = BTreeMap::new();
    for queue in 0..topology.queues.len() {
        dead.extend(errors(fleet, queue).await?.into_iter().map(|error| ((queue, error.id.0), error)));
    }
    let mut reached = vec![0; topology.sources.len()];
    for source in &survey.sources {
        if let Some(nth) = topology.sources.iter().position(|plan| plan.name == source.name.as_str()) {
            reached[nth] = source.cursor.parse().unwrap_or(0);
        }
    }
    let dead_bodies: BTreeMap<Vec<u8>, &ErrorRecord> = dead.values().map(|it| (it.body.to_vec(), it)).collect();
    let expected = expected(topology, &reached, |body| dead_bodies.contains_key(body));
    for recount in &ask(store, Recount { max_hold_ms: 10_000 }).await?.queues {
        findings.demand(recount.balance(), || format!("the deep audit balances: {recount:?}"));
        let books = &recount.books;
        let Some(queue) = topology.queues.iter().position(|plan| plan.name == books.queue.as_str()) else { continue };
        let (there, died) = (expected[queue].len() as u64, dead.keys().filter(|(of, _)| *of == queue).count() as u64);
        findings.demand((books.pushed, books.done, books.failed) == (there, there - died.min(there), died), || {
            format!("nothing is lost or done twice: {there} messages with {died} errors must be in {books:?}")
        });
    }
    let mut seen = vec![BTreeSet::new(); topology.queues.len()];
    for ((queue, id), uniques) in &account.uniques {
        for unique in uniques {
            findings
                .demand(seen[*queue].insert(*unique), || format!("a message is pushed once: q{queue}/{id} was twice"));
        }
    }
    for (queue, plan) in topology.queues.iter().enumerate() {
        for body in &expected[queue] {
            outcome(topology.seed, plan, body, &dead_bodies, findings);
            let ran = seen[queue].contains(&body.unique) || dead_bodies.contains_key(&body.bytes());
            findings.demand(ran, || format!("a message that is done has run: {body:?}"));
        }
        let known: BTreeSet<u64> = expected[queue].iter().map(|body| body.unique).collect();
        let strange: Vec<_> = seen[queue].difference(&known).collect();
        findings.demand(strange.is_empty(), || format!("only what was pushed runs: q{queue} ran {strange:?}"));
        let done = |id: &u64| !dead.contains_key(&(queue, *id));
        let ran = account.ended.iter().filter(|(of, ..)| *of == queue).map(|(_, id, _)| *id);
        results(fleet, queue, plan, ran.filter(done), findings).await?;
    }
    Ok((expected.iter().map(|of| of.len() as u64).sum(), dead.len() as u64))
}

/// The messages there must have been, by queue.
fn expected(topology: &Topology, reached: &[u64], died: impl Fn(&[u8]) -> bool) -> Vec<Vec<Body>> {
    let seed = topology.seed;
    let pushed = (0..topology.pushes.len()).flat_map(|moment| Body::pushed_at(topology, moment));
    let generated = topology.sources.iter().enumerate().flat_map(|(source, plan)| {
        (1..=reached[source]).map(move |position| Body::generated(seed, source, plan, position))
    });
    let mut left: Vec<Body> = pushed.chain(generated).collect();
    let mut expected = vec![Vec::new(); topology.queues.len()];
    while let Some(body) = left.pop() {
        if !died(&body.bytes()) {
            left.extend(topology.queues[body.queue].work.follow_ups(seed, body));
        }
        expected[body.queue].push(body);
    }
    expected
}

/// A message dies if all its attempts fail, or of four crashes, and of nothing else.
fn outcome(seed: u64, plan: &QueuePlan, body: &Body, dead: &BTreeMap<Vec<u8>, &ErrorRecord>, findings: &Findings) {
    let bytes = body.bytes();
    let fails = plan.work.dies(seed, &bytes, plan.retries);
    match dead.get(&bytes) {
        None => findings.demand(!fails, || format!("a message whose attempts all fail is dead: {body:?}")),
        Some(error) => findings.demand(fails || error.crashes > 3, || {
            format!("a message dies of its handler or of four crashes: {body:?}, {error:?}")
        }),
    }
}

/// Results are kept with what is done.
async fn results(
    fleet: &Fleet, queue: usize, plan: &QueuePlan, done: impl Iterator<Item = u64>, findings: &Findings,
) -> Result<(), StoreError> {
    if matches!(plan.work, Work::Passes { .. }) {
        for id in done.filter(|id| id.is_multiple_of(7)) {
            let result = ask(&**fleet.store(), ReadResult { queue: name(queue), id: MessageId(id) }).await?;
            findings.demand(result.is_some(), || format!("a result is kept with its message: q{queue}/{id}"));
        }
    }
    Ok(())
}

async fn errors(fleet: &Fleet, queue: usize) -> Result<Vec<ErrorRecord>, StoreError> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let peek = Peek { queue: name(queue), after, upto: u64::MAX >> 11, limit: 1_000, max_bytes: 1 << 24 };
        let page = ask(&**fleet.store(), peek).await?.errors;
        let Some(last) = page.last() else { return Ok(all) };
        after = last.seq;
        all.extend(page);
    }
}

fn name(queue: usize) -> Name {
    Name::new(&format!("q{queue}")).expect("a good name")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(journals: &[(usize, &str)], disturbed: &[usize]) -> Vec<String> {
        let mut account = Account::default();
        for (node, text) in journals {
            text.lines().for_each(|line| account.add(*node, line));
        }
        let findings = Findings::default();
        begun_once(&account, &disturbed.iter().copied().collect(), &findings);
        findings.all()
    }

    #[test]
    fn an_attempt_that_two_began_is_found_unless_one_of_them_lost_its_session() {
        let (first, second) = ("begin 0 7 1 99\nend 0 7 1", "begin 0 7 1 99");
        assert_eq!(found(&[(0, first), (1, second)], &[]).len(), 1);
        assert_eq!(found(&[(0, first), (1, second)], &[1]), [""; 0]);
        assert_eq!(found(&[(0, first), (1, &format!("{second}\nover"))], &[]), [""; 0]);
        assert_eq!(found(&[(0, first), (1, "begin 0 7 2 99")], &[]), [""; 0], "a second attempt");
        assert_eq!(found(&[(0, first), (1, "begin 1 7 1 99")], &[]), [""; 0], "another queue");
        assert_eq!(found(&[(0, first), (1, "begin 0 7 2 98")], &[]).len(), 1, "another body");
    }

    #[test]
    fn the_messages_of_a_fleet_follow_from_its_seed() {
        let topology = Topology::small(27);
        let all = expected(&topology, &[], |_| false);
        let pushed: u64 = topology.pushes.iter().map(|push| push.count).sum();
        assert!(all.iter().map(Vec::len).sum::<usize>() as u64 > pushed, "follow-ups");
        let parent = all
            .iter()
            .flatten()
            .find(|body| !topology.queues[body.queue].work.follow_ups(topology.seed, **body).is_empty());
        let dead = parent.unwrap().bytes();
        let fewer = expected(&topology, &[], |body| *body == dead);
        assert!(
            fewer.iter().map(Vec::len).sum::<usize>() < all.iter().map(Vec::len).sum(),
            "what died is not followed"
        );
    }
}
