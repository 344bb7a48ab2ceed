//! One store under test: its fleet of one name, what was pushed to it, and the books to compare that with.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use baton::{
    ConnectError, Fleet, FleetOptions, Name,
    admin::{Admin, AdminError},
    settings::{Origin, Setting, Settings},
    store::{Books, KEY_TTL_MS, Kind, MAX_KEYS, MAX_RESULTS, Order, StoreError, StoreUrl, Survey, session::Session},
};
use tokio::time::Instant;

use super::{Tell, bare::Bare, subprocess::Subprocess};
use crate::failure::Failure;

/// How often the books are read while something is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(3);
/// How long nothing may move before the measurement is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// No bound that a measurement should run into.
pub(super) const MAX_QUEUE_BYTES: u64 = 1 << 50;
/// The longest a deep recount may hold the store.
const MAX_HOLD: Duration = Duration::from_secs(60);

/// A store under test.
pub(super) struct Target {
    pub(super) settings: Settings,
    pub(super) admin: Admin,
    /// Hears what a person may want to know.
    pub(super) tell: Tell,
    /// The way past the accounting; only Redis has one.
    pub(super) bare: Option<Bare>,
    /// What was pushed to each queue, as far as it is known here.
    pushed: Mutex<BTreeMap<String, u64>>,
}

impl Target {
    /// Opens a store with a fleet of a new name.
    pub(super) async fn open(url: StoreUrl, wait: Duration, tell: Tell) -> Result<Self, Failure> {
        let fleet = queue(&format!("bench-{:08x}", fastrand::u32(..)))?;
        let settings = Settings {
            store: Setting { value: url, from: Origin::Said },
            fleet: Setting { value: fleet, from: Origin::Said },
            wait: Setting { value: wait, from: Origin::Said },
            max_keys: Setting { value: MAX_KEYS, from: Origin::Default },
            max_results: Setting { value: MAX_RESULTS, from: Origin::Default },
            key_lifetime: Setting { value: Duration::from_millis(KEY_TTL_MS), from: Origin::Default },
            fleet_file: None,
            user_file: None,
            user_file_read: false,
        };
        let admin = connect(&settings, Some(MAX_QUEUE_BYTES), &tell)?;
        admin.survey().await.map_err(|error| failure(&settings, error))?;
        let bare = match redis_url(&settings) {
            Some(url) => Some(Bare::open(url, &settings.fleet.value).await?),
            None => None,
        };
        Ok(Self { settings, admin, tell, bare, pushed: Mutex::default() })
    }

    /// What an operation gave, or its failure.
    pub(super) fn given<T>(&self, result: Result<T, impl Into<AdminError>>) -> Result<T, Failure> {
        result.map_err(|error| failure(&self.settings, error))
    }

    /// A failure of this store.
    pub(super) fn failure(&self, error: &StoreError) -> Failure {
        failure(&self.settings, error.clone())
    }

    /// The session by which it pushes.
    pub(super) async fn session(&self) -> Result<Session, Failure> {
        self.given(self.admin.session().await)
    }

    /// The fleet, for whoever does its own waiting.
    pub(super) const fn fleet(&self) -> &Fleet {
        self.admin.fleet()
    }

    /// Notes that messages were pushed.
    pub(super) fn note(&self, queue: &str, count: u64) {
        *self.pushed.lock().unwrap_or_else(PoisonError::into_inner).entry(queue.to_owned()).or_default() += count;
    }

    pub(super) async fn survey(&self) -> Result<Survey, Failure> {
        self.given(self.admin.survey().await)
    }

    pub(super) async fn books(&self, name: &str) -> Result<Books, Failure> {
        let found = self.survey().await?.queues.into_iter().find(|books| books.queue.as_str() == name);
        found.map_or_else(|| Ok(Books::new(queue(name)?)), Ok)
    }

    /// Holds a queue back, or lets it go on.
    pub(super) async fn pause(&self, name: &str, paused: bool) -> Result<(), Failure> {
        let name = queue(name)?;
        let order = if paused { Order::Pause(name) } else { Order::Resume(name) };
        self.given(self.admin.fleet().ask(order).await)
    }

    /// Waits until a child is a node of the fleet.
    pub(super) async fn joined(&self, child: &mut Subprocess) -> Result<(), Failure> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            child.check()?;
            let survey = self.survey().await?;
            if survey.sessions.iter().any(|it| it.kind == Kind::Node && it.pid == child.pid()) {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Err(Failure::new("a process of the measurement does not join", "run the command again"))
    }

    /// Waits until the books of a queue say that so many messages are done; how many there were then.
    pub(super) async fn until_done(&self, queue: &str, goal: u64, worker: &mut Subprocess) -> Result<u64, Failure> {
        let (mut seen, mut moved) = (0, Instant::now());
        loop {
            let books = self.books(queue).await?;
            if books.done >= goal {
                return Ok(books.done);
            }
            worker.check()?;
            if books.done != seen {
                (seen, moved) = (books.done, Instant::now());
            }
            if moved.elapsed() > PATIENCE {
                let cause = format!("queue {queue} stands still at {} of {goal} done", books.done);
                return Err(Failure::new(cause, "run the command again"));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Has everything processed that still waits in a queue.
    pub(super) async fn drain(&self, queue: &str) -> Result<(), Failure> {
        let books = self.books(queue).await?;
        if books.done == books.pushed {
            return Ok(());
        }
        let mut worker = Subprocess::worker(self, queue).await?;
        self.until_done(queue, books.pushed, &mut worker).await?;
        worker.stop().await
    }

    /// Processes what is left and proves that every message pushed is done, once; how many that were.
    pub(super) async fn settle_up(&self) -> Result<u64, Failure> {
        for books in self.survey().await?.queues {
            self.drain(books.queue.as_str()).await?;
        }
        let audit = self.given(self.admin.audit(None, Some(MAX_HOLD)).await)?;
        let mut faults: Vec<String> = audit.unbalanced.iter().map(ToString::to_string).collect();
        let pushed = self.pushed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (queue, pushed) in pushed {
            let books = audit.books.iter().find(|it| it.queue.as_str() == queue);
            let done = books.map_or(0, |it| it.done);
            if done != pushed {
                faults.push(format!("queue {queue}: {pushed} were pushed and {done} are done"));
            }
        }
        if faults.is_empty() {
            return Ok(audit.books.iter().map(|it| it.done).sum());
        }
        Err(Failure::Unbalanced(format!("NOT balanced: {}", faults.join(", "))))
    }
}

/// Whoever operates the fleet of these settings, whose store is made if it is missing.
pub(super) fn connect(settings: &Settings, max_queue_bytes: Option<u64>, tell: &Tell) -> Result<Admin, Failure> {
    let mut options = FleetOptions::new(settings.fleet.value.clone());
    // The waiting is the admin's, who tells the person who waits.
    options.wait = Duration::ZERO;
    if let Some(max_queue_bytes) = max_queue_bytes {
        options.session.max_queue_bytes = max_queue_bytes;
    }
    let fleet = Fleet::connect_with(&settings.store.value, options).map_err(|error| match error {
        ConnectError::Store(error) => failure(settings, error),
        other => Failure::usage(other.to_string(), "name another store"),
    })?;
    let (heard, tell) = (Arc::clone(tell), Arc::clone(tell));
    fleet.store().hear(Arc::new(move |event| heard(&event.to_string())));
    Ok(Admin::new(&fleet).wait(settings.wait.value).reporting_to(Arc::new(move |note| tell(&note.to_string()))))
}

fn failure(settings: &Settings, error: impl Into<AdminError>) -> Failure {
    Failure::Store { error: Box::new(error.into()), url: Box::new(settings.store.value.clone()) }
}

/// The address of the store in force, if that is Redis.
pub(super) fn redis_url(settings: &Settings) -> Option<&str> {
    match &settings.store.value {
        StoreUrl::Redis(url) => Some(url.as_str()),
        _ => None,
    }
}

/// A queue's or a fleet's name.
pub(super) fn queue(name: &str) -> Result<Name, Failure> {
    Name::new(name).map_err(|error| Failure::new(error.to_string(), "report this"))
}
