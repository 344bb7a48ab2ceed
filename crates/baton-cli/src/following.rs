//! A call as the person who made it follows it: its events, and why nothing comes.

use std::time::Duration;

use baton::{
    CallId, CallState, Follow, FollowError, Followed, Name, Since, StoreError,
    admin::{AdminError, Note},
};
use tokio::time::{Instant, timeout};

use crate::{attendance::Attendance, connection::Connection, exit::Failure, output::remark};

/// After how long without an event it is looked whether anybody works on a call.
const UNHEARD: Duration = Duration::from_secs(1);
/// How long a store that went away is left alone.
const AGAIN: Duration = Duration::from_millis(250);

/// The events of a call.
pub(crate) struct Following<'a> {
    connection: &'a Connection,
    queue: &'a Name,
    call: &'a CallId,
    follow: Follow,
    /// Printed in place of the plain truth that no node works for the queue.
    advice: Option<&'a str>,
    /// Whether it is settled that a node works on it, or said why none does.
    is_attended: bool,
    /// How long a store that is away is waited for, and since when it is.
    wait: Duration,
    away_since: Option<Instant>,
}

impl<'a> Following<'a> {
    /// From the first event on.
    pub(crate) fn new(
        connection: &'a Connection, queue: &'a Name, call: &'a CallId, wait: Duration, advice: Option<&'a str>,
    ) -> Self {
        let follow = connection.admin.fleet().follow(call, Since::Start);
        Self { connection, queue, call, follow, advice, is_attended: false, wait, away_since: None }
    }

    /// What comes next. A line says once that no node works on the call. A store that is away is waited for, which a line
    /// says too; it fails the call's follower after the time to wait.
    pub(crate) async fn next(&mut self) -> Result<Result<Followed, FollowError>, Failure> {
        loop {
            let outage = match timeout(UNHEARD, self.follow.next()).await {
                Err(_) => self.wonder().await.err(),
                Ok(Err(FollowError::Store(error))) if error.is_retryable() => Some(error),
                Ok(Err(FollowError::Store(error))) => return self.connection.given(Err(AdminError::Store(error))),
                Ok(followed) => {
                    (self.is_attended, self.away_since) = (true, None);
                    return Ok(followed);
                }
            };
            match outage {
                None => self.away_since = None,
                Some(error) if error.is_retryable() && !self.is_worn_out(&error) => tokio::time::sleep(AGAIN).await,
                Some(error) => {
                    let failed = self.connection.given(Err(AdminError::Store(error)));
                    return failed.map_err(|failure| failure.of(&format!("what became of {} is not known", self.call)));
                }
            }
        }
    }

    /// Goes on with the first event that is kept.
    pub(crate) const fn rejoin(&mut self, first: u64) {
        self.follow.rejoin(Since::Number(first));
    }

    /// Whether the store has been away for too long. A line says when that begins.
    fn is_worn_out(&mut self, error: &StoreError) -> bool {
        let since = self.away_since.get_or_insert_with(|| {
            remark(&Note::Waiting { limit: self.wait, why: error.to_string() }.to_string());
            Instant::now()
        });
        since.elapsed() >= self.wait
    }

    /// Nothing came for a while: fails if the store is away. Says once why the call waits: its queue is
    /// paused, or no node works for it.
    async fn wonder(&mut self) -> Result<(), StoreError> {
        let admin = &self.connection.admin;
        // The beats of its session tell, so that a quiet call costs the store no further question.
        let away = admin.fleet().session().await?.troubles().borrow().clone();
        if let Some(away @ StoreError::Unreachable(_)) = away {
            return Err(away);
        }
        if self.is_attended {
            return Ok(());
        }
        let status = admin.fleet().call_status(self.call).await?;
        if status.is_some_and(|status| status.state == CallState::Ready) {
            let overview = admin.overview().await?;
            let attendance = Attendance::of(self.queue, &overview);
            if let Some(pause) = attendance.pause(self.queue) {
                remark(&pause);
            } else if let Some(absence) = attendance.absence(self.queue) {
                remark(self.advice.unwrap_or(&absence));
            }
        }
        self.is_attended = true;
        Ok(())
    }
}
