//! The checker: when all is finished, the books, the data, the errors and the journals must tell one story.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use baton::{
    MessageId, Name,
    store::{
        Disposal, Peek, QueueRecount, Recount, RemovalBegun, Store, StoreError, TakeSurvey, ask,
        session::{Session, SessionOptions},
    },
};

use super::{findings::Findings, journal::Account, launch, mixed::QUEUES, queue};

/// What a finished run amounts to.
#[derive(Debug, Default, Clone, Copy)]
pub struct Sum {
    /// Ids allotted.
    pub pushed: u64,
    /// Messages finished.
    pub done: u64,
    /// Messages among the errors.
    pub failed: u64,
    /// Those of them whose sessions died with them too often.
    pub dead_by_loss: u64,
    /// Executions told of by journals.
    pub executions: u64,
    /// Positions that were pushed by generators killed before they could write it down.
    pub untold: u64,
    /// Refused pushes, by the books.
    pub stale_pushes: u64,
    /// Messages in refused settles, by the books.
    pub stale_settles: u64,
    /// How long the deep audit held the store.
    pub held_ms: u64,
}

/// Checks everything.
pub async fn check(store: &Arc<dyn Store>, folder: &Path, findings: &Findings) -> Sum {
    let mut sum = Sum::default();
    let Some(recount) = audit(store, &mut sum, findings).await else { return sum };
    let books = &recount.books;
    sum.pushed = books.pushed;
    sum.done = books.done;
    sum.failed = books.failed;
    sum.stale_pushes = books.stale_pushes;
    sum.stale_settles = books.stale_settles;
    let left = books.ready + books.delayed + books.in_flight;
    findings.demand(left == 0, || format!("{left} messages are left: {books:?}"));
    mixed_lanes(store, findings).await;
    findings.demand(books.done + books.failed + books.removed + books.cancelled == books.pushed, || {
        format!("messages lost: {books:?}")
    });
    let failed = error_ids(store, &mut sum, findings).await;
    findings.demand(failed.len() as u64 == books.failed, || format!("{} errors, {} dead", failed.len(), books.failed));
    let mut account = match read(folder) {
        Ok(account) => account,
        Err(error) => {
            findings.note(format!("the journals cannot be read: {error}"));
            return sum;
        }
    };
    sum.executions = account.executions;
    sum.untold = account.check_pushes();
    for fault in &account.faults {
        findings.note(format!("journals: {fault}"));
    }
    findings.demand(account.unread == 0, || format!("{} lines of journals cannot be read", account.unread));
    findings.demand(!account.pushes.is_empty(), || "no journal tells of a push".to_owned());
    let highest = account.highest();
    findings.demand(highest <= books.pushed, || format!("id {highest} ran, {} were allotted", books.pushed));
    let missing: Vec<u64> = (1..=books.pushed).filter(|id| !account.has_run(*id) && !failed.contains(id)).collect();
    findings.demand(missing.is_empty(), || {
        let some = missing.iter().take(10).collect::<Vec<_>>();
        format!("{} messages never ran and are not failed: {some:?} …", missing.len())
    });
    sum
}

/// The queues of the mixed nodes: everything has been worked off, nothing died that may not, and follow-ups exist once.
async fn mixed_lanes(store: &Arc<dyn Store>, findings: &Findings) {
    let survey = match ask(&**store, TakeSurvey).await {
        Ok(survey) => survey,
        Err(error) => return findings.note(format!("the last survey fails: {error}")),
    };
    let books = |name: &str| survey.queues.iter().find(|books| books.queue.as_str() == name);
    let position = |name: &str| {
        let source = survey.sources.iter().find(|source| source.name.as_str() == name);
        source.and_then(|source| source.cursor.parse::<u64>().ok()).unwrap_or(0)
    };
    for mixed in QUEUES {
        let Some(of_queue) = books(mixed.name) else {
            findings.note(format!("queue {} does not exist", mixed.name));
            continue;
        };
        let left = of_queue.ready + of_queue.delayed + of_queue.in_flight;
        findings.demand(left == 0, || format!("{left} messages are left: {of_queue:?}"));
        findings.demand(of_queue.done > 0, || format!("nothing of {} was done", mixed.name));
        findings.demand(of_queue.failed > 0 || !mixed.may_die, || format!("no message of {} failed", mixed.name));
        if !mixed.may_die {
            dead_by_loss_only(store, &of_queue.queue, findings).await;
        }
        let follow_ups = if mixed.name == "quick" { books("chain").map_or(0, |chain| chain.done) } else { 0 };
        let told = position(mixed.name) + follow_ups;
        findings.demand(of_queue.pushed == told, || {
            format!("{} ids of {}, {told} by its source and what it follows", of_queue.pushed, mixed.name)
        });
    }
}

/// Whoever has a handler that never fails has no errors but those of messages that were lost too often.
async fn dead_by_loss_only(store: &Arc<dyn Store>, queue: &Name, findings: &Findings) {
    let peek = Peek { queue: queue.clone(), after: 0, upto: u64::MAX >> 11, limit: 1_000, max_bytes: 1 << 24 };
    match ask(&**store, peek).await {
        Ok(page) => {
            for error in page.errors.iter().filter(|error| error.crashes <= 3) {
                findings.note(format!("a message of {queue} failed that never does: {error:?}"));
            }
        }
        Err(error) => findings.note(format!("the errors cannot be read: {error}")),
    }
}

/// Removes all errors.
pub async fn drain_errors(store: &Arc<dyn Store>, findings: &Findings) {
    let emptied = async {
        let session = Session::join(store.clone(), SessionOptions::client()).await?;
        for name in QUEUES.iter().map(|mixed| mixed.name).chain([launch::QUEUE]) {
            let queue = Name::new(name)?;
            let RemovalBegun { upto, .. } = session.begin_removal(queue.clone()).await?;
            loop {
                let peek = Peek { queue: queue.clone(), after: 0, upto, limit: 1_000, max_bytes: 1 << 24 };
                let ids: Vec<MessageId> = ask(&**store, peek).await?.errors.iter().map(|error| error.id).collect();
                if ids.is_empty() {
                    break;
                }
                session.dispose(queue.clone(), ids, Disposal::Remove).await?;
            }
        }
        session.leave().await
    };
    let emptied: Result<(), StoreError> = emptied.await;
    findings.demand(emptied.is_ok(), || format!("the errors cannot be removed: {emptied:?}"));
}

/// The deep audit: the data itself accounts for every id exactly once.
async fn audit(store: &Arc<dyn Store>, sum: &mut Sum, findings: &Findings) -> Option<QueueRecount> {
    let recounted = match ask(&**store, Recount { max_hold_ms: 10_000 }).await {
        Ok(recounted) => recounted,
        Err(error) => {
            findings.note(format!("the deep audit fails: {error}"));
            return None;
        }
    };
    sum.held_ms = recounted.held_ms;
    for recount in &recounted.queues {
        findings.demand(recount.balance(), || format!("the deep audit does not balance: {recount:?}"));
    }
    let recount = recounted.queues.into_iter().find(|recount| recount.books.queue == queue());
    findings.demand(recount.is_some(), || "the queue does not exist".to_owned());
    recount
}

/// The ids of the errors; also looks at their bodies, which hold their positions.
async fn error_ids(store: &Arc<dyn Store>, sum: &mut Sum, findings: &Findings) -> BTreeSet<u64> {
    let mut ids = BTreeSet::new();
    let mut after = 0;
    loop {
        let peek = Peek { queue: queue(), after, upto: u64::MAX >> 11, limit: 1_000, max_bytes: 1 << 24 };
        let page = match ask(&**store, peek).await {
            Ok(page) => page.errors,
            Err(error) => {
                findings.note(format!("the errors cannot be read: {error}"));
                return ids;
            }
        };
        let Some(last) = page.last() else { return ids };
        after = last.seq;
        for error in &page {
            sum.dead_by_loss += u64::from(error.crashes > 3);
            let body = format!("{{\"tick\":{}}}", error.id);
            findings.demand(error.body == body, || format!("id {} has the body {:?}", error.id, error.body));
            findings.demand(ids.insert(error.id.0), || format!("id {} failed twice", error.id));
        }
    }
}

fn read(folder: &Path) -> std::io::Result<Account> {
    let mut account = Account::default();
    for file in launch::journals(folder)? {
        account.read(&file)?;
    }
    Ok(account)
}
