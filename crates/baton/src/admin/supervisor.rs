//! Worker processes, as many as are asked for, kept running while this one runs and ended when it ends.
//!
//! Each has a leash: a pipe on its standard input that says `drain` or `now`, and whose end tells it that this process
//! is gone, however it went. Each is a process group of its own, so that Ctrl-C at the terminal reaches only the one
//! that holds the leashes, and whoever it concerns hears it once.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt, io,
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, BufReader},
    process::Command,
    task::JoinSet,
    time::Instant,
};

use super::wording::{plural, span, tame};
use crate::{
    Level, Shutdown,
    backoff::Backoff,
    process::{Child, Leash, Word, words},
};

/// The pause before a crashed worker is replaced, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// How long a worker whose holder is gone may finish what runs.
const ALONE: Duration = Duration::from_secs(10);

/// How workers are started. The program obeys its leash: see [`obey_leash`].
pub struct Supervisor {
    /// The program.
    pub program: PathBuf,
    /// What it is given.
    pub arguments: Vec<OsString>,
    /// Variables it gets beside those of this process.
    pub variables: Vec<(&'static str, OsString)>,
    /// Variables of this process that it does not get, unless they are among the former.
    pub without: Vec<&'static str>,
    /// How long a worker that must stop at once may take before it is killed.
    pub last_words: Duration,
    /// Hears what happens.
    pub hear: Arc<dyn Fn(&SupervisorEvent) + Send + Sync>,
}

/// What happens to the workers of a supervisor; shown as one line, safe to print.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SupervisorEvent {
    /// Workers are being started.
    Starting {
        /// So many.
        count: usize,
        /// Why, if the load asks for them.
        why: Option<String>,
    },
    /// Workers leave: they finish what they run.
    Retiring {
        /// So many.
        count: usize,
        /// How many stay.
        stay: usize,
        /// Why.
        why: String,
    },
    /// A worker ended by itself, or could not be started; another one takes its place after a pause.
    Lost {
        /// Its number among the workers.
        worker: u64,
        /// What became of it.
        why: String,
        /// The pause.
        pause: Duration,
    },
    /// A worker did not end in time and was killed.
    Killed {
        /// Its number among the workers.
        worker: u64,
        /// Its process id.
        pid: u32,
    },
    /// A line that a worker wrote to its standard error.
    Line {
        /// Its number among the workers, from 1; one that takes the place of a crashed one has the same.
        worker: u64,
        /// The line.
        line: String,
    },
}

impl SupervisorEvent {
    /// How much it matters.
    #[must_use]
    pub const fn level(&self) -> Level {
        match self {
            Self::Starting { .. } | Self::Retiring { .. } | Self::Line { .. } => Level::Info,
            Self::Lost { .. } | Self::Killed { .. } => Level::Warn,
        }
    }

    /// The name of its kind, for programs that read logs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Starting { .. } => "workers-starting",
            Self::Retiring { .. } => "workers-retiring",
            Self::Lost { .. } => "worker-crashed",
            Self::Killed { .. } => "worker-killed",
            Self::Line { .. } => "output",
        }
    }
}

impl fmt::Display for SupervisorEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting { count, why } => {
                let why = why.iter().map(|why| format!(": {why}")).collect::<String>();
                write!(f, "starting {count} worker{}{why}", plural(*count as u64))
            }
            Self::Retiring { count, stay, why } => {
                write!(f, "retiring {count} worker{}, {stay} left: {why}", plural(*count as u64))
            }
            Self::Lost { worker, why, pause } => {
                write!(f, "worker {worker} {why}; it is started again in {}", span(*pause))
            }
            Self::Killed { worker, pid } => write!(f, "worker {worker} (pid {pid}) did not end in time: killed"),
            Self::Line { worker, line } => write!(f, "worker {worker}: {}", tame(line)),
        }
    }
}

/// The workers of a supervisor. Dropped, it kills them.
pub(super) struct Crew {
    supervisor: Arc<Supervisor>,
    members: BTreeMap<u64, Member>,
    kept: JoinSet<u64>,
    next: u64,
}

/// One that is kept running, or finishes what it runs.
struct Member {
    /// The process id, 0 while none runs.
    pid: Arc<AtomicU32>,
    /// Whether it crashed and is started again after a pause.
    rests: Arc<AtomicBool>,
    shutdown: Shutdown,
}

impl Crew {
    pub(super) fn new(supervisor: Supervisor) -> Self {
        Self { supervisor: Arc::new(supervisor), members: BTreeMap::new(), kept: JoinSet::new(), next: 0 }
    }

    /// Those that stay, by number, and the process id of each that runs.
    pub(super) fn staying(&self) -> impl Iterator<Item = (u64, Option<u32>)> {
        let staying = self.members.iter().filter(|(_, member)| member.shutdown.asked().is_none());
        staying.map(|(number, member)| (*number, Some(member.pid.load(Relaxed)).filter(|pid| *pid > 0)))
    }

    /// How many of those that stay have crashed and are started again after a pause. One whose start is pending has not.
    pub(super) fn resting(&self) -> usize {
        let staying = self.members.values().filter(|member| member.shutdown.asked().is_none());
        staying.filter(|member| member.rests.load(Relaxed)).count()
    }

    /// How many finish what they run.
    pub(super) fn leaving(&self) -> usize {
        self.members.values().filter(|member| member.shutdown.asked().is_some()).count()
    }

    /// Tells what happens to them.
    pub(super) fn tell(&self, event: &SupervisorEvent) {
        (self.supervisor.hear)(event);
    }

    /// Starts so many more.
    pub(super) fn start(&mut self, count: usize) {
        for _ in 0..count {
            self.next += 1;
            let (number, pid, rests) = (self.next, Arc::<AtomicU32>::default(), Arc::<AtomicBool>::default());
            let (supervisor, shutdown) = (self.supervisor.clone(), Shutdown::new());
            self.members.insert(number, Member { pid: pid.clone(), rests: rests.clone(), shutdown: shutdown.clone() });
            self.kept.spawn(async move {
                supervisor.keep(number, &pid, &rests, &shutdown).await;
                number
            });
        }
    }

    /// Has these finish what they run, and leave.
    pub(super) fn retire(&self, numbers: &[u64]) {
        numbers.iter().filter_map(|number| self.members.get(number)).for_each(|member| member.shutdown.graceful());
    }

    /// Returns when one has left; never if there is none.
    ///
    /// # Cancel safety
    /// One that has left meanwhile is told of by the next call.
    pub(super) async fn left(&mut self) {
        match self.kept.join_next().await {
            Some(Ok(number)) => drop(self.members.remove(&number)),
            Some(Err(_)) => {}
            None => std::future::pending().await,
        }
    }

    /// Ends all of them as `shutdown`, which has been asked, says.
    pub(super) async fn end(mut self, shutdown: &Shutdown) {
        self.members.values().for_each(|member| member.shutdown.graceful());
        let members = std::mem::take(&mut self.members);
        let at_once = async {
            shutdown.at_once().await;
            members.values().for_each(|member| member.shutdown.now());
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = async { while self.kept.join_next().await.is_some() {} } => {}
            () = at_once => {}
        }
    }
}

impl Supervisor {
    /// Keeps one worker running: one that crashed is replaced, after ever longer pauses if it keeps crashing.
    async fn keep(&self, worker: u64, pid: &AtomicU32, rests: &AtomicBool, shutdown: &Shutdown) {
        let mut backoff = Backoff::new(PAUSE.0, PAUSE.1);
        while shutdown.asked().is_none() {
            let begun = Instant::now();
            let why = match self.start(worker) {
                Ok(child) => {
                    pid.store(child.pid(), Relaxed);
                    self.tend(worker, child, shutdown).await
                }
                Err(error) => Some(format!("cannot be started: {error}")),
            };
            pid.store(0, Relaxed);
            if shutdown.asked().is_some() {
                return;
            }
            if begun.elapsed() > PAUSE.1 {
                backoff.reset();
            }
            let pause = backoff.pause();
            // One that ended well was told to by somebody, who tells this process too, sooner or later.
            if let Some(why) = why {
                (self.hear)(&SupervisorEvent::Lost { worker, why, pause });
            }
            rests.store(true, Relaxed);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = shutdown.any() => return,
            }
            rests.store(false, Relaxed);
        }
    }

    fn start(&self, worker: u64) -> io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        for variable in &self.without {
            command.env_remove(variable);
        }
        command.envs(self.variables.iter().map(|(name, it)| (name, it)));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = Child::start(&mut command)?;
        if let Some(stderr) = child.errors() {
            tokio::spawn(pass_on(worker, stderr, self.hear.clone()));
        }
        Ok(child)
    }

    /// Sees a worker to its end; why it crashed, if it did.
    async fn tend(&self, worker: u64, mut child: Child, shutdown: &Shutdown) -> Option<String> {
        let pid = child.pid();
        let mut leash = Leash::of(&mut child);
        let ended = tokio::select! {
            ended = child.wait() => Some(ended),
            () = shutdown.any() => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                leash.say(Word::Drain).await;
                tokio::select! {
                    ended = child.wait() => ended,
                    () = self.stop_at_once(&mut leash, shutdown) => {
                        (self.hear)(&SupervisorEvent::Killed { worker, pid });
                        child.kill().await;
                        return None;
                    }
                }
            }
        };
        match ended {
            Ok(status) if status.success() => None,
            Ok(status) => Some(format!("(pid {pid}) ended with {}", tame(&status.to_string()))),
            Err(error) => Some(format!("(pid {pid}) cannot be waited for: {error}")),
        }
    }

    /// When all have to stop at once, says so to the worker; returns when it has had its time.
    async fn stop_at_once(&self, leash: &mut Leash, shutdown: &Shutdown) {
        shutdown.at_once().await;
        leash.say(Word::Now).await;
        tokio::time::sleep(self.last_words).await;
    }
}

/// Passes on each line that a worker writes, whole.
async fn pass_on(worker: u64, stderr: impl AsyncRead + Unpin, hear: Arc<dyn Fn(&SupervisorEvent) + Send + Sync>) {
    let mut lines = BufReader::new(stderr).split(b'\n');
    // A line that is no text must not end the reading: the worker would wait for room in its pipe.
    while let Ok(Some(line)) = lines.next_segment().await {
        let line = String::from_utf8_lossy(&line).into_owned();
        hear(&SupervisorEvent::Line { worker, line });
    }
}

/// Has this process obey the leash that a [`Supervisor`] holds it by: it is asked to stop as it is told, and when its holder is
/// gone it is asked to finish, and to stop at once if that takes long.
///
/// # Errors
/// The system's, if there is no thread to be had.
pub fn obey_leash(shutdown: &Shutdown) -> io::Result<()> {
    let shutdown = shutdown.clone();
    let obey = move || {
        for word in words() {
            match word {
                Word::Drain => shutdown.graceful(),
                Word::Now => shutdown.now(),
            }
        }
        shutdown.graceful();
        thread::sleep(ALONE);
        shutdown.now();
    };
    thread::Builder::new().name("baton-leash".to_owned()).spawn(obey).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crew(program: &str, argument: &str) -> Crew {
        Crew::new(Supervisor {
            program: program.into(),
            arguments: vec![argument.into()],
            variables: Vec::new(),
            without: Vec::new(),
            last_words: Duration::from_secs(1),
            hear: Arc::new(|_| {}),
        })
    }

    #[tokio::test]
    async fn a_worker_whose_start_is_pending_has_not_crashed() {
        let mut crew = crew("sleep", "600");
        crew.start(2);
        let running = crew.staying().filter(|(_, pid)| pid.is_some()).count();
        assert_eq!((running, crew.staying().count(), crew.resting()), (0, 2, 0));
    }

    #[tokio::test]
    async fn a_worker_that_ended_rests_until_it_is_started_again() {
        let mut crew = crew("false", "");
        crew.start(1);
        let rests = async {
            while crew.resting() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), rests).await.unwrap();
        assert_eq!(crew.staying().count(), 1);
    }
}
