//! The thread that writes: whatever waited while the last transaction was on its way goes together into the next.
//!
//! A group is one transaction with one commit. A refusal is an answer and keeps its few writes. Any other error of
//! one request undoes the transaction, and each request of the group is then carried out alone, so that none suffers
//! for another; so it is when the disk has no room for all of them. If the commit fails otherwise, all of the group
//! get the error, and nothing was kept.

use std::sync::{Arc, mpsc};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{
    Site,
    fault::is_busy,
    file::{OpenFile, Purpose, check_format},
    lane::Desk,
    lift::lift,
    tables::SqliteTables,
    wake::{Bell, Rings},
};
use crate::{
    message::Outcome,
    store::{Answer, Request, StoreError, engine},
};

/// The most requests in one transaction.
const MAX_GROUP: usize = 256;
/// The most parcel bytes in one transaction, though one request may have more.
const MAX_GROUP_BYTES: usize = 32 << 20;

/// A request and the one who waits for its answer.
pub(super) struct Job {
    pub(super) request: Request,
    pub(super) answer: oneshot::Sender<Result<Answer, StoreError>>,
}

/// Why a group was not carried out.
enum Failure {
    /// Nobody's fault: all get the error.
    All(StoreError),
    /// The fault of one request: the others may go through without it.
    One(StoreError),
}

/// Writes until all senders are gone.
pub(super) fn run(site: &Arc<Site>, purpose: Purpose, bell: &Bell, jobs: &mpsc::Receiver<Job>) {
    let mut desk = Desk::new(Arc::clone(site), purpose);
    while let Ok(first) = jobs.recv() {
        let (requests, callers) = gather(first, jobs);
        let mut woken = Rings::new();
        let answers = match carry_out(&mut desk, &requests) {
            Ok((answers, rings)) => {
                woken = rings;
                answers
            }
            Err(Failure::One(_)) if requests.len() > 1 => {
                let mut alone = |request| match carry_out(&mut desk, std::slice::from_ref(request)) {
                    Ok((answers, rings)) => {
                        woken.extend(rings);
                        answers.into_iter().next()
                    }
                    Err(Failure::All(error) | Failure::One(error)) => Some(Err(error)),
                };
                requests.iter().filter_map(&mut alone).collect()
            }
            Err(Failure::All(error) | Failure::One(error)) => vec![Err(error); requests.len()],
        };
        bell.ring_here(&woken);
        for (caller, answer) in callers.into_iter().zip(answers) {
            // A caller that has gone away will repeat its call if it cares.
            caller.send(answer).ok();
        }
        bell.ring_afar(&woken);
    }
}

type Caller = oneshot::Sender<Result<Answer, StoreError>>;

/// All that waits now, within the bounds of a group.
fn gather(first: Job, jobs: &mpsc::Receiver<Job>) -> (Vec<Request>, Vec<Caller>) {
    let mut bytes = weight(&first.request);
    let (mut requests, mut callers) = (vec![first.request], vec![first.answer]);
    while requests.len() < MAX_GROUP && bytes < MAX_GROUP_BYTES {
        let Ok(job) = jobs.try_recv() else { break };
        bytes += weight(&job.request);
        requests.push(job.request);
        callers.push(job.answer);
    }
    (requests, callers)
}

/// The parcel bytes a request brings.
fn weight(request: &Request) -> usize {
    match request {
        Request::Push(it) => it.parcels.iter().map(|parcel| parcel.bytes().len()).sum(),
        Request::Submit(it) => it.lots.iter().map(|lot| lot.parcel.bytes().len()).sum(),
        Request::Settle(it) => {
            let lots = it.runs.iter().flat_map(|run| match &run.outcome {
                Outcome::Done { follow_ups, .. } => follow_ups.as_slice(),
                _ => &[],
            });
            lots.map(|lot| lot.parcel.bytes().len()).sum()
        }
        _ => 0,
    }
}

type Answers = (Vec<Result<Answer, StoreError>>, Rings);

/// Carries out requests in one transaction: their answers, and whom to wake.
fn carry_out(desk: &mut Desk, requests: &[Request]) -> Result<Answers, Failure> {
    let site = Arc::clone(desk.site());
    let OpenFile { db, turnstile, .. } = desk.file().map_err(Failure::All)?;
    let turn = turnstile.enter().map_err(Failure::All)?;
    begin(db).map_err(Failure::All)?;
    let done = apply(db, &site, requests).map_err(Failure::One).and_then(|answers| {
        let committed = db.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
        committed.map_err(|error| match error.into() {
            // What is too large for the disk should not keep the rest from getting through.
            full @ StoreError::NoRoom(_) => Failure::One(full),
            error => Failure::All(error),
        })?;
        Ok(answers)
    });
    let stuck = done.is_err() && !db.is_autocommit() && db.execute_batch("ROLLBACK").is_err();
    drop(turn);
    if stuck {
        // A connection that can neither commit nor roll back is closed, which does roll back.
        desk.close();
    }
    done
}

fn begin(db: &Connection) -> Result<(), StoreError> {
    loop {
        match db.prepare_cached("BEGIN IMMEDIATE").and_then(|mut begin| begin.execute([])) {
            Err(error) if is_busy(&error) => {}
            other => return Ok(other.map(drop)?),
        }
    }
}

fn apply(db: &Connection, site: &Site, requests: &[Request]) -> Result<Answers, StoreError> {
    let mut tables = SqliteTables::new(db, &site.fleet);
    let mut answers = Vec::with_capacity(requests.len());
    for request in requests {
        let now = site.clock.now_ms();
        let checked = match request {
            Request::Join(_) => check_format(db).and_then(|()| lift(db, now)),
            _ => Ok(()),
        };
        match checked.and_then(|()| engine::apply(&mut tables, now, request)) {
            answer @ (Ok(_) | Err(StoreError::Refused(_))) => answers.push(answer),
            Err(error) => return Err(error),
        }
    }
    tables.flush()?;
    Ok((answers, tables.woken()))
}
