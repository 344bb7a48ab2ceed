//! The store in a Redis server (7.0 or newer, or Valkey 7.2 or newer).
//!
//! Every operation is one script, run by the server in one step: atomic, on the server's clock, checked before its
//! first write. The scripts are the engine's functions in Lua, file by file, and give the same answers. Usable at
//! once: opening reads the address only; each call connects if there is no connection.
//!
//! **What it guarantees.** All that the contract asks for, as long as the server keeps what it acknowledged: with
//! `appendonly yes` and `appendfsync always` nothing acknowledged is lost; with `everysec` a crash may take the last
//! second back, as a consistent prefix. Message-moving calls of one fleet are serial, whatever connection they use.
//! At `maxmemory` push, submit and a settle that brings results or follow-ups are refused whole ([`StoreError::NoRoom`]);
//! everything else goes on. A server that was restarted makes every session joined before leave without a crash and answers
//! it [`Refusal::Stale`](super::Refusal::Stale).
//!
//! **How it fails.** A server that is away or not ready is [`StoreError::Unreachable`]; so is one that
//! has become a replica, until it or what its address leads to is the primary; sessions of before then start over. One
//! that would not keep the contract (too old, a replica from the start, wanting a password) is
//! [`StoreError::Unfit`], with a line that says what to do; one that becomes so after this process has used it is waited
//! for like one that is away. A server that may evict keys gets nothing new (see
//! `eviction`); a fleet where another program keeps something under one of its keys is unfit too (see `foreign`).
//!
//! # Keys
//! `R` is the root `{fleet/0}`; only parcels that were staged and not taken expire by themselves.
//!
//! | key | kind | holds |
//! |---|---|---|
//! | `R` | hash | format, incarnation, clock, last, least, joins, stop_upto, stop_how, destroying, migrating (from which format), run (of the server), results (what they count for), calls (what those that have ended count for), forgotten (the generation of what is cached), floor, cached (what its values count for) |
//! | `R:sessions`, `R:leases`, `R:nodes` | sorted sets, set | session → fleet clock of its expiry, session → lease; those that are nodes |
//! | `R:hold` | string | `from until whose` while a recount in pages holds the messages still |
//! | `R:s:<session>` | hash | the session record, its kept answers (`settle`, `dispose`), how many of a disposal that goes on were disposed of (`disposing`), the page of its submits, and its claim numbers by queue (`c:<queue>` → `highest\|unused\|w if it waits, and the claim that waits with it`) |
//! | `R:n:<session>:<page>` | list | the answers to submits by number, behind an empty one; 64 to a page, the last two pages |
//! | `R:h:<session>` | hash | claim, as `number queue` → `queue\|span;span…`, runs of singles among them |
//! | `R:g:<session>` | hash | what these carry: claim → that of its spans, `id claim` → a single as it lay in its line, `# claim` → singles left |
//! | `R:z:<session>` | hash | of one that is over while its claims are not all back: whose they were, whether they were lost |
//! | `R:sources`, `R:o:<source>` | set, hashes | the sources; queue, definition, holder, epoch, cursor, batch_no, ended |
//! | `R:queues`, `R:q:<queue>` | set, hashes | the queues; the counters of the books that seldom change, the drainer, and how many nodes without a baton work for it |
//! | `R:lastids` | hash | of queues that were removed: `last id,messages removed,their sum` |
//! | `R:k:<queue>` | string | packed: the counters that most calls change, whether somebody may wait, whether a recount may hold it, since when it may have an inbox |
//! | `R:I:<queue>:<since>:<last>` | list | its inbox: short messages pushed singly, behind all that is ready and not yet counted, as `born\|parcel`; `since` stands in the counters, `last` is the last id that is |
//! | `R:L:<queue>:<first>` | list | a bundle: an inbox that was taken in, as it was |
//! | `R:r:<queue>`, `R:u:<queue>` | lists | ready spans, suspects; a short message with its parcel: `span\|parcel`; a bundle: `*first,messages,bytes,` and how its list is called |
//! | `R:d:<queue>` | sorted set | due → `id in 16 digits\|span`, or with its parcel |
//! | `R:b:<queue>:<first>`, `R:c:<queue>:<id>` | strings | parcels as pushed, copies of single messages |
//! | `R:m:<queue>:<first>` | strings | a bit for each message of a parcel, set if it has gone, once some have |
//! | `R:p:<queue>:<first>` | strings | a parcel without the bodies of those gone, in the place of the one that was pushed |
//! | `R:e:<queue>`, `R:x:<queue>` | sorted set, hash | place among the errors → id, id → record |
//! | `R:keys`, `R:keyends` | hash, sorted set | idempotency key → `queue,id,digest,expires,born`, expiry → key |
//! | `R:marks` | hash | bookmark → `lines,digest,queue` |
//! | `R:results`, `R:resultends` | hash, sorted set | `queue id` → `expires:result`, expiry → the same |
//! | `R:a:<call>` | hash | a call, named `queue/id`: messages open, running, delayed, cancelled; marked, how it ended, numbers of its next and first event, bytes of events and keys, linger, when it was followed, when it was born, outcome |
//! | `R:A:<call>`, `R:H:<call>`, `R:F:<call>` | hashes | its messages as `queue id` → `session,claim,told,delayed`; session → messages it holds; follower → `position,number,waits` |
//! | `R:D:<call>` | sorted set | when it is due → a delayed message of it, as `queue id in 16 digits` |
//! | `R:y:<call>`, `R:j:<call>` | list, set | its events, their keys |
//! | `R:cached`, `R:recalledheads`, `R:recalledends` | hashes, sorted set | key → value; key → `kind,generation,made,expires,session,number`; expiry → key |
//! | `R:forgotten`, `R:forgottenat` | sorted set, hash | generation → scope that was forgotten in it; scope → fleet clock |
//! | `R:rights to compute`, `R:B:<session>`, `R:W:<key>` | hash, sets, hashes | key → `session,number,generation,ends` of who computes it; keys of a session; who waits → number |
//! | `R:cache_users` | set | sessions that cache |
//! | `R:joined` | hash | message that joined as `queue id` → call |
//! | `R:looks`, `R:callends` | sorted sets | call → when it is looked whether it is forsaken, or marked and delayed; as `queue id in 16 digits` → when it is forgotten |
//! | `R:f:<session>` | set | cancelled calls that it holds messages of |
//! | `R:v:<queue>` | sorted set | sessions that wait for the queue, by since when |
//! | `R:w:<session>` | list | its wake-up list: queues to look into, `!` and the number of a follow or a signal, `!0` for all signals |
//! | `R:t:<session>:<place>` | strings, 10 s | parcels within the transaction that pushes them, follow-ups too |

mod arguments;
mod books;
mod coding;
mod conn;
mod constants;
mod eviction;
mod failure;
mod foreign;
mod keeping;
mod keys;
mod libraries;
mod log;
mod migration;
mod reply;
mod rights;
mod scripts;
mod server_runs;
mod store_clock;
mod waiting;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use redis::{Cmd, FromRedisValue, Value};

pub(super) use self::{
    arguments::{Arguments, CARRIED},
    books::read_books,
    coding::{Coded, Number, Steps},
    constants::numbers,
    foreign::refuse as refuse_foreign,
    keys::Root,
    reply::{Reply, parsed},
    scripts::{Script, Scripts},
};
use self::{
    conn::{Connector, Link},
    failure::{ends_connection, is_denied},
    server_runs::{ServerRun, ServerRuns},
    store_clock::StoreClock,
    waiting::Waiters,
};
use super::{
    Answer, BoxFuture, Conversion, Ear, Kind, Leave, Request, Standing, Store, StoreError, SubmissionVerdict,
    Submitted, Waiting, Woken, operation::Given,
};
use crate::message::{Name, SessionId};

/// How a [`RedisStore`] behaves; the default is right outside of tests.
#[derive(Debug, Clone)]
pub struct RedisOptions {
    /// For tests: read store time from the key [`RedisStore::test_clock_key`] (milliseconds as text) instead of the
    /// server's clock.
    pub test_clock: bool,
    /// The most descriptors a recount counts in one step; with more it holds the store and counts in pages.
    pub recount_at_once: u64,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self { test_clock: false, recount_at_once: 5_000 }
    }
}

/// A store in a Redis server; clones share one connection.
#[derive(Debug, Clone)]
pub struct RedisStore {
    shared: Arc<RedisState>,
}

/// What all clones of a store share.
pub(super) struct RedisState {
    connector: Arc<Connector>,
    pub(super) root: Root,
    pub(super) scripts: Arc<Scripts>,
    pub(super) options: RedisOptions,
    /// The connection in use; empty before the first call and after an error.
    link: Mutex<Option<Link>>,
    /// Held while connecting, so that a crowd of calls makes one connection.
    connecting: tokio::sync::Mutex<()>,
    waiters: Waiters,
    runs: Arc<ServerRuns>,
    clock: StoreClock,
}

impl fmt::Debug for RedisState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("server", &self.connector.server()).field("root", &self.root).finish()
    }
}

impl RedisStore {
    /// The store of `fleet` in the server at `url` (`redis://` or `rediss://`). Connects to nothing yet.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] if the URL is not one of a Redis server.
    pub fn open(url: &str, fleet: Name, options: RedisOptions) -> Result<Self, StoreError> {
        let root = Root::new(&fleet);
        let connector = Connector::new(url, root.pattern())?;
        let scripts = Arc::new(Scripts::new(options.test_clock));
        Ok(Self::over(Arc::new(connector), root, scripts, options, Arc::default()))
    }

    fn over(
        connector: Arc<Connector>, root: Root, scripts: Arc<Scripts>, options: RedisOptions, runs: Arc<ServerRuns>,
    ) -> Self {
        let (link, connecting, waiters) = (Mutex::default(), tokio::sync::Mutex::default(), Waiters::default());
        let clock = StoreClock::default();
        Self {
            shared: Arc::new(RedisState { connector, root, scripts, options, link, connecting, waiters, runs, clock }),
        }
    }

    /// The same store over a connection of its own, for calls that must not queue behind others, from another
    /// runtime too. It knows the sessions joined through this one, and the other way round.
    #[must_use]
    pub fn apart(&self) -> Self {
        let RedisState { connector, root, scripts, options, runs, .. } = &*self.shared;
        Self::over(connector.clone(), root.clone(), scripts.clone(), options.clone(), runs.clone())
    }

    /// The key that a store with [`RedisOptions::test_clock`] reads its time from.
    #[must_use]
    pub fn test_clock_key(&self) -> String {
        self.shared.root.test_clock()
    }
}

impl Store for RedisStore {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, StoreError>> {
        Box::pin(async move {
            request.check()?;
            match coding::steps(&request, &self.shared) {
                Some(steps) => steps.await,
                None => self.shared.carry_out(&request).await,
            }
        })
    }

    fn apart(&self) -> Arc<dyn Store> {
        Arc::new(Self::apart(self))
    }

    fn hear(&self, ear: Ear) {
        self.shared.connector.hear(ear);
    }

    fn may_drop(&self) -> bool {
        self.shared.connector.eviction.is_possible()
    }

    fn wait(&self, session: SessionId, waiting: Arc<dyn Waiting>) -> BoxFuture<'_, Result<Woken, StoreError>> {
        Box::pin(self.shared.wait(session, waiting))
    }

    fn standing(&self) -> BoxFuture<'_, Result<Standing, StoreError>> {
        Box::pin(migration::standing(&self.shared))
    }

    fn convert(&self, since: Standing) -> BoxFuture<'_, Result<Conversion, StoreError>> {
        Box::pin(async move { migration::convert(&self.shared, &since).await })
    }
}

/// Whether a script has done part of its work: the same call does more of it, until there is an answer.
fn goes_on(reply: &Value) -> bool {
    matches!(reply, Value::Array(words) if matches!(&words[..], [Value::BulkString(code)] if code == b"MORE"))
}

impl RedisState {
    /// Carries out a request of one script.
    async fn carry_out(&self, request: &Request) -> Result<Answer, StoreError> {
        // What few calls go through is kept apart from them: the room of a call is copied and freed with each.
        let mut link = match self.linked() {
            Some(link) => link,
            None => Box::pin(self.link()).await?,
        };
        if let Some(leave) = self.runs.former(request, &self.current_run(&link)) {
            return Box::pin(self.leave_former_run(&mut link, leave)).await;
        }
        self.may_be_asked(&mut link, request).await?;
        let answer = self.answer(&mut link, request).await;
        if let (Request::Join(join), Ok(_)) = (request, &answer) {
            Box::pin(self.has_joined(join.kind)).await?;
        }
        answer
    }

    /// Looks after the server for a session that has joined.
    async fn has_joined(&self, kind: Kind) -> Result<(), StoreError> {
        self.connector.has_joined();
        log::mend(self).await?;
        if kind == Kind::Node {
            keeping::warn(self).await;
        }
        Ok(())
    }

    /// Runs the script of a request and gives its answer.
    async fn answer(&self, link: &mut Link, request: &Request) -> Result<Answer, StoreError> {
        let call = coding::call(&self.scripts, &self.root, self.store_time(), request);
        loop {
            let value = match call.run(&mut link.connection).await {
                Ok(value) => value,
                Err(error) => return Err(Box::pin(self.explained(link, &error)).await),
            };
            if !goes_on(&value) {
                return self.answered(link, request, value).await;
            }
        }
    }

    /// The answer that a script's reply stands for.
    async fn answered(&self, link: &mut Link, request: &Request, value: Value) -> Result<Answer, StoreError> {
        // The id of one message that was stored by the short way.
        if let (Request::Submit(_), Value::Int(first)) = (request, &value) {
            let submissions = vec![SubmissionVerdict::Stored { first: first.cast_unsigned() }];
            return Ok(Answer::Submit(Submitted { submissions }));
        }
        let mut reply = Reply::new(value)?;
        let code = reply.text()?;
        let (code, time) = code.split_once('@').unwrap_or((&code, ""));
        if !time.is_empty() {
            self.clock.set(parsed(time)?);
        }
        let answer = match (request, code) {
            (Request::Claim(_), code) if code == "OK" || code.starts_with('+') => {
                let given = match code {
                    "OK" => Given::read(&mut reply)?,
                    code => Given::read_short(code, reply)?.1,
                };
                let claimed = Box::pin(given.complete(&mut link.connection)).await;
                claimed.map_err(|error| self.failed(link, &error))?.map(Answer::Claim)
            }
            (_, code) => coding::answer(request, code, reply),
        };
        self.runs.note(request, &answer, &self.current_run(link));
        answer
    }

    /// The server's time, if it is known here.
    fn store_time(&self) -> Option<u64> {
        if self.options.test_clock { None } else { self.clock.now() }
    }

    /// A session that joined an earlier run of the server is over: what the server lost in between is not known.
    /// It leaves, so that its claims are back at once and without a crash, and is answered STALE.
    async fn leave_former_run(&self, link: &mut Link, leave: Leave) -> Result<Answer, StoreError> {
        self.answer(link, &Request::Leave(leave)).await?;
        Err(super::Refusal::Stale.into())
    }

    /// The run of the server that a link leads to, and the reign it is in by now.
    fn current_run(&self, link: &Link) -> ServerRun {
        ServerRun { id: Arc::clone(&link.run_id), reign: self.connector.reign() }
    }

    /// Runs a script that belongs to no single request.
    pub(super) async fn run(
        &self, script: &Script, fill: impl FnOnce(&mut Cmd) -> &mut Cmd,
    ) -> Result<Reply, StoreError> {
        let mut link = self.link().await?;
        let mut command = script.command();
        fill(command.arg(self.root.as_str()));
        match script.call(command).run(&mut link.connection).await {
            Ok(value) => Reply::new(value),
            Err(error) => Err(self.explained(&mut link, &error).await),
        }
    }

    /// Removes the functions of all releases: who still needs them loads them again.
    pub(super) async fn remove_libraries(&self) -> Result<(), StoreError> {
        let mut link = self.link().await?;
        libraries::remove(&mut link.connection, None).await.map_err(|error| self.failed(&link, &error))
    }

    /// Runs a plain command.
    pub(super) async fn command<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        let mut link = self.link().await?;
        command.query_async(&mut link.connection).await.map_err(|error| self.failed(&link, &error))
    }

    /// The connection, made if there is none, and checked anew if the server was last seen as a replica.
    async fn link(&self) -> Result<Link, StoreError> {
        if let Some(link) = self.linked() {
            return Ok(link);
        }
        let _turn = self.connecting.lock().await;
        if let Some(link) = self.linked() {
            return Ok(link);
        }
        let link = self.connector.connect().await?;
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = Some(link.clone());
        Ok(link)
    }

    fn linked(&self) -> Option<Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner).clone().filter(|_| self.connector.is_primary())
    }

    /// Drops a connection that is of no more use, unless another call has done so, and tells what happened.
    fn failed(&self, link: &Link, error: &redis::RedisError) -> StoreError {
        if error.code() == Some("READONLY") {
            self.connector.ends(link.reign);
        }
        if ends_connection(error) {
            let mut current = self.link.lock().unwrap_or_else(PoisonError::into_inner);
            if current.as_ref().is_some_and(|current| Arc::ptr_eq(&current.run_id, &link.run_id)) {
                *current = None;
            }
        }
        let told = self.connector.store_error(error);
        if is_denied(error) { self.connector.may_pass(told) } else { told }
    }
}
