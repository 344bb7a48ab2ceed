//! One child of a pool: its process, the pipes to it, and the end of its error output.

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
use crate::process::{Child, LAST_WORDS, Listener, Tail, ending};

/// A child, and the pipes to it.
#[derive(Debug)]
pub(super) struct Pooled {
    child: Child,
    talk: Talk,
    complaints: Tail,
    /// Tasks it has answered.
    tasks: u64,
    /// The time at which it began to wait for a task.
    since: Instant,
    /// The thread that read its last answer.
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

    /// Gives it a task and reads its events until it has answered. After an error other than [`PoolError::Failed`] it must
    /// not be used again. [`PoolError::Untouched`] means that it had answered other tasks and read nothing of this one.
    pub(super) async fn answer(&mut self, task: &Task<'_>, limits: &Limits, hear: &mut impl Hear) -> Answer {
        // Error output of earlier tasks does not belong to this one. Error output of the start does.
        self.complaints.hand_over(Some(task.id), self.tasks > 0);
        let Self { child, talk, .. } = self;
        let pid = child.pid();
        let answer = {
            let talking = talk.have(task, limits, hear);
            tokio::pin!(talking);
            tokio::select! {
                biased;
                answer = &mut talking => answer,
                error = limits.exceeded(pid) => Err(error),
                // A process that it left behind may hold the pipe open.
                _ = child.wait() => timeout(LAST_WORDS, talking)
                    .await
                    .unwrap_or_else(|_| Err(PoolError::ClosedOutput { complaints: String::new() })),
            }
        };
        match answer {
            Ok(_) | Err(PoolError::Failed { .. }) => {
                self.tasks += 1;
                self.complaints.hand_over(None, false);
                answer
            }
            Err(error) => Err(self.explained(error).await),
        }
    }

    /// Adds the exit status and the error output where they explain the error.
    async fn explained(&mut self, error: PoolError) -> PoolError {
        if !matches!(error, PoolError::ClosedInput { .. } | PoolError::ClosedOutput { .. }) {
            return error;
        }
        // A child that has closed a pipe usually ends soon.
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

    /// Whether it runs, has read its whole task, and has printed nothing without a task.
    pub(super) fn is_still(&self) -> bool {
        self.talk.is_still()
    }

    /// The field that it wrote its result into instead of `data`; returned once.
    pub(super) fn misnamed(&mut self) -> Option<String> {
        self.talk.misnamed()
    }

    /// Tasks it has answered.
    pub(super) const fn tasks(&self) -> u64 {
        self.tasks
    }

    /// Notes that it waits for a task from now on.
    pub(super) fn rests(&mut self) {
        self.since = Instant::now();
        self.talked_in = Some(thread::current().id());
    }

    /// The thread that read its last answer.
    pub(super) const fn talked_in(&self) -> Option<ThreadId> {
        self.talked_in
    }

    /// How long it has waited for a task.
    pub(super) fn rested(&self) -> Duration {
        self.since.elapsed()
    }

    /// Ends it after an error. A child that only took too long gets SIGTERM first.
    pub(super) async fn end(mut self, error: &PoolError, grace: Duration) {
        match error {
            PoolError::Timeout(_) | PoolError::OutputTimeout(_) => self.child.stop(grace).await,
            _ => self.child.kill().await,
        }
    }

    /// Whether it has ended, or closed its output, before its first task.
    pub(super) fn has_ended_unused(&self) -> bool {
        self.tasks == 0 && !self.is_still()
    }

    /// Ends it; how it had ended by itself, with the line of its standard error that names
    /// an error, or the last one.
    pub(super) async fn last_words(mut self, grace: Duration) -> String {
        let how = match timeout(LAST_WORDS, self.child.wait()).await {
            Ok(Ok(status)) => ending(status),
            _ => "printed something, or closed its output, and went on".to_owned(),
        };
        let complaints = self.complaints.told().await;
        self.retire(grace).await;
        complaints.lines().next().map_or_else(|| how.clone(), |line| format!("{how}: {line}"))
    }

    pub(super) async fn kill(mut self) {
        self.child.kill().await;
    }

    /// Closes its input, which asks it to end, and kills it if it does not.
    pub(super) async fn retire(self, grace: Duration) {
        let Self { mut child, talk, complaints, .. } = self;
        drop(talk);
        if timeout(grace, child.wait()).await.is_err() {
            child.stop(grace).await;
        }
        drop(complaints);
    }
}
