//! One child of a pool: its process, the talk with it, and what it complained of.

use std::{
    io,
    process::Stdio,
    thread::{self, ThreadId},
    time::Duration,
};

use tokio::time::{Instant, timeout};

use super::{
    Limits, PoolError, Program, Task,
    talk::{Answer, Hear, Talk},
};
use crate::process::{Child, LAST_WORDS, Listener, Tail};

/// A child, and the pipes to it.
#[derive(Debug)]
pub(super) struct Pooled {
    child: Child,
    talk: Talk,
    complaints: Tail,
    /// Tasks it has answered.
    tasks: u64,
    /// Since when it waits for a task.
    since: Instant,
    /// The thread that heard its last answer.
    talked_in: Option<ThreadId>,
}

impl Pooled {
    /// Starts it.
    pub(super) fn start(program: &Program, limits: &Limits, listener: Option<Listener>) -> Result<Self, PoolError> {
        let failed = |error| PoolError::Start { program: program.to_string(), error };
        let mut command = program.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Child::start_guarded(&mut command).map_err(failed)?;
        child.step_back(limits.nice);
        let (Some(input), Some(output), Some(errors)) = (child.input(), child.output(), child.errors()) else {
            return Err(failed(io::Error::other("it has no pipes")));
        };
        let (talk, complaints) = (Talk::new(input, output).map_err(failed)?, Tail::of(errors, listener));
        Ok(Self { child, talk, complaints, tasks: 0, since: Instant::now(), talked_in: None })
    }

    /// Gives it a task and hears it until it has answered. After an error other than [`PoolError::Failed`] it is of no
    /// more use; [`PoolError::Untouched`] if it had answered others before, and has not even begun to read this one.
    pub(super) async fn answer(&mut self, task: &Task<'_>, limits: &Limits, hear: &mut impl Hear) -> Answer {
        // What it said of the tasks of others is none of this one's business. What it said when it started is.
        if self.tasks > 0 {
            self.complaints.begin_anew();
        }
        let Self { child, talk, .. } = self;
        let pid = child.pid();
        let answer = {
            let talking = talk.have(task, limits, hear);
            tokio::pin!(talking);
            tokio::select! {
                biased;
                answer = &mut talking => answer,
                error = limits.exceeded(pid) => Err(error),
                // What it left behind elsewhere may hold the pipe open.
                _ = child.wait() => timeout(LAST_WORDS, talking)
                    .await
                    .unwrap_or_else(|_| Err(PoolError::ClosedOutput { complaints: String::new() })),
            }
        };
        match answer {
            Ok(_) | Err(PoolError::Failed { .. }) => {
                self.tasks += 1;
                answer
            }
            Err(error) => Err(self.explained(error).await),
        }
    }

    /// With how it ended and what it complained of, where that explains the error.
    async fn explained(&mut self, error: PoolError) -> PoolError {
        if !matches!(error, PoolError::ClosedInput { .. } | PoolError::ClosedOutput { .. }) {
            return error;
        }
        // One that has closed a pipe is about to end, as a rule.
        let status = timeout(LAST_WORDS, self.child.wait()).await;
        let may_be_untouched = status.is_ok() || matches!(error, PoolError::ClosedInput { .. });
        if self.tasks > 0 && may_be_untouched && self.talk.is_untouched(&error) {
            return PoolError::Untouched;
        }
        let complaints = self.complaints.told().await;
        match (status, error) {
            (Ok(Ok(status)), _) => PoolError::Ended { status, complaints },
            (_, PoolError::ClosedInput { .. }) => PoolError::ClosedInput { complaints },
            _ => PoolError::ClosedOutput { complaints },
        }
    }

    /// Whether it runs, has read all it was given, and has said nothing that nobody asked for.
    pub(super) fn is_still(&self) -> bool {
        self.talk.is_still()
    }

    /// What it wrote its result into instead of `data`, once.
    pub(super) fn misnamed(&mut self) -> Option<String> {
        self.talk.misnamed()
    }

    /// Tasks it has answered.
    pub(super) const fn tasks(&self) -> u64 {
        self.tasks
    }

    /// It waits for a task from now on.
    pub(super) fn rests(&mut self) {
        self.since = Instant::now();
        self.talked_in = Some(thread::current().id());
    }

    /// The thread that heard its last answer.
    pub(super) const fn talked_in(&self) -> Option<ThreadId> {
        self.talked_in
    }

    /// How long it has waited for a task.
    pub(super) fn rested(&self) -> Duration {
        self.since.elapsed()
    }

    /// Ends it after an error: one that only took its time is asked first.
    pub(super) async fn end(mut self, error: &PoolError, grace: Duration) {
        match error {
            PoolError::Timeout(_) | PoolError::OutputTimeout(_) => self.child.stop(grace).await,
            _ => self.child.kill().await,
        }
    }

    pub(super) async fn kill(mut self) {
        self.child.kill().await;
    }

    /// Closes its input, which tells it to end, and kills it if it does not.
    pub(super) async fn retire(self, grace: Duration) {
        let Self { mut child, talk, complaints, .. } = self;
        drop(talk);
        if timeout(grace, child.wait()).await.is_err() {
            child.stop(grace).await;
        }
        drop(complaints);
    }
}
