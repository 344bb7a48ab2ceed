//! Many messages in one request, a line each, stored as they come in.
//!
//! Lines are stored in their order, a parcel after the other, so the lines that are stored are always the first ones: a
//! problem says how many, and the sender can go on behind them. Where no more come for a moment, those that came are
//! stored.

use std::{pin::pin, sync::Arc, time::Duration};

use axum::{body::Body, http::HeaderMap};
use baton::{
    Name,
    store::message::{self, Parcel, ParcelBuilder, Submission},
};
use serde::Serialize;
use tokio::time::{Instant, timeout};

use crate::{
    admission::{Admission, Validity},
    body::{check, has_several, next, refuse, too_large},
    intake::{DATA_LOST, MAYBE_STORED, Stored, data_lost},
    problem::Problem,
    room::BytesPermit,
    state::State,
};

/// Messages and bytes of a parcel.
const PARCEL: usize = 512;
pub(crate) const PARCEL_BYTES: usize = 256 << 10;

/// How long lines that came in wait for more to be stored with them.
const PAUSE: Duration = Duration::from_millis(50);

/// The bytes of a range of ids in the answer: an endless upload has ever more ranges.
const RANGE_BYTES: usize = 256;

/// Ids that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(crate) struct Ids {
    /// The first.
    pub(crate) first: u64,
    /// The last.
    pub(crate) last: u64,
}

/// Stores what comes in.
pub(crate) struct Lines<'a> {
    state: &'a State,
    admission: &'a Admission,
    queue: &'a Name,
    builder: ParcelBuilder,
    /// The line that is read, from 1.
    line: u64,
    /// Lines that are stored, blank ones not counted.
    stored: u64,
    ids: Vec<Ids>,
    /// The data that they went to.
    data: Option<Arc<str>>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(state: &'a State, admission: &'a Admission, queue: &'a Name) -> Self {
        Self {
            state,
            admission,
            queue,
            builder: ParcelBuilder::default(),
            line: 1,
            stored: 0,
            ids: Vec::new(),
            data: None,
        }
    }

    /// Stores all lines; how many there were, and their ids.
    pub(crate) async fn store(mut self, headers: &HeaderMap, mut body: Body) -> Result<(u64, Vec<Ids>), Problem> {
        let mut permit = self.admission.bytes(&self.state.room);
        let (state, mut validity) = (self.state, self.admission.validity());
        let taken = tokio::select! {
            biased;
            // Nothing more is stored, not even of what has come in.
            () = Validity::ends(&mut validity, state) => Err((Validity::ended(), false)),
            taken = self.take(&mut body, &mut permit) => taken,
            () = state.ends() => Err((broken_off(), false)),
        };
        match taken {
            Ok(()) => Ok((self.stored, self.ids)),
            Err((problem, in_order)) => {
                // Lines before a wrong one are stored as if the wrong one did not exist.
                let problem = match in_order {
                    true => tokio::select! {
                        biased;
                        flushed = self.flush() => flushed.err().unwrap_or(problem),
                        () = state.ends() => broken_off(),
                    },
                    false => problem,
                };
                tokio::select! {
                    biased;
                    () = refuse(headers, body) => {}
                    () = state.ends() => {}
                }
                let ids = serde_json::to_value(&self.ids).unwrap_or_default();
                Err(problem.with("stored", self.stored).with("line", self.line).with("ids", ids))
            }
        }
    }

    /// Takes what comes in up to its end. With a problem comes whether what was taken before it is still to be stored.
    async fn take(&mut self, body: &mut Body, permit: &mut BytesPermit) -> Result<(), (Problem, bool)> {
        let limits = &self.state.limits;
        let mut rest: Vec<u8> = Vec::new();
        let mut deadline = Instant::now() + limits.body_time;
        loop {
            // Between two parcels, so that it is known of each whether it is stored.
            if *self.state.closing.borrow() {
                return Err((stopping(), true));
            }
            let mut coming = pin!(next(body, deadline, limits.body_time));
            let came = match timeout(PAUSE, &mut coming).await {
                Ok(came) => came,
                Err(_) => {
                    self.flush().await.map_err(|it| (it, false))?;
                    // Bytes that the store has are not held any more.
                    permit.hold(rest.len() + self.held()).map_err(|it| (it, true))?;
                    tokio::select! {
                        biased;
                        () = self.state.closes() => continue,
                        came = coming => came,
                    }
                }
            };
            let Some(bytes) = came.map_err(|it| (it, true))? else { break };
            permit.hold(rest.len() + self.held() + bytes.len()).map_err(|it| (it, true))?;
            let mut from = 0;
            for end in memchr::memchr_iter(b'\n', &bytes) {
                let line = bytes.get(from..end).unwrap_or_default();
                from = end + 1;
                if rest.is_empty() {
                    self.add(line).await?;
                } else {
                    rest.extend_from_slice(line);
                    self.add(&std::mem::take(&mut rest)).await?;
                }
                self.line += 1;
                deadline = Instant::now() + limits.body_time;
            }
            rest.extend_from_slice(bytes.get(from..).unwrap_or_default());
            if rest.len() > limits.message_bytes {
                return Err((self.of_line(too_large(limits.message_bytes)), true));
            }
        }
        self.add(&rest).await?;
        self.flush().await.map_err(|it| (it, false))?;
        self.check_data().await.map_err(|it| (it, false))
    }

    async fn add(&mut self, line: &[u8]) -> Result<(), (Problem, bool)> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let limits = &self.state.limits;
        let checked = check(limits, line).map_err(|it| {
            let it = self.of_line(it);
            let is_joined = self.line == 1 && has_several(line);
            (if is_joined { it.next("curl joins lines unless they are sent with --data-binary") } else { it }, true)
        })?;
        let body = message::Body::new(checked).map_err(|_| (self.of_line(too_large(limits.message_bytes)), true))?;
        self.builder.add(body).map_err(|error| (Problem::bad("bad-body", error.to_string()), true))?;
        if self.builder.len() >= PARCEL || self.builder.body_bytes() >= PARCEL_BYTES {
            self.flush().await.map_err(|it| (it, false))?;
        }
        Ok(())
    }

    /// Bytes that are kept of what came in, but for the line that is read.
    fn held(&self) -> usize {
        self.builder.body_bytes() + self.ids.len() * RANGE_BYTES
    }

    fn of_line(&self, problem: Problem) -> Problem {
        problem.of(&format!("line {}", self.line))
    }

    /// Stores what was taken.
    async fn flush(&mut self) -> Result<(), Problem> {
        let Some(parcel): Option<Parcel> = self.builder.finish() else { return Ok(()) };
        let count = u64::from(parcel.len());
        let submission = Submission { queue: self.queue.clone(), parcel, key: None, call: None };
        // A seat of its own: an upload that says nothing holds none.
        let mut seat = self.state.seat(submission.parcel.bytes().len())?;
        let stored = self.state.store_submission(&mut seat, submission, self.data.as_ref()).await;
        let Stored { first, data, .. } = stored.map_err(|it| if it.code() == DATA_LOST { self.loses() } else { it })?;
        self.data = Some(data);
        // Ids ascend. Where they do not, the store has gone back to a former state, and knows no lines of after it.
        let lost = self.ids.last().is_some_and(|before| first <= before.last).then(|| self.loses());
        self.stored += count;
        let last = first + count.saturating_sub(1);
        match self.ids.last_mut() {
            Some(before) if before.last + 1 == first => before.last = last,
            _ => self.ids.push(Ids { first, last }),
        }
        lost.map_or(Ok(()), Err)
    }

    /// Looks once more, before all is said to be stored, whether the data is there that it went to. A store that does
    /// not answer now has answered before.
    async fn check_data(&mut self) -> Result<(), Problem> {
        let Some(data) = &self.data else { return Ok(()) };
        match timeout(self.state.limits.store_time, self.state.fleet.session()).await {
            Ok(Ok(session)) if session.incarnation() != *data => Err(self.loses()),
            _ => Ok(()),
        }
    }

    /// The lines stored so far are gone.
    fn loses(&mut self) -> Problem {
        (self.stored, self.ids) = (0, Vec::new());
        data_lost()
    }
}

fn stopping() -> Problem {
    Problem::busy("stopping", "the gateway stops; push the lines after those that are stored again", 2)
}

/// That the store had not answered yet when the time to stop was over.
fn broken_off() -> Problem {
    let detail = "the gateway stops, and the store has not answered: lines after those that are stored for sure may be stored too";
    Problem::busy(MAYBE_STORED, detail, 2)
}
