//! The thread that writes: whatever waited while the last transaction was on its way goes together into the next.
//!
//! A group is one transaction with one commit. A refusal is an answer and keeps its few writes. Any other error of
//! one request undoes the transaction, and each request of the group is then carried out alone, so that none suffers
//! for another; so it is when the disk has no room for all of them. If the commit fails otherwise, all of the group
//! get the error, and nothing was kept.

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{
    Site,
    connection::check_format,
    connection_thread::{CurrentFile, Inbox, Next},
    fault::is_busy,
    file::OpenFile,
    reserve::Reserve,
    sweep::Sweeper,
    tables::SqliteTables,
    wake::{WakeChannel, WakeUps},
};
use crate::store::{Answer, Reaped, Request, StoreError, StoreEvent, engine};

/// The most requests in one transaction.
const MAX_GROUP: usize = 256;
/// The most parcel bytes in one transaction, though one request may have more.
const MAX_GROUP_BYTES: usize = 32 << 20;

/// A request and the one who waits for its answer.
pub(super) struct Job {
    pub(super) request: Request,
    pub(super) answer: oneshot::Sender<Result<Answer, StoreError>>,
    /// What was answered to the part of it that was done in transactions before.
    pub(super) so_far: Option<Answer>,
}

/// Why a group was not carried out.
enum Failure {
    /// Nobody's fault: all get the error.
    All(StoreError),
    /// The fault of one request: the others may go through without it.
    One(StoreError),
}

/// Writes until all senders are gone; meanwhile the sweeper, if there is one, makes its steps.
pub(super) fn run(channel: &WakeChannel, mut sweeper: Option<Sweeper>, inbox: &mut Inbox<Job>) {
    // Those that are not done by one transaction: the next one goes on with them, beside what has come meanwhile.
    let mut going_on = Vec::new();
    loop {
        let mut jobs = std::mem::take(&mut going_on);
        if jobs.is_empty() {
            match inbox.next(sweeper.as_ref().map(Sweeper::due)) {
                Next::Job(job) => jobs.push(job),
                Next::Due => {
                    if let Some(sweeper) = &mut sweeper {
                        sweeper.step(&mut inbox.current);
                    }
                    continue;
                }
                Next::Over => return,
            }
        }
        let (requests, callers) = gather(jobs, inbox);
        let current = &mut inbox.current;
        let mut woken = WakeUps::new();
        let answers = match carry_out(current, &requests) {
            Ok((answers, wake_ups)) => {
                woken = wake_ups;
                answers
            }
            Err(Failure::One(_)) => {
                let mut alone = |request| match alone(current, request) {
                    Ok((answers, wake_ups)) => {
                        woken.extend(wake_ups);
                        answers.into_iter().next()
                    }
                    Err(error) => Some(Done::ended(Err(error))),
                };
                requests.iter().filter_map(&mut alone).collect()
            }
            Err(Failure::All(error)) => requests.iter().map(|_| Done::ended(Err(error.clone()))).collect(),
        };
        channel.wake_here(&woken);
        for ((request, (caller, so_far)), Done { answer, goes_on }) in requests.into_iter().zip(callers).zip(answers) {
            let answer = answer.map(|answer| together(so_far, answer));
            match (&mut sweeper, answer) {
                (_, Ok(answer)) if goes_on => going_on.push(Job { request, answer: caller, so_far: Some(answer) }),
                // What a destruction has freed is given back before it is answered; other calls do not wait for that.
                (Some(sweeper), Ok(Answer::Destroy(removed))) => sweeper.answer_when_swept(caller, removed),
                // A caller that has gone away will repeat its call if it cares.
                (_, answer) => drop(caller.send(answer)),
            }
        }
        channel.wake_afar(&woken);
        if let Some(sweeper) = &mut sweeper {
            sweeper.after_calls(current);
        }
    }
}

/// Who waits for an answer.
pub(super) type Caller = oneshot::Sender<Result<Answer, StoreError>>;

/// What a transaction did for a request.
struct Done {
    answer: Result<Answer, StoreError>,
    /// Whether the same request has more to do.
    goes_on: bool,
}

impl Done {
    const fn ended(answer: Result<Answer, StoreError>) -> Self {
        Self { answer, goes_on: false }
    }
}

/// The answer to all of a request, from those to its parts.
fn together(so_far: Option<Answer>, answer: Answer) -> Answer {
    match (so_far, answer) {
        (Some(Answer::Reap(Reaped::Taken(mut lost))), Answer::Reap(last)) => {
            // Otherwise another process came to the end.
            if let Reaped::Taken(later) = last {
                lost.add(later);
            }
            Answer::Reap(Reaped::Taken(lost))
        }
        (_, answer) => answer,
    }
}

/// These and all that waits now, within the bounds of a group.
fn gather(jobs: Vec<Job>, inbox: &mut Inbox<Job>) -> (Vec<Request>, Vec<(Caller, Option<Answer>)>) {
    let (mut bytes, mut requests, mut callers) = (0, Vec::new(), Vec::new());
    let mut jobs = jobs.into_iter();
    while requests.len() < MAX_GROUP && bytes < MAX_GROUP_BYTES {
        let Some(job) = jobs.next().or_else(|| inbox.more()) else { break };
        bytes += job.request.new_bodies().unwrap_or(0);
        requests.push(job.request);
        callers.push((job.answer, job.so_far));
    }
    (requests, callers)
}

/// Carries out one request; on a full disk with the room that the log takes up, with that kept for it unless it brings new
/// bodies, and with as much of them as there is room for.
fn alone(current: &mut CurrentFile, request: &Request) -> Result<Answers, StoreError> {
    let mut error = match carry_out_one(current, request) {
        Err(error @ StoreError::NoRoom(_)) => error,
        done => return done,
    };
    let site = Arc::clone(current.site());
    let file = current.file()?;
    let is_new = request.new_bodies().is_some();
    let given_up = !is_new && Reserve::of(file.path()).give_up();
    let turn = file.turn()?;
    // Lets the log begin anew, or leave, now that the file may grow.
    let gained = if is_new {
        file.give_log_up(&site)
    } else {
        file.checkpoint(&site);
        true
    };
    drop(turn);
    if given_up {
        site.tell(&StoreEvent::ReserveUsed { path: site.path.clone() });
    }
    if gained {
        match carry_out_one(current, request) {
            Err(no_room @ StoreError::NoRoom(_)) => error = no_room,
            done => return done,
        }
    }
    let mut part = request.clone();
    while let Request::Submit(submit) = &mut part
        && submit.bookmark.is_none()
        && submit.submissions.len() > 1
    {
        // The answer is as much shorter: who submitted knows by that what found no room.
        submit.submissions.truncate(submit.submissions.len() / 2);
        match carry_out_one(current, &part) {
            Err(StoreError::NoRoom(_)) => {}
            done => return done,
        }
    }
    Err(error)
}

fn carry_out_one(current: &mut CurrentFile, request: &Request) -> Result<Answers, StoreError> {
    let done = carry_out(current, std::slice::from_ref(request));
    done.map_err(|(Failure::All(error) | Failure::One(error))| error)
}

type Answers = (Vec<Done>, WakeUps);

/// Carries out requests in one transaction: their answers, and whom to wake.
fn carry_out(current: &mut CurrentFile, requests: &[Request]) -> Result<Answers, Failure> {
    let site = Arc::clone(current.site());
    let file = current.file().map_err(Failure::All)?;
    let db = &file.db;
    let waiting = site.wait();
    let turn = file.turn().map_err(Failure::All)?;
    let begun = begin(db).map_err(Failure::All);
    drop(waiting);
    let done = begun.and_then(|()| apply(file, &site, requests).map_err(Failure::One)).and_then(|answers| {
        let committed = db.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
        committed.map_err(|error| match error.into() {
            // What is too large for the disk should not keep the rest from getting through.
            full @ StoreError::NoRoom(_) => Failure::One(full),
            error => Failure::All(error),
        })?;
        file.keep_log_short(&site);
        Ok(answers)
    });
    let stuck = done.is_err() && !db.is_autocommit() && db.execute_batch("ROLLBACK").is_err();
    drop(turn);
    let done = done.map_err(|failure| match failure {
        Failure::All(error) => Failure::All(current.explain(error)),
        Failure::One(error) => Failure::One(current.explain(error)),
    });
    if stuck {
        // A connection that can neither commit nor roll back is closed, which does roll back.
        current.close();
    }
    done
}

/// Begins a transaction that writes.
pub(super) fn begin(db: &Connection) -> Result<(), StoreError> {
    loop {
        match db.prepare_cached("BEGIN IMMEDIATE").and_then(|mut begin| begin.execute([])) {
            Err(error) if is_busy(&error) => {}
            other => return Ok(other.map(drop)?),
        }
    }
}

fn apply(file: &OpenFile, site: &Site, requests: &[Request]) -> Result<Answers, StoreError> {
    let db = &file.db;
    let brought: Vec<usize> = requests.iter().filter_map(Request::new_bodies).collect();
    if !brought.is_empty() {
        site.admit_to_log(file)?;
        Reserve::of(file.path()).admit(file, brought.iter().sum()).map_err(|error| site.why_no_room(error))?;
    }
    let mut tables = SqliteTables::new(db, &site.fleet);
    let mut answers = Vec::with_capacity(requests.len());
    for request in requests {
        let now = site.clock.now_ms();
        // A session that is known was refused at its join if need be; one that a migration has taken out is not known.
        let checked =
            if matches!(request, Request::Join(_)) || request.session().is_none() { check_format(db) } else { Ok(()) };
        match checked.and_then(|()| engine::apply(&mut tables, now, request)) {
            Ok(answer) => {
                let goes_on = engine::goes_on(&mut tables, request)?;
                answers.push(Done { answer: Ok(answer), goes_on });
            }
            refused @ Err(StoreError::Refused(_)) => answers.push(Done::ended(refused)),
            Err(error) => return Err(error),
        }
    }
    tables.flush()?;
    Ok((answers, tables.woken()))
}
