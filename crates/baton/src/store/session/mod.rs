//! A session as its owner sees it: the one place that owns its numbers.
//!
//! Every numbered call runs in a task of the session, which repeats it until the store has answered. So a caller
//! may drop its future at any time: no number is abandoned, no claim is stranded (what arrives for nobody is handed
//! back), and a lost reply is never taken for a lost call. A number that may have reached the store stays bound to
//! its content for ever, since the store may still be about to execute it.
//!
//! A session that the store no longer knows is over: everything under way and everything later answers
//! [`Refusal::Stale`], and its owner joins anew.

mod beat;
mod caller;
mod claims;
mod disposals;
mod environment;
mod finishing;
mod packing;
mod pushes;
mod settles;
mod submits;
mod vital;
mod wake_listener;
mod weights;

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::{mpsc, watch},
};

pub(crate) use self::packing::packed;
use self::{
    beat::Heart,
    caller::Caller,
    claims::{ClaimSize, Claimer},
    disposals::Disposals,
    submits::Bounds,
    vital::vital,
    wake_listener::WakeListener,
    weights::Weights,
};
pub use self::{
    claims::{ClaimGuard, ClaimReply},
    environment::Environment,
    pushes::{Fate, Pushes},
    settles::Reported,
    submits::SubmitError,
};
use super::{
    Beaten, Disposal, Disposed, Join, Joined, KEY_TTL_MS, Kind, Leave, MAX_KEYS, MAX_RESULTS, MoveBookmark, Offer,
    Operation, Purged, ReadProgress, Refusal, RemovalBegin, RemovalBegun, Resign, Store, StoreError, SubmissionVerdict,
    Take, Taken, ask,
};
use crate::{
    drivers::{self, Missing},
    message::{MessageId, Name, Run, SessionId, Submission},
};

/// How a session presents itself. The defaults named here are those of [`SessionOptions::client`].
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// Node or client; a client by default.
    pub kind: Kind,
    /// The queues it works for; none by default.
    pub queues: Vec<Name>,
    /// The sources it can run; none by default.
    pub offers: Vec<Offer>,
    /// The join number of the session this one goes on for; none by default.
    pub former: Option<u64>,
    /// Silence after which its work goes to others; 1 s by default.
    pub lease: Duration,
    /// How often it beats, at most a third of the lease; 200 ms by default.
    pub heartbeat: Duration,
    /// How long a beat goes unanswered before the store counts as away; 2 s by default.
    pub beat_timeout: Duration,
    /// Bytes a queue may hold before submits have to wait; 4 GiB by default, 64 MiB for the sources of a node.
    pub max_queue_bytes: u64,
    /// Idempotency keys that may live in the fleet before it submits no new ones; a million by default.
    pub max_keys: u64,
    /// How long the keys of what is pushed once live: a millisecond to 366 days, 24 hours by default.
    pub key_lifetime: Duration,
    /// Bytes that the results kept in the fleet may take before the oldest go, and as many for calls that have ended; 256 MiB
    /// by default.
    pub max_results: u64,
    /// Its environment: the system by default, or a simulator's seed.
    pub environment: Environment,
}

impl SessionOptions {
    /// A visitor with the default lease: pushes, removes, reads.
    #[must_use]
    pub const fn client() -> Self {
        Self {
            kind: Kind::Client,
            queues: Vec::new(),
            offers: Vec::new(),
            former: None,
            lease: Duration::from_secs(1),
            heartbeat: Duration::from_millis(200),
            beat_timeout: Duration::from_secs(2),
            max_queue_bytes: 4 << 30,
            max_keys: MAX_KEYS,
            key_lifetime: Duration::from_millis(KEY_TTL_MS),
            max_results: MAX_RESULTS,
            environment: Environment::system(),
        }
    }
}

/// A joined session; clones share it. It leaves by [`Session::leave`], or its lease runs out after the last clone
/// is gone.
#[derive(Clone)]
pub struct Session {
    caller: Caller,
    join_no: u64,
    incarnation: Arc<str>,
    heart: Arc<Heart>,
    claimer: Claimer,
    listener: Arc<OnceLock<WakeListener>>,
    disposals: Arc<Disposals>,
    submits: mpsc::Sender<submits::Item>,
    beats: watch::Receiver<Option<Beaten>>,
    /// The runtime that its calls are made in.
    home: Handle,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Session").field(&self.id()).finish()
    }
}

impl Session {
    /// Joins the fleet and begins to beat.
    ///
    /// # Errors
    /// The store's refusal, or its failure if it cannot be reached: joining is not repeated here.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn join(store: Arc<dyn Store>, options: SessionOptions) -> Result<Self, StoreError> {
        Self::join_for(store, options, &Handle::current()).await
    }

    /// The same where the work of the session is done in another runtime: a node beats only while that one is alive.
    ///
    /// # Errors
    /// As [`Session::join`].
    pub(crate) async fn join_for(
        store: Arc<dyn Store>, options: SessionOptions, work: &Handle,
    ) -> Result<Self, StoreError> {
        drivers::timers_here()?;
        drivers::timers(work)?;
        let id = options.environment.session_id();
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let join = Join {
            session: id,
            kind: options.kind,
            host: host_name(),
            pid: std::process::id(),
            queues: options.queues,
            lease_ms: millis(options.lease),
            heartbeat_ms: millis(options.heartbeat),
            offers: options.offers,
            former: options.former,
        };
        let Joined { join_no, incarnation, .. } = ask(&*store, join).await?;
        let caller = Caller::new(store, id);
        let (submits, submit_items) = mpsc::channel(4096);
        let (settles, settle_items) = mpsc::unbounded_channel();
        let (beaten, beats) = watch::channel(None);
        let bounds = Bounds { max_queue_bytes: options.max_queue_bytes, max_keys: options.max_keys };
        tokio::spawn(vital(caller.clone(), submits::run(caller.clone(), submit_items, bounds)));
        let weights = Arc::<Weights>::default();
        let settling = settles::run(caller.clone(), settle_items, weights.clone(), options.max_results);
        tokio::spawn(vital(caller.clone(), settling));
        if caller.is_over() {
            // A runtime that shuts down drops new tasks in place. Nothing else can have ended them: they had nothing to do.
            return Err(Missing::Runtime.into());
        }
        let heart = Arc::new(Heart::default());
        let rhythm = beat::Rhythm { heartbeat: options.heartbeat, beat_timeout: options.beat_timeout };
        match options.kind {
            Kind::Node if options.environment.has_threads() => {
                beat::on_thread(&caller, heart.clone(), rhythm, beaten, work)?;
            }
            kind @ (Kind::Node | Kind::Client) => {
                beat::in_runtime(caller.clone(), heart.clone(), rhythm, beaten, kind == Kind::Client);
            }
        }
        let claimer = Claimer { caller: caller.clone(), numbers: Arc::default(), settles, weights };
        let (listener, disposals) = (Arc::default(), Arc::default());
        let incarnation = incarnation.into();
        let home = Handle::current();
        Ok(Self { join_no, incarnation, heart, caller, claimer, listener, disposals, submits, beats, home })
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> SessionId {
        self.caller.id()
    }

    /// Its place among all joins, or that of the session it goes on for.
    #[must_use]
    pub const fn join_no(&self) -> u64 {
        self.join_no
    }

    /// What the data it joined is known by: another one means other data.
    #[must_use]
    pub fn incarnation(&self) -> Arc<str> {
        Arc::clone(&self.incarnation)
    }

    /// Whether the store still knows it, as far as is known here.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.caller.is_over()
    }

    /// Whether it is over because one of its tasks panicked.
    #[must_use]
    pub(crate) fn has_broken_off(&self) -> bool {
        self.caller.has_broken_off()
    }

    /// What keeps the store from answering at this moment, while calls are being repeated.
    #[must_use]
    pub(crate) fn trouble(&self) -> Option<StoreError> {
        self.caller.trouble()
    }

    /// The same as it changes; the beats, which are not repeated, speak here too.
    #[must_use]
    pub fn troubles(&self) -> watch::Receiver<Option<StoreError>> {
        self.caller.troubles()
    }

    /// Follows why the store takes nothing new: nothing unless the last call that brought something found no room.
    #[must_use]
    pub(crate) fn shortages(&self) -> watch::Receiver<Option<StoreError>> {
        self.caller.shortages()
    }

    /// Returns once the session is over.
    pub async fn over(&self) {
        self.caller.ended().await;
    }

    /// What its beats report.
    #[must_use]
    pub(crate) fn heart(&self) -> &Heart {
        &self.heart
    }

    /// The answers to its beats; only the newest is kept.
    #[must_use]
    pub(crate) fn beats(&self) -> watch::Receiver<Option<Beaten>> {
        self.beats.clone()
    }

    /// Hands messages in, together with whatever else waits at that moment; a verdict a submission.
    ///
    /// # Errors
    /// [`SubmitError`] says whether the submissions may have been stored all the same.
    ///
    /// # Cancel safety
    /// The submissions are handed in whether or not the future is kept.
    pub async fn submit(
        &self, submissions: Vec<Submission>, bookmark: Option<MoveBookmark>,
    ) -> Result<Vec<SubmissionVerdict>, SubmitError> {
        submits::hand_in(&self.caller, &self.submits, submissions, bookmark).await
    }

    /// As [`Session::submit`], but a store that has no room is not waited for.
    ///
    /// # Errors
    /// As of [`Session::submit`]; [`StoreError::NoRoom`] means that nothing was stored, unless it says otherwise.
    ///
    /// # Cancel safety
    /// Submissions that were not sent yet when the future is dropped are not.
    pub async fn submit_if_room(&self, submissions: Vec<Submission>) -> Result<Vec<SubmissionVerdict>, SubmitError> {
        submits::hand_in_if_room(&self.caller, &self.submits, submissions).await
    }

    /// Claims messages of a queue.
    ///
    /// # Errors
    /// [`Refusal::Stale`] when the session is over, or the store's failure if repeating cannot help.
    ///
    /// # Cancel safety
    /// What was claimed for a dropped future is handed back; see [`ClaimGuard`].
    pub async fn claim(&self, queue: Name, n: u32, max_bytes: u64) -> Result<ClaimReply, StoreError> {
        claims::claim(self, ClaimSize { queue, n, max_bytes }).await
    }

    /// The same as soon as the queue may have messages: when others make some ready, and after `due`. To be called when
    /// the last claim of the queue has left nothing behind; only one such call a queue at a time.
    ///
    /// # Errors
    /// As [`Session::claim`].
    ///
    /// # Cancel safety
    /// As [`Session::claim`].
    pub async fn claim_when_ready(
        &self, queue: Name, n: u32, max_bytes: u64, due: Option<Duration>,
    ) -> Result<ClaimReply, StoreError> {
        wake_listener::claim_when_ready(self, ClaimSize { queue, n, max_bytes }, due).await
    }

    /// Looks after what the store holds for this session, as a beat told it, under numbers that it does not take to be in
    /// use: late copies of empty claims have got messages under them. They go to the claim that waits under the number,
    /// or back.
    pub(crate) fn look_after_strays(&self, claims: Vec<(Name, u64)>) {
        for (queue, claim_no) in claims {
            if self.claimer.numbers.take(&queue, claim_no) {
                self.claimer.hand_back(queue, claim_no);
            } else if let Some(listener) = self.listener.get() {
                listener.wake_under(&queue, claim_no);
            }
        }
    }

    /// Reports outcomes, together with whatever else is reported at that moment; the refused runs among them, and those
    /// that the store has no room for.
    ///
    /// # Errors
    /// [`Refusal::Stale`] when the session is over, or the store's failure if repeating cannot help.
    ///
    /// # Cancel safety
    /// The report is made whether or not the future is kept.
    pub async fn settle(&self, runs: Vec<Run>) -> Result<Reported, StoreError> {
        settles::report(&self.claimer.settles, runs).await
    }

    /// Tells the store what was begun here and will not be reported, since the session is over: it counts that. Whether it
    /// has heard of it.
    pub(crate) async fn report_late(&self, runs: Vec<Run>) -> bool {
        settles::late(&self.caller, runs).await
    }

    /// The answer to an operation, however often it takes.
    ///
    /// # Errors
    /// The store's refusal, or its failure if repeating cannot help.
    pub(crate) async fn ask<O: Operation>(&self, operation: O) -> Result<O::Answer, StoreError> {
        self.caller.repeat(operation).await
    }

    /// The same from any runtime: the call is made in that of the session, whether or not the future is kept.
    ///
    /// # Errors
    /// As [`Session::ask`].
    pub(crate) async fn ask_apart<O>(&self, operation: O) -> Result<O::Answer, StoreError>
    where
        O: Operation + Send + 'static,
        O::Answer: Send + 'static,
    {
        let caller = self.caller.clone();
        let asking = self.home.spawn(async move { caller.repeat(operation).await });
        asking.await.unwrap_or_else(|_| Err(Refusal::Stale.into()))
    }

    /// Takes the baton of an offered source.
    ///
    /// # Errors
    /// The store's refusal or failure.
    pub async fn take(&self, source: Name) -> Result<Taken, StoreError> {
        self.caller.repeat(Take { session: self.id(), source }).await
    }

    /// Gives a baton back.
    ///
    /// # Errors
    /// The store's refusal or failure.
    pub async fn resign(&self, source: Name, epoch: u64) -> Result<(), StoreError> {
        self.caller.repeat(Resign { session: self.id(), source, epoch }).await
    }

    /// Whether a queue takes `bytes` more, for a source or for somebody else, where it may hold `max_queue_bytes`: to ask before a
    /// body is sent again.
    pub(crate) async fn has_room(&self, queue: &Name, source: Option<&Name>, bytes: u64, max_queue_bytes: u64) -> bool {
        let progress = ReadProgress { queue: queue.clone(), source: source.cloned() };
        // If the session is over, the push finds it out.
        let books = self.caller.repeat(progress).await.ok().and_then(|progress| progress.books);
        books.is_none_or(|books| books.has_room(bytes, max_queue_bytes))
    }

    /// The pushes under a baton that was taken, into a queue that may hold so many bytes.
    #[must_use]
    pub fn pushes<K>(&self, source: Name, taken: Taken, max_queue_bytes: u64) -> Pushes<K> {
        Pushes::new(self.caller.clone(), source, taken, max_queue_bytes)
    }

    /// Begins to remove the failed messages of a queue; waits until a former session that died is detected.
    ///
    /// # Errors
    /// [`Refusal::RemovalBusy`] while another live session drains; the store's refusal or failure.
    pub async fn begin_removal(&self, queue: Name) -> Result<RemovalBegun, StoreError> {
        self.caller.repeat(RemovalBegin { session: self.id(), queue }).await
    }

    /// Removes or requeues errors that were dealt with.
    ///
    /// # Errors
    /// The store's refusal or failure.
    ///
    /// # Cancel safety
    /// The errors are disposed of whether or not the future is kept.
    pub async fn dispose(&self, queue: Name, ids: Vec<MessageId>, disposal: Disposal) -> Result<Disposed, StoreError> {
        disposals::dispose(self, queue, ids, disposal).await
    }

    /// Removes what waits in a queue, a bounded number of messages a step; see [`Purge`](crate::store::Purge). Repeat it with
    /// the answer's `upto` while something is left.
    ///
    /// # Errors
    /// As [`Session::dispose`]; [`Refusal::RemovalBusy`] with `failed` while another session removes failed messages.
    ///
    /// # Cancel safety
    /// The step is carried out whether or not the future is kept.
    pub async fn purge(&self, queue: Name, upto: Option<u64>, failed: bool) -> Result<Purged, StoreError> {
        disposals::purge(self, queue, upto, failed).await
    }

    /// Ends the session: claims go back without a crash, batons are free.
    ///
    /// # Errors
    /// The store's failure; the lease then does the rest.
    pub async fn leave(self) -> Result<(), StoreError> {
        let left = ask(self.caller.store(), Leave { session: self.id() }).await;
        self.caller.end(Refusal::Stale.into());
        left
    }
}

/// The name of this machine, for people.
pub(crate) fn host_name() -> String {
    let from_kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = from_kernel.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    let name: String = name.trim().chars().filter(|c| !c.is_control()).take(64).collect();
    if name.is_empty() { "localhost".to_owned() } else { name }
}
