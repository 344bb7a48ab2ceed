//! The crew of `up`: worker processes, kept running while it runs and ended when it ends.
//!
//! Each has a leash: a pipe on its standard input that says `drain` or `now`, and whose end tells it that this process
//! is gone, however it went. Each is a process group of its own, so that Ctrl-C at the terminal reaches only the one
//! that holds the leashes, and whoever it concerns hears it once.

mod panel;

use std::{ffi::OsString, path::PathBuf, process::Stdio, sync::Arc, time::Duration};

use baton::{Cancel, store::StoreUrl};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader},
    process::{Child, Command},
    task::JoinSet,
    time::Instant,
};

pub(crate) use self::panel::Panel;
use crate::{
    exit::Failure,
    member::{Log, Work},
    output::{plural, span, tame},
    settings::Settings,
};

/// The pause before a crashed worker is replaced, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// How long, over its lease, a worker that must stop at once may take.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// How workers are started.
pub(crate) struct Crew {
    program: PathBuf,
    flags: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    last_words: Duration,
    log: Arc<Log>,
}

impl Crew {
    /// A crew for this work, on the store in force.
    pub(crate) fn new(settings: &Settings, work: &Work, log: &Arc<Log>) -> Result<Self, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::new(format!("cannot find this program: {error}"), "add --workers 0"))?;
        let flags = ["node", "--role", "worker", "--leashed"].map(OsString::from);
        let flags = flags.into_iter().chain(work.flags()).collect();
        // A URL may hold a password, which has no place in a list of processes.
        let mut variables = vec![
            ("BATON_STORE", address(&settings.store.value)),
            ("BATON_FLEET", settings.fleet.value.to_string().into()),
            ("BATON_WAIT", settings.wait.value.as_secs_f64().to_string().into()),
        ];
        let file = settings.file.as_ref().filter(|_| settings.file_read);
        variables.extend(file.map(|path| ("BATON_CONFIG", path.clone().into_os_string())));
        Ok(Self { program, flags, variables, last_words: work.lease + LAST_WORDS, log: log.clone() })
    }

    /// Keeps so many workers running until asked to stop, and returns when all have ended.
    pub(crate) async fn run(self, count: usize, cancel: Cancel) {
        let crew = Arc::new(self);
        if count > 0 {
            crew.log.line(&format!("starting {count} worker{}", plural(count as u64)));
        }
        let mut places = JoinSet::new();
        for _ in 0..count {
            let (crew, cancel) = (crew.clone(), cancel.clone());
            places.spawn(async move { crew.keep(&cancel).await });
        }
        while places.join_next().await.is_some() {}
    }

    /// Keeps one worker running: one that crashed is replaced, after ever longer pauses if it keeps crashing.
    async fn keep(&self, cancel: &Cancel) {
        let mut pause = PAUSE.0;
        while cancel.asked().is_none() {
            let begun = Instant::now();
            let why = match self.start() {
                Ok(child) => match self.tend(child, cancel).await {
                    None => return,
                    Some(why) => why,
                },
                Err(error) => format!("cannot start a worker: {error}"),
            };
            if cancel.asked().is_some() {
                return;
            }
            if begun.elapsed() > PAUSE.1 {
                pause = PAUSE.0;
            }
            self.log.line(&format!("{why}; another one is started in {}", span(pause)));
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(PAUSE.1),
                () = cancel.any() => return,
            }
        }
    }

    fn start(&self) -> std::io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(&self.flags).env_remove("BATON_CONFIG").envs(self.variables.iter().map(|(name, it)| (name, it)));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.process_group(0).kill_on_drop(true).spawn()?;
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(pass_on(stderr, self.log.clone()));
        }
        Ok(child)
    }

    /// Sees a worker to its end; why it crashed, if it did.
    async fn tend(&self, mut child: Child, cancel: &Cancel) -> Option<String> {
        let pid = child.id().unwrap_or(0);
        let mut leash = child.stdin.take();
        let ended = tokio::select! {
            ended = child.wait() => Some(ended),
            () = cancel.any() => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                // A worker that has just ended hears nothing, and need not.
                if let Some(leash) = &mut leash {
                    leash.write_all(b"drain\n").await.ok();
                }
                tokio::select! {
                    ended = child.wait() => ended,
                    () = self.stop_at_once(&mut leash, cancel) => {
                        self.log.line(&format!("worker {pid} does not end: killed"));
                        child.kill().await.ok();
                        return None;
                    }
                }
            }
        };
        match ended {
            Ok(status) if status.success() => None,
            Ok(status) => Some(format!("worker {pid} ended with {}", tame(&status.to_string()))),
            Err(error) => Some(format!("worker {pid} is lost: {error}")),
        }
    }

    /// When all have to stop at once, says so to the worker; returns when it has had its time.
    async fn stop_at_once(&self, leash: &mut Option<tokio::process::ChildStdin>, cancel: &Cancel) {
        cancel.at_once().await;
        if let Some(leash) = leash {
            leash.write_all(b"now\n").await.ok();
        }
        tokio::time::sleep(self.last_words).await;
    }
}

/// Passes a worker's log on.
async fn pass_on(stderr: impl AsyncRead + Unpin, log: Arc<Log>) {
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        log.raw(&tame(&line));
    }
}

/// The store as a variable says it, password and all.
pub(crate) fn address(url: &StoreUrl) -> OsString {
    match url {
        StoreUrl::Sqlite(path) => {
            let mut address = OsString::from("sqlite://");
            address.push(path);
            address
        }
        StoreUrl::Redis(url) => url.as_str().into(),
        other => other.to_string().into(),
    }
}
