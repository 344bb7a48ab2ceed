//! A process that pushes singly: one message a call, the next one when the last is answered.
//!
//! It joins, says that it is ready, begins when it is told to, and then tells when it began and ended and how many
//! messages are stored. It ends at once when whoever started it is gone. Both ends of that are here.

use std::{
    fmt::Display,
    io::{self, BufRead as _, Write as _},
    process::Stdio,
    thread,
    time::Duration,
};

use baton::{Shutdown, admin::Admin, settings::Settings};
use tokio::{
    io::{BufReader, Lines},
    process::ChildStdout,
    time::Instant,
};

use super::{
    Tell, bodies,
    receiver::now_ns,
    subprocess::Subprocess,
    target::{MAX_QUEUE_BYTES, Target, connect},
};
use crate::failure::Failure;

/// How long a producer pushes: a slow disk takes fewer messages.
const LIMIT: Duration = Duration::from_secs(8);
/// How long its next line is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Digits of a message's number, at the head of its body.
pub(super) const NUMBER_DIGITS: usize = 10;

/// What one process pushes.
#[derive(Debug)]
pub struct Producer {
    /// To this queue.
    pub queue: String,
    /// At most so many messages.
    pub messages: u64,
    /// Bytes of a body; a few more if its number needs them.
    pub bytes: usize,
}

impl Producer {
    /// Pushes when it is told to.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn run(self, settings: &Settings, ear: &Tell) -> Result<(), Failure> {
        let (begin, gone) = (Shutdown::new(), Shutdown::new());
        listen(&begin, &gone)
            .map_err(|error| Failure::new(format!("cannot start a thread: {error}"), "free some threads"))?;
        let admin = connect(settings, Some(MAX_QUEUE_BYTES), ear)?;
        // In a task, as what a process pushes for a request is.
        let pushing = tokio::spawn({
            let admin = admin.clone();
            async move { self.push(&admin, &begin).await }
        });
        let pushed = tokio::select! {
            biased;
            () = gone.any() => Ok(()),
            pushed = pushing => pushed.unwrap_or_else(|error| Err(failed(&error))),
        };
        admin.leave().await;
        pushed
    }

    async fn push(&self, admin: &Admin, begin: &Shutdown) -> Result<(), Failure> {
        admin.session().await.map_err(|error| failed(&error))?;
        let (queue, noise) = (admin.fleet().queue::<str>(&self.queue), self.noise());
        say("ready");
        begin.any().await;
        let (mut calls, begun, begun_ns) = (0, Instant::now(), now_ns());
        while calls < self.messages && begun.elapsed() < LIMIT {
            let body = format!("{calls:0NUMBER_DIGITS$}{noise}");
            queue.push(&body).await.map_err(|error| failed(&error))?;
            calls += 1;
        }
        say(&format!("{begun_ns} {} {calls}", now_ns()));
        Ok(())
    }

    /// What follows the number.
    fn noise(&self) -> String {
        bodies::text(self.bytes.saturating_sub(NUMBER_DIGITS))
    }
}

/// The first line on the standard input means to begin, its end that nobody waits any more.
fn listen(begin: &Shutdown, gone: &Shutdown) -> io::Result<()> {
    let (begin, gone) = (begin.clone(), gone.clone());
    let hear = move || {
        for _ in io::stdin().lock().lines().map_while(Result::ok) {
            begin.now();
        }
        gone.now();
    };
    thread::Builder::new().name("baton-leash".to_owned()).spawn(hear).map(drop)
}

/// Nobody reads what cannot be written.
fn say(line: &str) {
    writeln!(io::stdout().lock(), "{line}").ok();
}

fn failed(error: &dyn Display) -> Failure {
    Failure::new(error.to_string(), "run the command again")
}

/// Producers that are ready.
pub(super) struct Producers(Vec<(Subprocess, Lines<BufReader<ChildStdout>>)>);

/// What producers have pushed together.
pub(super) struct Pushed {
    pub(super) count: u64,
    /// When the first of them began, in nanoseconds since 1970.
    pub(super) begun_ns: u64,
    /// From the first one's first call to the last one's last answer.
    pub(super) took: Duration,
}

impl Producers {
    /// So many processes, which push `messages` each, once all of them are ready.
    pub(super) async fn start(target: &Target, number: u64, what: &Producer) -> Result<Self, Failure> {
        let (messages, bytes) = (what.messages.to_string(), what.bytes.to_string());
        let arguments = ["bench", "--produce", &what.queue, "--messages", &messages, "--bytes", &bytes];
        let mut all = Vec::new();
        for _ in 0..number {
            let mut child = Subprocess::start(target, &arguments, Stdio::piped())?;
            let Some(lines) = child.lines() else { return Err(failed(&"a producer has no output")) };
            all.push((child, lines));
        }
        for (child, lines) in &mut all {
            next(child, lines).await?;
        }
        Ok(Self(all))
    }

    /// Has them push, and notes what they have pushed.
    pub(super) async fn push(&mut self, target: &Target, queue: &str) -> Result<Pushed, Failure> {
        for (child, _) in &mut self.0 {
            child.ask_to_end().await;
        }
        let (mut count, mut begun_ns, mut ended_ns) = (0, u64::MAX, 0);
        for (child, lines) in &mut self.0 {
            let line = next(child, lines).await?;
            let mut numbers = line.split(' ').map(str::parse::<u64>);
            let (Some(Ok(begun)), Some(Ok(ended)), Some(Ok(calls))) = (numbers.next(), numbers.next(), numbers.next())
            else {
                return Err(failed(&format!("a producer said {line:?}")));
            };
            target.note(queue, calls);
            (count, begun_ns, ended_ns) = (count + calls, begun_ns.min(begun), ended_ns.max(ended));
        }
        Ok(Pushed { count, begun_ns, took: Duration::from_nanos(ended_ns.saturating_sub(begun_ns)) })
    }

    /// Waits until all have left.
    pub(super) async fn stop(self) -> Result<(), Failure> {
        for (child, _) in self.0 {
            child.stop().await?;
        }
        Ok(())
    }
}

/// The next line that a child says.
pub(super) async fn next(child: &mut Subprocess, lines: &mut Lines<BufReader<ChildStdout>>) -> Result<String, Failure> {
    match tokio::time::timeout(PATIENCE, lines.next_line()).await {
        Ok(Ok(Some(line))) => Ok(line),
        Ok(Ok(None)) => {
            child.check()?;
            Err(failed(&"a process of the measurement ended early"))
        }
        Ok(Err(error)) => Err(failed(&format!("a child cannot be read: {error}"))),
        Err(_) => Err(failed(&"a process of the measurement does not get on")),
    }
}
