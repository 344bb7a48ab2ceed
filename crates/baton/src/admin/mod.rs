//! What people do to a fleet, for programs: a command line, a gateway, a dashboard, your own tools.
//!
//! An [`Admin`] is a visitor of a fleet. Its methods take plain arguments and give typed results that serialize;
//! nothing is printed, and errors carry their cause as data. What takes long tells by a callback: [`Note`]s of why it
//! waits, progress of an import, pages of errors.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use baton::{Fleet, admin::Admin};
//!
//! let fleet = Fleet::connect("memory:")?;
//! fleet.queue::<u32>("messages").push(&7).await?;
//! let admin = Admin::new(&fleet);
//! admin.pause(&"messages".parse()?).await?;
//! let overview = admin.overview().await?;
//! assert!(overview.queues[0].paused && overview.queues[0].ready == 1);
//! assert!(admin.audit(None, None).await?.balanced);
//! println!("{}", serde_json::to_string(&overview)?);
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! | file | what is done |
//! |---|---|
//! | `overview` | who is alive, who runs which source, how deep the queues are |
//! | `rates` | how fast the fleet is, once or again and again |
//! | `audit` | whether the books add up, and the data agrees with them |
//! | `errors`, `removal`, `causes` | failed messages: listed, handed over and removed, requeued, counted by cause |
//! | `calls` | a call is begun, while there is room within the time to wait |
//! | `import/` | long input pushed, exactly once under a key |
//! | `purge` | a queue is emptied, or forgotten altogether |
//! | `pause`, `stop`, `destroy` | a queue is held back; nodes are stopped and waited for; everything is removed |
//! | `sources`, `until_done` | sources are listed, removed, rewound; their end is waited for |
//! | `backup` | a store in a file is copied and brought back (feature `sqlite`) |
//! | `migrate` | a store of an older release is brought up to this one's format |
//! | `journal` | what a node did is written down, for whoever checks the fleet afterwards |
//! | `supervisor`, `spawner/` | worker processes are kept running on this machine, as many as the load asks for |
//!
//! A store that is not up is waited for as long as the fleet's options say, or [`Admin::wait`]. An operation that needs a
//! session has one of its own, so that operations disturb neither each other nor what the program does by the same
//! [`Fleet`].

mod audit;
#[cfg(feature = "sqlite")]
mod backup;
mod calls;
mod causes;
mod destroy;
mod errors;
mod failed;
mod import;
mod journal;
mod migrate;
mod note;
mod overview;
mod patience;
mod pause;
mod purge;
mod rates;
mod refused;
mod removal;
mod sources;
mod spawner;
mod stop;
mod supervisor;
mod until_done;
mod whereabouts;
pub mod wording;

use std::{sync::Arc, time::Duration};

#[cfg(feature = "sqlite")]
pub use self::backup::{BackedUp, BroughtBack, CopyError, back_up, restore};
use self::patience::{PROMPT, SHORTEST_ANSWER, Voice};
pub use self::{
    audit::{Audit, Fault},
    causes::{Cause, Causes, cause},
    destroy::Destroyed,
    errors::{HandedOver, Taken, Wanted},
    failed::FailedMessage,
    import::{Account, BadBody, Import, ImportCause, ImportError, Importer, Inputs, Progress, Receipt},
    journal::Journal,
    migrate::{Migrated, MigrationProgress},
    note::{Note, NoteEar},
    overview::{NodeState, Overview, QueueState, SourceState},
    pause::Paused,
    purge::{PurgedQueue, RemovedQueue},
    rates::{Glance, Latency, Rates, Watch},
    refused::{AdminError, Subject, Unknown},
    spawner::{Limits, Spawner, Workforce},
    stop::Stopped,
    supervisor::{Supervisor, SupervisorEvent, obey_leash},
    until_done::HeldUp,
    whereabouts::Whereabouts,
};
use crate::{
    Fleet,
    message::Name,
    store::{ReadProgress, StoreError, Survey, TakeSurvey, session::Session},
};

/// Does to a fleet what people do to it. Operations may be under way at the same time, by one admin or by clones.
#[derive(Clone)]
pub struct Admin {
    fleet: Fleet,
    wait: Duration,
    /// An answer is waited for at least this long, however short the time to wait is.
    shortest_answer: Duration,
    voice: Arc<Voice>,
}

impl Admin {
    /// An admin of this fleet. Nothing is sent yet.
    #[must_use]
    pub fn new(fleet: &Fleet) -> Self {
        let (fleet, wait) = fleet.visited();
        Self { fleet, wait, shortest_answer: SHORTEST_ANSWER, voice: Arc::default() }
    }

    /// The same admin with a session of its own: for one operation.
    fn apart(&self) -> Self {
        Self { fleet: self.fleet.visited().0, ..self.clone() }
    }

    /// As [`Admin::apart`], for an operation that ends within its time to wait where the store stands still.
    fn prompt(&self) -> Self {
        let fleet = self.fleet.visited_within((self.wait / 2).max(PROMPT));
        Self { fleet, shortest_answer: PROMPT, ..self.clone() }
    }

    /// How long a store that is not up, or has no room, is waited for.
    #[must_use]
    pub fn wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// Has told what a person who waits may want to know; each kind of wait is told once.
    #[must_use]
    pub fn reporting_to(self, ear: NoteEar) -> Self {
        Self { voice: Arc::new(Voice::new(ear)), ..self }
    }

    /// The fleet as this admin visits it: calls by this handle use [`Admin::session`] and do not wait.
    #[must_use]
    pub const fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// Whether a queue has room for so many bytes more, as far as the store says: to ask before they are sent again.
    async fn has_room(&self, queue: &Name, bytes: u64) -> Result<bool, StoreError> {
        let progress = self.ask(ReadProgress { queue: queue.clone(), source: None }).await?;
        Ok(progress.books.is_none_or(|books| books.has_room(bytes, self.fleet.max_queue_bytes())))
    }

    /// The whole fleet at one instant, without its messages.
    ///
    /// # Errors
    /// The store's failure after the time to wait for it.
    pub async fn survey(&self) -> Result<Survey, StoreError> {
        self.ask(TakeSurvey).await
    }

    /// Whether the store has anything of the fleet: it was used, and not removed since.
    ///
    /// # Errors
    /// The store's failure after the time to wait for it.
    pub async fn exists(&self) -> Result<bool, StoreError> {
        let survey = self.survey().await?;
        if !(survey.sessions.is_empty() && survey.sources.is_empty() && survey.queues.is_empty()) {
            return Ok(true);
        }
        match self.fleets().await? {
            Some(fleets) => Ok(fleets.contains(self.fleet.name())),
            None => {
                let standing = self.when_up(Some(self.answer_limit()), || self.fleet.store().standing()).await?;
                Ok(standing.format.is_some())
            }
        }
    }

    /// The fleets in the store; nothing where that cannot be told cheaply, as on Redis.
    ///
    /// # Errors
    /// The store's failure after the time to wait for it.
    pub async fn fleets(&self) -> Result<Option<Vec<Name>>, StoreError> {
        self.when_up(Some(self.answer_limit()), || self.fleet.store().fleets()).await
    }

    /// A session for calls of the program's own, joined now if there is none or the last one is over; it lasts until
    /// [`Admin::leave`].
    ///
    /// # Errors
    /// The store's failure after the time to wait for it; its refusal at once.
    pub async fn session(&self) -> Result<Session, StoreError> {
        self.when_up(Some(self.answer_limit()), || self.fleet.session()).await
    }

    /// Tells that the queue, if one is named, is none of the fleet's: what follows is true, and may not be what was
    /// meant.
    fn note_unknown(&self, queue: Option<&Name>, survey: &Survey) -> Option<Unknown> {
        let unknown = queue.and_then(|queue| Unknown::queue(queue, survey));
        if let Some(unknown) = &unknown {
            self.voice.tell(&Note::Unknown(unknown.clone()));
        }
        unknown
    }
}
